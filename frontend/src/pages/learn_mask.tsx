// Who may look at whom: as a matrix, and as a graph. One token and those it sees are marked.
import { useState } from "preact/hooks";
import { stepOf, within } from "../parts/field";
import { Told } from "../parts/controls";
import { short } from "../parts/matrix";
import { say } from "../words";
import { arcPath, arcsOf, neighboursOf, placesOn } from "./learn_arcs";

interface Props {
  mask: Float32Array;
  tokens: string[];
  size: number[];
  row: number;
  pick: (row: number) => void;
}

const LEAST = 0.7; // of its size, on a narrow page, before a graph has to be scrolled

export function MaskMatrix({ mask, tokens, row, pick }: Props) {
  const count = tokens.length;
  const [pointed, setPointed] = useState<[number, number] | null>(null);
  const CELL = count <= 12 ? 30 : 20;
  const label = Math.min(90, 10 + 7.2 * Math.max(...tokens.map((token) => short(token).length)));
  const side = label + CELL * count + 1;
  const under = (event: MouseEvent & { currentTarget: SVGSVGElement }): [number, number] | null => {
    const box = event.currentTarget.getBoundingClientRect();
    const at = (place: number, start: number, extent: number) => Math.floor((((place - start) / extent) * side - label) / CELL);
    const found: [number, number] = [at(event.clientY, box.top, box.height), at(event.clientX, box.left, box.width)];
    return found.every((index) => index >= 0 && index < count) ? found : null;
  };
  const press = (event: KeyboardEvent) => {
    const step = stepOf(event.key);
    if (!step) return;
    event.preventDefault();
    const [from, to] = pointed ?? [row, row];
    const next: [number, number] = [within(from + step[0], 0, count - 1), within(to + step[1], 0, count - 1)];
    setPointed(next);
    pick(next[0]);
  };
  const isIn = pointed && pointed.every((index) => index < count);
  const key = isIn && mask[pointed[0] * count + pointed[1]] ? "learn.mask.may" : "learn.mask.mayNot";
  return (
    <figure class="lesson-figure">
      <figcaption>{say("learn.mask.matrix")}</figcaption>
      <svg
        class="mask"
        viewBox={`0 0 ${side} ${side}`}
        width={side}
        tabIndex={0}
        role="application"
        aria-label={say("learn.mask.label", { count, pairs: arcsOf(mask, count).length })}
        onPointerMove={(event) => setPointed(under(event))}
        onPointerLeave={() => setPointed(null)}
        onClick={(event) => {
          const found = under(event);
          if (found) pick(found[0]);
        }}
        onKeyDown={press}
      >
        <rect class="ground" x={label} y={label} width={CELL * count} height={CELL * count} />
        {arcsOf(mask, count).map(({ from, to }) => (
          <rect
            key={from * count + to}
            class={from === row ? "pair marked" : "pair"}
            x={label + to * CELL + 1}
            y={label + from * CELL + 1}
            width={CELL - 2}
            height={CELL - 2}
          />
        ))}
        <rect class="outline" x={label} y={label + row * CELL} width={CELL * count} height={CELL} />
        {tokens.map((token, n) => (
          <g key={n}>
            <text x={label - 5} y={label + (n + 0.5) * CELL + 4} text-anchor="end" class={n === row ? "marked" : ""}>
              {short(token)}
            </text>
            <text transform={`translate(${label + (n + 0.5) * CELL + 4} ${label - 5}) rotate(-90)`}>{short(token)}</text>
          </g>
        ))}
      </svg>
      <Told>{isIn ? say(key, { from: tokens[pointed[0]], to: tokens[pointed[1]] }) : say("learn.mask.hint")}</Told>
    </figure>
  );
}

export function MaskGraph(props: Props) {
  const { mask, tokens, row, size } = props;
  const seen = neighboursOf(mask, tokens.length, row);
  return (
    <figure class="lesson-figure">
      <figcaption>{say(size.length > 1 ? "learn.graph.plane" : "learn.graph.line")}</figcaption>
      <div class="scroll" tabIndex={0} role="group" aria-label={say("learn.graph.label")}>
        {size.length > 1 ? <Plane {...props} seen={seen} /> : <Line {...props} seen={seen} />}
      </div>
      <Told>
        {seen.length
          ? say("learn.graph.sees", { token: tokens[row] ?? "", count: seen.length, seen: seen.map((index) => tokens[index]).join(", ") })
          : say("learn.graph.nobody", { token: tokens[row] ?? "" })}
      </Told>
    </figure>
  );
}

function Line({ mask, tokens, row, pick, seen }: Props & { seen: number[] }) {
  const count = tokens.length;
  const longest = Math.max(...tokens.map((token) => short(token).length));
  const step = within(8 * longest + 12, 30, 110);
  const x = (index: number) => (index + 0.5) * step;
  const arcs = arcsOf(mask, count).filter(({ from, to }) => from !== to);
  const reach = (isBack: boolean) => {
    const radii = arcs.filter(({ from, to }) => to < from === isBack).map(({ from, to }) => Math.abs(x(from) - x(to)) / 2);
    const radius = Math.max(0, ...radii);
    return Math.min(radius, 60 + radius / 8);
  };
  const [above, below] = [reach(true) + 24, reach(false) + 24];
  return (
    <svg class="arcs" viewBox={`0 0 ${step * count} ${above + below}`} width={step * count} style={{ minWidth: `${LEAST * step * count}px` }} role="group" aria-label={say("learn.graph.line")}>
      {[...arcs].sort((a, b) => Number(a.from === row) - Number(b.from === row)).map((arc) => (
        <path key={`${arc.from},${arc.to}`} class={arc.from === row ? "arc marked" : "arc"} d={arcPath(arc, x, above, 12)} />
      ))}
      {tokens.map((token, n) => (
        <Node key={n} name={token} x={x(n)} y={above} width={step - 6} isChosen={n === row} isSeen={seen.includes(n)} hasRing={Boolean(mask[n * count + n])} pick={() => pick(n)} />
      ))}
    </svg>
  );
}

function Plane({ mask, tokens, size, row, pick, seen }: Props & { seen: number[] }) {
  const step = 54;
  const places = placesOn(size, step);
  const all = arcsOf(mask, tokens.length).filter(({ from, to }) => from !== to);
  const drawn = all.length > 700 ? all.filter(({ from }) => from === row) : all; // more would be a blot
  const [height, width] = [size[0] * step, size[1] * step];
  return (
    <svg class="arcs" viewBox={`0 0 ${width} ${height}`} width={width} style={{ minWidth: `${LEAST * width}px` }} role="group" aria-label={say("learn.graph.plane")}>
      {[...drawn].sort((a, b) => Number(a.from === row) - Number(b.from === row)).map(({ from, to }) => (
        <line key={`${from},${to}`} class={from === row ? "arc marked" : "arc"} x1={places[from].x} y1={places[from].y} x2={places[to].x} y2={places[to].y} />
      ))}
      {tokens.map((token, n) => (
        <Node key={n} name={token} x={places[n].x} y={places[n].y} width={step - 10} isChosen={n === row} isSeen={seen.includes(n)} hasRing={Boolean(mask[n * tokens.length + n])} pick={() => pick(n)} />
      ))}
    </svg>
  );
}

interface NodeProps {
  name: string;
  x: number;
  y: number;
  width: number;
  isChosen: boolean;
  isSeen: boolean;
  hasRing: boolean; // it looks at itself
  pick: () => void;
}

function Node({ name, x, y, width, isChosen, isSeen, hasRing, pick }: NodeProps) {
  const letters = Math.max(2, Math.floor(width / 7.4));
  const shown = name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
  return (
    <g
      class={`token-node${isChosen ? " chosen" : ""}${isSeen ? " seen" : ""}`}
      role="button"
      tabIndex={0}
      aria-pressed={isChosen}
      aria-label={name}
      onClick={pick}
      onKeyDown={(event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), pick())}
    >
      <rect class={hasRing ? "ring" : ""} x={x - width / 2} y={y - 11} width={width} height={22} rx={7} />
      <text x={x} y={y + 4.5} text-anchor="middle">
        {shown}
      </text>
    </g>
  );
}
