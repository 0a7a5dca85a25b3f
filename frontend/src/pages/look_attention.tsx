// Where the chosen patch looks and who looks at it, in the chosen layer and head; and all of them as small tiles.
import { useMemo, useRef, useState } from "preact/hooks";
import type { LayerInfo } from "../api";
import { rankCorrelation } from "../parts/agreement";
import { scaleOf } from "../parts/colours";
import { Choice, Told, Wait } from "../parts/controls";
import { heatSvg, savePng } from "../parts/export_picture";
import { isPlaced, part, resampled, tokenAt, type Field } from "../parts/field";
import { fileName, saveCsv, saveSvg } from "../parts/files";
import { fused } from "../parts/heads";
import { Heat } from "../parts/heat";
import { headsInWords, layerNumber, Layers, moved } from "../parts/layers";
import { LARGE, usePixels } from "../parts/picture";
import { Ramp } from "../parts/ramp";
import { Saving } from "../parts/saving";
import { number, say } from "../words";
import type { Opened } from "./look";
import { askedIn, useWeights, type Weights } from "./look_ask";
import { changeLook, headsChosen, type LookChoice } from "./look_choice";
import { HeadsGrid } from "./look_heads";
import { scaledAt, scaledField } from "./look_pair";
import { extraName, tokenName, Unplaced } from "./look_tokens";

// `again` looks at the image anew, should the server no longer have it.
export function Attention({ first, second, choice, again }: { first: Opened; second: Opened | null; choice: LookChoice; again: () => void }) {
  const { look } = first;
  const { layers } = look;
  const layer = layerNumber(choice.layer, layers.length);
  const weights = useWeights(look, choice, layer);
  const secondAt = second ? scaledAt(choice.at, look.size, second.look.size) : "";
  const secondLayer = second ? layerNumber(choice.layer, second.look.layers.length) : 0;
  const secondWeights = useWeights(second?.look ?? null, { at: secondAt, way: choice.way }, secondLayer);
  if (!layers.length) return null;
  const a = weights.value && shownOf(first, layer, weights.value, choice);
  const b = second?.look.layers.length && secondWeights.value ? shownOf(second, secondLayer, secondWeights.value, choice) : null;
  const agreement =
    second && a?.field && b?.field
      ? rankCorrelation(part(a.field), resampled(scaledField(b.field, second.look.size, look.size), a.field.grid, a.field.cell))
      : undefined;
  const extra = Math.max(...layers.flatMap(({ queries, keys }) => [queries.extra, keys.extra]));
  const asked = askedIn(layers[layer], choice, look.size);
  return (
    <section class="card" aria-labelledby="look-attention">
      <h2 id="look-attention">{say("look.attention")}</h2>
      <p class="is-not">{say("look.attention.not")}</p>
      <Layers layers={layers} layer={layer} heads={headsChosen(choice)} choose={changeLook} />
      <div class="controls">
        <Choice
          label={say("look.show")}
          options={[
            ["row", say("look.way.row")],
            ["column", say("look.way.column")],
          ]}
          value={choice.way}
          choose={(way) => changeLook({ way })}
        />
        {extra > 0 && (
          <Choice
            label={say("look.token")}
            options={Array.from({ length: extra }, (_, n): [string, string] => [`e${n}`, extraName(n)])}
            value={choice.at.includes(",") || !asked.token ? null : choice.at || "e0"}
            choose={(at) => changeLook({ at: at === "e0" ? "" : at })}
          />
        )}
      </div>
      <Wait isAsking={weights.isAsking && !weights.value} error={weights.error} again={again} />
      {agreement !== undefined && <p class="verdict">{agreement === null ? say("look.agree.none") : say("look.agree", { number: number(agreement) })}</p>}
      <div class={second ? "pair" : undefined}>
        {a && <One opened={first} layer={layer} weights={weights.value!} shown={a} choice={choice} isAlone={!second} at={choice.at} choose={(at) => changeLook({ at })} />}
        {second && b && (
          <One
            opened={second}
            layer={secondLayer}
            weights={secondWeights.value!}
            shown={b}
            choice={choice}
            isAlone={false}
            at={secondAt}
            choose={(at) => changeLook({ at: scaledAt(at, second.look.size, look.size) })}
          />
        )}
        {second && !b && <Wait isAsking={secondWeights.isAsking} error={secondWeights.error} />}
      </div>
    </section>
  );
}

// What is drawn of a layer: the weights as they were asked for, heads as chosen now.
interface Shown extends ReturnType<typeof askedIn> {
  info: LayerInfo;
  isRow: boolean;
  values: Float32Array | null; // of all tokens
  field: Field | null; // of those on the picture
}

function shownOf({ look }: Opened, layer: number, weights: Weights, choice: LookChoice): Shown {
  const info = look.layers[layer];
  const asked = askedIn(info, weights, look.size);
  const rows = weights.layers[layer];
  const values = rows && fused(rows, info.shape[0], headsChosen(choice));
  return { ...asked, info, isRow: weights.way === "row", values, field: fieldIn(values, asked.seen) };
}

export function fieldIn(values: Float32Array | null, seen: LayerInfo["keys"]): Field | null {
  if (!values || !seen.cell || seen.size.length !== 2) return null;
  return { values, start: seen.extra, grid: [seen.size[0], seen.size[1]], cell: seen.cell };
}

interface OneProps {
  opened: Opened;
  layer: number;
  weights: Weights;
  shown: Shown;
  choice: LookChoice;
  isAlone: boolean;
  at: string; // what is chosen now: quick keys do not wait for the weights
  choose: (at: string) => void;
}

function One({ opened: { run, look }, layer, weights, shown, choice, isAlone, at, choose }: OneProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hovered, setHovered] = useState<string | null>(null);
  const pixels = usePixels(look.picture, look.size, LARGE);
  const { info, token, asked, seen, values, field, isRow } = shown;
  const heads = headsChosen(choice);
  const scale = useMemo(() => scaleOf(field ? part(field) : (values ?? []), { fromZero: true }), [values, field?.start]);
  const who = !token ? "" : isRow && shown.isPooling ? info.asker || say("look.query") : tokenName(token.index, asked);
  const caption = say(isRow ? "look.caption.row" : "look.caption.column", { layer: layer + 1, name: info.name, heads: headsInWords(heads, info.shape[0]), who });
  const mark = isPlaced(token) && asked.cell ? { row: token.row, column: token.column, cell: asked.cell } : null;
  const name = fileName(look.name, run, `layer ${layer + 1}`, choice.head, choice.way);
  const unit = say("look.unit.weight");
  const lines = [`${look.name} · ${run}`, caption];
  const keys = (key: string): boolean => {
    const moves: Record<string, [number, number]> = { PageUp: [-1, 0], PageDown: [1, 0], "+": [0, 1], "-": [0, -1] };
    if (key === " ") changeLook({ way: choice.way === "row" ? "column" : "row" });
    else if (moves[key]) changeLook(moved(look.layers, layer, heads, moves[key]));
    return key === " " || key in moves;
  };
  const read = hovered === null || !field ? null : tokenAt(hovered, seen, look.size);
  return (
    <div class={isAlone ? "split" : undefined}>
      <figure>
        {!isAlone && <figcaption class="run-name">{run}</figcaption>}
        <h3>{token ? caption : say("look.noToken")}</h3>
        {token && values && !field && <Unplaced values={values} seen={seen} />}
        {(field || !values) && (
          <>
            <Heat
              pixels={pixels}
              size={look.size}
              field={field}
              scale={scale}
              drawn={{ opacity: choice.opacity / 100, isSmooth: choice.smooth }}
              mark={mark}
              label={`${say("look.heat", { what: caption, low: number(scale.low), high: number(scale.high) })} ${say("look.heat.keys")}`}
              lattice={asked}
              at={at}
              choose={choose}
              read={setHovered}
              keys={keys}
              canvas={canvas}
            />
            <Ramp scale={scale} unit={unit} />
          </>
        )}
        {values && token && <Read values={values} seen={seen} isRow={isRow} index={isPlaced(read) ? read.index : null} />}
        {values && field && (
          <Saving
            png={() => canvas.current && savePng(name, canvas.current, scale, unit, lines)}
            svg={() => saveSvg(name, heatSvg({ picture: look.picture, size: look.size, field, scale, opacity: choice.opacity / 100, mark, unit, lines }))}
            csv={() => saveCsv(name, rowsOf(values, seen))}
          />
        )}
      </figure>
      <HeadsGrid look={look} weights={weights} layer={layer} choice={choice} />
    </div>
  );
}

function Read({ values, seen, isRow, index }: { values: Float32Array; seen: LayerInfo["keys"]; isRow: boolean; index: number | null }) {
  const strongest = values.reduce((best, value, n) => (value > values[best] ? n : best), 0);
  const n = index ?? strongest;
  const told = say(isRow ? "look.read.gets" : "look.read.gives", {
    who: tokenName(n, seen),
    weight: number(values[n]),
    times: number(values[n] * values.length),
  });
  const extras = Array.from(values.subarray(0, seen.extra), (value, extra) => `${extraName(extra)} ${number(value)}`);
  return (
    <>
      <Told>{index === null ? `${say("look.strongest")} ${told}. ${say("look.hint.attention")}` : `${told}.`}</Told>
      {extras.length > 0 && <p class="note">{say("look.extras", { extras: extras.join(", ") })}</p>}
    </>
  );
}

function rowsOf(values: Float32Array, seen: LayerInfo["keys"]): (string | number)[][] {
  const rows = Array.from(values, (value, index) => {
    const n = index - seen.extra;
    if (n < 0) return [extraName(index), "", "", value];
    return seen.cell && seen.size.length === 2
      ? ["patch", Math.floor(n / seen.size[1]) + 1, (n % seen.size[1]) + 1, value]
      : [`token ${n + 1}`, "", "", value];
  });
  return [["token", "row", "column", "weight"], ...rows];
}
