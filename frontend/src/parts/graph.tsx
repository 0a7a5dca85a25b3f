// Weights as lines between two columns of tokens, those that look on the left: the stronger, the darker and thicker.
import type { RefObject } from "preact";
import { useMemo } from "preact/hooks";
import { number, say } from "../words";
import { percent, Slider, Told } from "./controls";
import { within } from "./field";
import { short } from "./matrix";
import "./parts.css";

const LINE = 21;
const WIDTH = 520;
const NAMES = 120;
const MOST = 1000; // lines

export interface Edge {
  row: number;
  column: number;
  weight: number;
}

// The strongest first; of many, the strongest thousand.
export function strongest(values: Float32Array, columns: number, most = MOST): Edge[] {
  const least = likelyLeast(values, most);
  const order: number[] = [];
  values.forEach((value, at) => value > 0 && value >= least && order.push(at));
  order.sort((a, b) => values[b] - values[a]);
  return order.slice(0, most).map((at) => ({ row: Math.floor(at / columns), column: at % columns, weight: values[at] }));
}

// A number that more than `most` values reach, from a sample: it spares sorting the millions of a long text.
function likelyLeast(values: Float32Array, most: number): number {
  const SAMPLE = 50000;
  if (values.length <= 2 * SAMPLE) return 0;
  const step = Math.floor(values.length / SAMPLE);
  const some = Float32Array.from({ length: SAMPLE }, (_, n) => values[n * step]).sort();
  return some[Math.max(0, Math.floor(SAMPLE * (1 - (4 * most) / values.length)) - 50)];
}

export function Graph(props: {
  values: Float32Array;
  labels: [string[], string[]];
  chosen: { row: number | null; column: number | null };
  count: number; // of lines; 0 for twice as many as rows
  chooseCount: (count: number) => void;
  pick: (index: number, isQuery: boolean) => void;
  svg?: RefObject<SVGSVGElement>;
}) {
  const { values, labels, chosen } = props;
  const [rows, columns] = [labels[0].length, labels[1].length];
  const all = useMemo(() => strongest(values, columns), [values, columns]);
  const total = useMemo(() => values.reduce((sum, value) => sum + Math.max(0, value), 0) || 1, [values]);
  const count = within(props.count || 2 * rows, 1, Math.max(1, all.length));
  const drawn = all.slice(0, count);
  const least = drawn.length ? drawn[drawn.length - 1].weight : 0;
  const most = all.length ? all[0].weight : 1;
  const isMarked = ({ row, column }: { row: number; column: number }) => row === chosen.row || column === chosen.column;
  const lines = [...drawn].sort((a, b) => Number(isMarked(a)) - Number(isMarked(b)));
  const y = (n: number) => LINE * (n + 0.5) + 4;
  const height = LINE * Math.max(rows, columns) + 8;
  const held = drawn.reduce((sum, edge) => sum + edge.weight, 0) / total;
  const node = (name: string, n: number, isQuery: boolean) => (
    <text
      key={`${isQuery}${n}`}
      x={isQuery ? NAMES : WIDTH - NAMES}
      y={y(n) + 4}
      text-anchor={isQuery ? "end" : "start"}
      class={n === (isQuery ? chosen.row : chosen.column) ? "node marked" : "node"}
      onClick={() => props.pick(n, isQuery)}
    >
      {short(name)}
      <title>{name}</title>
    </text>
  );
  return (
    <>
      <div class="controls">
        <Slider
          label={say("parts.graph.edges")}
          low={1}
          high={Math.max(1, all.length)}
          value={count}
          said={say("parts.graph.count", { count, least: number(least) })}
          choose={props.chooseCount}
        />
      </div>
      <div class="scroll tall">
        <svg
          ref={props.svg}
          class="graph"
          role="img"
          width={WIDTH}
          height={height}
          viewBox={`0 0 ${WIDTH} ${height}`}
          aria-label={say("parts.graph", { count: drawn.length, rows, columns })}
        >
          {lines.map((edge) => (
            <line
              key={`${edge.row},${edge.column}`}
              class={isMarked(edge) ? "edge marked" : "edge"}
              x1={NAMES + 4}
              y1={y(edge.row)}
              x2={WIDTH - NAMES - 4}
              y2={y(edge.column)}
              stroke-width={(0.6 + (3.4 * edge.weight) / most).toFixed(2)}
              stroke-opacity={(0.15 + (0.8 * edge.weight) / most).toFixed(2)}
            >
              <title>{`${labels[0][edge.row]} → ${labels[1][edge.column]}: ${number(edge.weight)}`}</title>
            </line>
          ))}
          {labels[0].map((name, n) => node(name, n, true))}
          {labels[1].map((name, n) => node(name, n, false))}
        </svg>
      </div>
      <Told>{say("parts.graph.said", { count: drawn.length, least: number(least), most: number(most), held: percent(held) })}</Told>
    </>
  );
}

export const GRAPH_STYLE =
  ".edge { stroke: #0072b2 } .edge.marked { stroke: #d55e00 } text { font: 13px sans-serif; fill: #14181f } .node.marked { font-weight: bold }";
