// Who looks at whom, head by head: numbers where there is room for them, colours always.
import { useMemo } from "preact/hooks";
import { cssColour, onPaper, scaleOf } from "../parts/colours";
import { Choice } from "../parts/controls";
import { Matrix, short } from "../parts/matrix";
import { Ramp } from "../parts/ramp";
import { isDark } from "../theme";
import { number, say } from "../words";
import { rounded } from "./learn_answers";
import { pick } from "./learn_choice";

const MOST_NUMBERS = 12; // tokens, of which each cell has its number

interface Props {
  mask: Float32Array; // (N, N)
  weights: Float32Array; // (heads, N, N)
  tokens: string[];
  numHeads: number;
  head: number; // from 1
  row: number;
}

export function Weights({ mask, weights, tokens, numHeads, head, row }: Props) {
  const count = tokens.length;
  const at = Math.min(head, numHeads) - 1;
  const values = useMemo(() => weights.subarray(at * count ** 2, (at + 1) * count ** 2), [weights, at, count]);
  const scale = useMemo(() => onPaper(scaleOf(weights, { fromZero: true }), isDark.value), [weights, isDark.value]);
  const choose = (index: number) => pick({ row: index });
  const own = Array.from(values.subarray(row * count, (row + 1) * count));
  return (
    <>
      <Choice label={say("learn.head")} value={at + 1} options={Array.from({ length: numHeads }, (_, n) => [n + 1, String(n + 1)])} choose={(chosen) => pick({ head: chosen })} />
      {count <= MOST_NUMBERS ? (
        <div class="scroll" tabIndex={0} role="group" aria-label={say("learn.weights.label", { head: at + 1 })}>
          <table class="weights">
            <thead>
              <tr>
                <th scope="col">{say("learn.weights.corner")}</th>
                {tokens.map((token, n) => (
                  <th key={n} scope="col">
                    {short(token)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {tokens.map((token, from) => (
                <tr key={from} class={from === row ? "chosen" : undefined}>
                  <th scope="row">
                    <button type="button" class="plain" aria-pressed={from === row} onClick={() => choose(from)}>
                      {short(token)}
                    </button>
                  </th>
                  {tokens.map((_, to) => {
                    const value = values[from * count + to];
                    const isAllowed = mask[from * count + to] > 0;
                    return (
                      <td key={to} class={isAllowed ? undefined : "hidden-pair"} style={isAllowed ? cssColour(scale, value) : {}} onClick={() => choose(from)}>
                        {isAllowed ? rounded(value, 2) : <span aria-label={say("learn.weights.hidden")}>·</span>}
                      </td>
                    );
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <Matrix values={values} labels={[tokens, tokens]} scale={scale} chosen={{ row, column: null }} pick={choose} what={say("learn.weights.label", { head: at + 1 })} />
      )}
      <Ramp scale={scale} unit={say("learn.weights.unit")} />
      <h3>{say("learn.weights.row", { token: tokens[row] ?? "" })}</h3>
      <p class="sentence">
        {tokens.map((token, n) => (
          <button key={n} type="button" class="word" style={cssColour(scale, own[n])} aria-pressed={n === row} onClick={() => choose(n)}>
            {token} <small>{number(own[n], 2)}</small>
          </button>
        ))}
      </p>
    </>
  );
}
