// Heat on a picture: point to read a number, click or press arrow keys to choose a patch.
import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Lattice } from "../api";
import type { Scale } from "./colours";
import { isPlaced, place, shownCells, tokenAt, walked, type Field, type Placed } from "./field";
import { heatPixels, hiddenPixels, type Drawn, type Pixels } from "./heat_pixels";
import { paint } from "./picture";
import "./parts.css";

export interface Mark {
  row: number;
  column: number;
  cell: [number, number];
}

interface Props {
  pixels: Pixels | null;
  size: [number, number];
  field: Field | null; // null: the picture alone
  scale: Scale;
  drawn: Drawn;
  mark: Mark | null;
  label: string;
  lattice: Lattice; // of the tokens that can be chosen
  at: string;
  choose: (at: string) => void;
  read: (at: string | null) => void; // the pointer is over this place
  keys?: (key: string) => boolean; // further keys; true: it was one
  canvas?: RefObject<HTMLCanvasElement>;
}

export function Heat(props: Props) {
  const own = useRef<HTMLCanvasElement>(null);
  const canvas = props.canvas ?? own;
  const { pixels, field, scale, drawn, mark, size, lattice } = props;
  useLayoutEffect(() => {
    if (!pixels) return;
    const data = field ? heatPixels(pixels, field, scale, drawn) : pixels.data;
    const context = paint(canvas.current, data, pixels.width, pixels.height);
    if (context && mark) outline(context, mark, pixels.factor);
  });
  const under = (event: MouseEvent): string => {
    const box = canvas.current!.getBoundingClientRect();
    const y = ((event.clientY - box.top) / (box.height || 1)) * size[0];
    const x = ((event.clientX - box.left) / (box.width || 1)) * size[1];
    return `${y.toFixed(2)},${x.toFixed(2)}`;
  };
  const click = (event: MouseEvent) => {
    const found = tokenAt(under(event), lattice, size);
    if (isPlaced(found)) props.choose(seenPlace(found, lattice, size));
  };
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const next = walked(props.at, event.key, lattice, size);
    if (next !== null) props.choose(next);
    else if (event.key === "Home") props.choose("");
    else if (!props.keys?.(event.key)) return;
    event.preventDefault();
  };
  return (
    <canvas
      ref={canvas}
      class="heat"
      tabIndex={0}
      role="application"
      aria-label={props.label}
      width={pixels?.width ?? size[1]}
      height={pixels?.height ?? size[0]}
      onPointerMove={(event) => props.read(under(event))}
      onPointerLeave={() => props.read(null)}
      onClick={click}
      onKeyDown={press}
    />
  );
}

// The place of a token, inside the picture also where its cell reaches beyond.
function seenPlace(token: Placed, lattice: Lattice, size: [number, number]): string {
  const cell = lattice.cell!;
  const [rows, columns] = shownCells({ size: lattice.size, cell }, size);
  return place(Math.min(token.row, rows - 1), Math.min(token.column, columns - 1), cell);
}

function outline(context: CanvasRenderingContext2D, { row, column, cell }: Mark, factor: number): void {
  const [y, x, height, width] = [row * cell[0], column * cell[1], ...cell].map((side) => side * factor);
  for (const [colour, thick] of [
    ["#000000", 5],
    ["#ffffff", 2.5],
  ] as const) {
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.strokeRect(x + 1, y + 1, width - 2, height - 2);
  }
}

// The same small, and not to be touched.
export function HeatTile(props: { pixels: Pixels | null; size: [number, number]; field: Field; scale: Scale; drawn: Drawn }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { pixels, field, scale, drawn } = props;
  useLayoutEffect(() => {
    if (pixels) paint(canvas.current, heatPixels(pixels, field, scale, drawn), pixels.width, pixels.height);
  }, [pixels, field, scale.low, scale.high, drawn.opacity, drawn.isSmooth]);
  return <canvas ref={canvas} aria-hidden="true" width={pixels?.width ?? props.size[1]} height={pixels?.height ?? props.size[0]} />;
}

// The picture with some cells hidden.
export function Hidden(props: {
  pixels: Pixels | null;
  instead: Pixels | null;
  size: [number, number];
  field: Field;
  isHidden: Uint8Array;
  label: string;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const { pixels, instead, field, isHidden, size } = props;
  useLayoutEffect(() => {
    if (pixels) paint(canvas.current, hiddenPixels(pixels, field, isHidden, instead), pixels.width, pixels.height);
  });
  return (
    <canvas ref={canvas} class="hidden-part" role="img" aria-label={props.label} width={pixels?.width ?? size[1]} height={pixels?.height ?? size[0]} />
  );
}
