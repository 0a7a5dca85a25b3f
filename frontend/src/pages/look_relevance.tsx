// What mattered for the class, by every method, and whether the answer depends on it.
import { useMemo, useRef, useState } from "preact/hooks";
import { floats, type Look, type MapResult } from "../api";
import { rankCorrelation } from "../parts/agreement";
import { scaleOf } from "../parts/colours";
import { Check, Told, Wait } from "../parts/controls";
import { heatSvg, savePng } from "../parts/export_picture";
import { isPlaced, part, resampled, tokenAt, type Field } from "../parts/field";
import { fileName, saveCsv, saveSvg } from "../parts/files";
import { Heat, Hidden } from "../parts/heat";
import { hiddenAt } from "../parts/heat_pixels";
import { LARGE, usePixels } from "../parts/picture";
import { Ramp } from "../parts/ramp";
import { Saving } from "../parts/saving";
import { curvesOf, nearestStep, StripView } from "../parts/strip";
import { number, say } from "../words";
import type { Opened } from "./look";
import { FOLLOWING, type Maps } from "./look_ask";
import { changeLook, type LookChoice } from "./look_choice";
import { said } from "./look_methods";
import { Multiples } from "./look_multiples";
import { scaledAt, scaledField } from "./look_pair";

export const fieldOf = (map: MapResult): Field => ({ values: floats(map.values), start: 0, grid: map.grid, cell: map.cell });

interface Props {
  first: Opened;
  second: Opened | null;
  maps: Maps;
  secondMaps: Maps;
  choice: LookChoice;
  again: () => void; // looks at the image anew, should the server no longer have it
}

export function Relevance({ first, second, maps, secondMaps, choice, again }: Props) {
  const { map } = maps;
  const agreement = useMemo(() => {
    if (!map || !second || !secondMaps.map) return null;
    const [a, b] = [fieldOf(map), scaledField(fieldOf(secondMaps.map), second.look.size, first.look.size)];
    return rankCorrelation(part(a), resampled(b, a.grid, a.cell));
  }, [map, secondMaps.map]);
  const canFollow = map && FOLLOWING.includes(map.method) && choice.at.includes(",");
  return (
    <section class="card" aria-labelledby="look-relevance">
      <h2 id="look-relevance">{say("look.mattered", { target: first.look.target })}</h2>
      <Multiples look={first.look} maps={maps.maps} chosen={map?.method ?? choice.method} choice={choice} />
      <Wait isAsking={maps.isAsking} error={maps.error} again={again} what={say("look.asking.map")} />
      {map && (
        <>
          <h3>{said(map).title}</h3>
          <p class="is-not">{said(map).is_not}</p>
          {map.cost && <p class="note">{say("look.cost", { cost: map.cost })}</p>}
          {canFollow && (
            <p>
              <Check label={say("look.follow")} isOn={choice.follow} choose={(follow) => changeLook({ follow })} />
            </p>
          )}
          {second && secondMaps.map && (
            <p class="verdict">{agreement === null ? say("look.agree.none") : say("look.agree", { number: number(agreement) })}</p>
          )}
          <div class={second ? "pair" : undefined}>
            <One opened={first} map={map} choice={choice} isAlone={!second} at={choice.at} choose={(at) => changeLook({ at })} />
            {second && secondMaps.map && (
              <One
                opened={second}
                map={secondMaps.map}
                choice={choice}
                isAlone={false}
                at={scaledAt(choice.at, first.look.size, second.look.size)}
                choose={(at) => changeLook({ at: scaledAt(at, second.look.size, first.look.size) })}
              />
            )}
            {second && !secondMaps.map && <Wait isAsking={secondMaps.isAsking} error={secondMaps.error} />}
          </div>
        </>
      )}
    </section>
  );
}

interface OneProps {
  opened: Opened;
  map: MapResult;
  choice: LookChoice;
  isAlone: boolean;
  at: string;
  choose: (at: string) => void;
}

function One({ opened: { run, look }, map, choice, isAlone, at, choose }: OneProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hovered, setHovered] = useState<string | null>(null);
  const pixels = usePixels(look.picture, look.size, LARGE);
  const field = useMemo(() => fieldOf(map), [map]);
  const scale = useMemo(() => scaleOf(field.values), [field]);
  const lattice = { size: map.grid, extra: 0, cell: map.cell };
  const isChosen = at.includes(",");
  const marked = isChosen ? tokenAt(at, lattice, look.size) : null;
  const mark = isPlaced(marked) ? { row: marked.row, column: marked.column, cell: map.cell } : null;
  const read = hovered !== null || isChosen ? tokenAt(hovered ?? at, lattice, look.size) : null;
  const { title, is_not } = said(map);
  const unit = say("look.unit.relevance");
  const lines = [`${look.name} · ${run} · ${title} · ${say("look.mattered", { target: look.target })}`, is_not];
  const name = fileName(look.name, run, map.method);
  const shown = { picture: look.picture, size: look.size, field, scale, opacity: choice.opacity / 100, mark, unit, lines };
  const table = () => Array.from(field.values, (value, n) => [Math.floor(n / map.grid[1]) + 1, (n % map.grid[1]) + 1, value]);
  const label = say("look.heat", { what: title, low: number(scale.low), high: number(scale.high) });
  return (
    <div class={isAlone ? "split" : undefined}>
      <figure>
        {!isAlone && <figcaption class="run-name">{run}</figcaption>}
        <Heat
          pixels={pixels}
          size={look.size}
          field={field}
          scale={scale}
          drawn={{ opacity: choice.opacity / 100, isSmooth: choice.smooth }}
          mark={mark}
          label={label}
          lattice={lattice}
          at={at}
          choose={choose}
          read={setHovered}
          canvas={canvas}
        />
        <Ramp scale={scale} unit={unit} />
        <Told>
          {isPlaced(read)
            ? say("look.read.relevance", { row: read.row + 1, column: read.column + 1, value: number(field.values[read.index]) })
            : say("look.hint.relevance")}
        </Told>
        <Saving
          png={() => canvas.current && savePng(name, canvas.current, scale, unit, lines)}
          svg={() => saveSvg(name, heatSvg(shown))}
          csv={() => saveCsv(name, [["row", "column", "relevance"], ...table()])}
        />
      </figure>
      <div>{map.strip ? <Faithful look={look} map={map} field={field} choice={choice} /> : <p class="note">{say("look.noStrip")}</p>}</div>
    </div>
  );
}

function Faithful({ look, map, field, choice }: { look: Look; map: MapResult; field: Field; choice: LookChoice }) {
  const strip = map.strip!;
  const curves = useMemo(() => curvesOf(strip), [strip]);
  const step = choice.step >= 0 ? Math.min(choice.step, curves.fractions.length - 1) : nearestStep(curves.fractions, 0.25);
  const pixels = usePixels(look.picture, look.size, LARGE);
  const instead = usePixels(strip.picture, look.size, LARGE);
  const isHidden = useMemo(() => hiddenAt(field.values, curves.fractions[step], choice.curve === "deletion"), [field, curves, step, choice.curve]);
  return (
    <StripView strip={strip} curves={curves} curve={choice.curve} step={step} target={look.target} choose={changeLook}>
      <Hidden pixels={pixels} instead={instead} size={look.size} field={field} isHidden={isHidden} label={say("look.step", { baseline: strip.baseline })} />
    </StripView>
  );
}
