// Which token looks at which, by layer and head: as coloured tokens, as a matrix, and as lines.
import { useMemo, useRef, useState } from "preact/hooks";
import { api, floats, type LayerInfo, type Reading } from "../api";
import { useAnswer } from "../parts/ask";
import { onPaper, scaleOf } from "../parts/colours";
import { Choice, Told, Wait } from "../parts/controls";
import { savePng } from "../parts/export_picture";
import { within } from "../parts/field";
import { drawnSvg, fileName, saveCsv, saveSvg } from "../parts/files";
import { Graph, GRAPH_STYLE } from "../parts/graph";
import { fused, headsOf, type Heads } from "../parts/heads";
import { headsInWords, layerNumber, Layers } from "../parts/layers";
import { Matrix, matrixScale } from "../parts/matrix";
import { Ramp } from "../parts/ramp";
import { Saving } from "../parts/saving";
import { Tokens, visible } from "../parts/tokens";
import { isDark } from "../theme";
import { number, say } from "../words";
import { changeRead, type ReadChoice } from "./read_choice";

const matrices = new Map<string, Float32Array>();
const KEPT = 200;

async function headMatrix(id: string, layer: number, head: number, signal: AbortSignal): Promise<Float32Array> {
  const key = JSON.stringify([id, layer, head]);
  const known = matrices.get(key);
  if (known) return known;
  const found = floats((await api.weights(id, layer, { head }, signal)).values);
  if (matrices.size >= KEPT) matrices.delete(matrices.keys().next().value!);
  matrices.set(key, found);
  return found;
}

// (queries, keys) of one head, or of all as one.
export async function matrixOf(id: string, layer: number, { shape }: LayerInfo, heads: Heads, signal: AbortSignal): Promise<Float32Array> {
  if (typeof heads === "number") return headMatrix(id, layer, Math.min(heads, shape[0]) - 1, signal);
  const all = await Promise.all(Array.from({ length: shape[0] }, (_, head) => headMatrix(id, layer, head, signal)));
  const joined = new Float32Array(all.length * all[0].length);
  all.forEach((matrix, head) => joined.set(matrix, head * matrix.length));
  return fused(joined, shape[0], heads);
}

const isCausal = (values: Float32Array, rows: number, columns: number): boolean =>
  rows > 1 && rows === columns && values.subarray(1, columns).every((weight) => weight === 0);

const labelsOf = ({ labels, shape }: LayerInfo): [string[], string[]] =>
  labels ?? [Array.from({ length: shape[1] }, (_, n) => String(n + 1)), Array.from({ length: shape[2] }, (_, n) => String(n + 1))];

export function ReadAttention({ reading, choice }: { reading: Reading; choice: ReadChoice }) {
  const layer = layerNumber(choice.layer, reading.layers.length);
  const info = reading.layers[layer];
  const heads = headsOf(choice.head);
  const matrix = useAnswer(JSON.stringify([reading.id, layer, heads]), async (signal) => ({
    layer,
    id: reading.id,
    values: await matrixOf(reading.id, layer, info, heads, signal),
  }));
  const isCurrent = matrix.value?.layer === layer && matrix.value.id === reading.id;
  const kind = info.kind === "self" && reading.source ? "source" : info.kind;
  return (
    <section class="card" aria-labelledby="read-attention">
      <h2 id="read-attention">{say("read.attention")}</h2>
      <p class="is-not">{say("look.attention.not")}</p>
      <Layers layers={reading.layers} layer={layer} heads={heads} choose={changeRead} />
      <h3>{say("read.caption", { layer: layer + 1, name: info.name, heads: headsInWords(heads, info.shape[0]), kind: say(`read.kind.${kind}`) })}</h3>
      <Wait isAsking={matrix.isAsking && !isCurrent} error={matrix.error} again={matrix.again} />
      {isCurrent && <Weights reading={reading} info={info} values={matrix.value!.values} choice={choice} />}
    </section>
  );
}

function Weights({ reading, info, values, choice }: { reading: Reading; info: LayerInfo; values: Float32Array; choice: ReadChoice }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const svg = useRef<SVGSVGElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const dark = isDark.value;
  const labels = labelsOf(info);
  const [rows, columns] = [labels[0].length, labels[1].length];
  const isRow = choice.way === "row";
  const count = isRow ? rows : columns;
  const index = within(choice.token >= 0 ? choice.token : isCausal(values, rows, columns) ? count - 1 : 0, 0, count - 1);
  const [from, to] = isRow ? labels : [labels[1], labels[0]];
  const line = useMemo(
    () => (isRow ? values.slice(index * columns, (index + 1) * columns) : Float32Array.from({ length: rows }, (_, n) => values[n * columns + index])),
    [values, isRow, index, columns],
  );
  const lineScale = useMemo(() => onPaper(scaleOf(line, { fromZero: true }), dark), [line, dark]);
  const scale = useMemo(() => matrixScale(values, dark), [values, dark]);
  const isOne = rows === columns && labels[0].every((label, n) => label === labels[1][n]);
  const pick = (way: "row" | "column") => (token: number) => changeRead(isOne ? { token } : { token, way });
  const chosen = { row: isRow ? index : null, column: isRow ? null : index };
  const name = fileName(reading.run, "attention", info.name, choice.head);
  const words = [`${reading.run} · ${info.name} · ${headsInWords(headsOf(choice.head), info.shape[0])}`];
  const coloured = { values: line, scale: lineScale, point: setPointed };
  const told = pointed !== null && pointed < line.length;
  return (
    <>
      <div class="controls">
        <Choice
          label={say("look.show")}
          options={[
            ["row", say("look.way.row")],
            ["column", say("look.way.column")],
          ]}
          value={choice.way}
          choose={(way) => changeRead({ way })}
        />
        <Choice
          label={say("read.as")}
          options={[
            ["matrix", say("read.matrix")],
            ["graph", say("read.graph")],
          ]}
          value={choice.view}
          choose={(view) => changeRead({ view })}
        />
      </div>
      <p class="coloured">{say(isRow ? "read.coloured.row" : "read.coloured.column", { token: visible(from[index]) })}</p>
      {isOne ? (
        <Tokens label={say("read.tokens.all")} tokens={to} {...coloured} chosen={index} pick={pick(choice.way)} />
      ) : (
        <>
          <p class="note">{say("read.lookers")}</p>
          <Tokens label={say("read.lookers")} tokens={labels[0]} {...(isRow ? { chosen: index } : coloured)} pick={pick("row")} />
          <p class="note">{say("read.lookedAt")}</p>
          <Tokens label={say("read.lookedAt")} tokens={labels[1]} {...(isRow ? coloured : { chosen: index })} pick={pick("column")} />
        </>
      )}
      <Ramp scale={lineScale} unit={say("read.unit.line")} />
      <Told>
        {told
          ? say("parts.looks", { from: visible(isRow ? from[index] : to[pointed]), to: visible(isRow ? to[pointed] : from[index]), weight: number(line[pointed]) })
          : say("read.hint.token")}
      </Told>
      {choice.view === "graph" ? (
        <Graph
          values={values}
          labels={labels}
          chosen={chosen}
          count={choice.edges}
          chooseCount={(edges) => changeRead({ edges })}
          pick={(token, isQuery) => changeRead({ token, way: isQuery ? "row" : "column" })}
          svg={svg}
        />
      ) : (
        <>
          <Matrix
            values={values}
            labels={labels}
            scale={scale}
            chosen={chosen}
            pick={(row, column) => changeRead({ token: isRow ? row : column })}
            what={info.name}
            canvas={canvas}
          />
          <Ramp scale={scale} unit={say("read.unit.matrix")} />
        </>
      )}
      <Saving
        png={choice.view === "matrix" ? () => canvas.current && savePng(name, canvas.current, scale, say("read.unit.matrix"), words) : undefined}
        svg={choice.view === "graph" ? () => svg.current && saveSvg(name, drawnSvg(svg.current, GRAPH_STYLE)) : undefined}
        csv={() => saveCsv(name, [["", ...labels[1]], ...labels[0].map((label, n) => [label, ...values.subarray(n * columns, (n + 1) * columns)])])}
      />
    </>
  );
}
