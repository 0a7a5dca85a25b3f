// Tokens in words, and those that have no place on the picture as a list.
import type { Lattice } from "../api";
import { number, say } from "../words";

const MOST = 10;

export const extraName = (n: number): string => (n ? say("look.extra", { number: n }) : say("look.class"));

export function tokenName(index: number, { size, extra, cell }: Lattice): string {
  const n = index - extra;
  if (n < 0) return extraName(index);
  if (!cell || size.length !== 2) return say("look.tokenNumber", { number: n + 1 });
  return say("look.patch", { row: Math.floor(n / size[1]) + 1, column: (n % size[1]) + 1 });
}

export function Unplaced({ values, seen }: { values: Float32Array; seen: Lattice }) {
  const order = Array.from(values.keys()).sort((a, b) => values[b] - values[a]);
  return (
    <>
      <p class="warning">{say("look.unplaced")}</p>
      <table class="answers">
        <caption>{say("look.unplaced.list", { count: Math.min(MOST, order.length), total: order.length })}</caption>
        <tbody>
          {order.slice(0, MOST).map((index) => (
            <tr key={index}>
              <th scope="row">{tokenName(index, seen)}</th>
              <td class="share-bar" style={{ "--share": `${(100 * values[index]) / (values[order[0]] || 1)}%` }}>
                {number(values[index])}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
