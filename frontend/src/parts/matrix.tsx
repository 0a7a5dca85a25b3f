// Weights as a matrix with names: a row for each token that looks, a column for each that is looked at.
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { number, say } from "../words";
import { onPaper, scaleOf, tilePixels, type Scale } from "./colours";
import { Told } from "./controls";
import { stepOf, within } from "./field";
import { visible } from "./tokens";
import "./parts.css";

const LETTERS = 13;
export const short = (token: string): string => {
  const shown = visible(token);
  return shown.length > LETTERS ? `${shown.slice(0, LETTERS - 1)}…` : shown;
};

export const matrixScale = (values: Float32Array, isDark: boolean): Scale => onPaper(scaleOf(values, { fromZero: true, top: 0.998 }), isDark);

interface Props {
  values: Float32Array; // (rows, columns)
  labels: [string[], string[]];
  scale: Scale;
  chosen: { row: number | null; column: number | null };
  pick: (row: number, column: number) => void;
  what: string; // for the label of the canvas
  canvas?: RefObject<HTMLCanvasElement>;
}

interface Placing {
  left: number;
  top: number;
  side: number;
}

const MOST_PIXELS = 8000; // browsers draw nothing on canvases that are much larger

export function Matrix({ values, labels, scale, chosen, pick, what, canvas: given }: Props) {
  const own = useRef<HTMLCanvasElement>(null);
  const canvas = given ?? own;
  const placing = useRef<Placing>({ left: 0, top: 0, side: 1 });
  const [pointed, setPointed] = useState<[number, number] | null>(null);
  const [rows, columns] = [labels[0].length, labels[1].length];
  useLayoutEffect(() => {
    placing.current = draw(canvas.current, values, labels, scale, chosen) ?? placing.current;
  });
  const under = (event: MouseEvent): [number, number] | null => {
    const box = canvas.current!.getBoundingClientRect();
    const { left, top, side } = placing.current;
    const row = Math.floor((event.clientY - box.top - top) / side);
    const column = Math.floor((event.clientX - box.left - left) / side);
    return row >= 0 && row < rows && column >= 0 && column < columns ? [row, column] : null;
  };
  const press = (event: KeyboardEvent) => {
    const step = stepOf(event.key);
    if (!step) return;
    event.preventDefault();
    const [row, column] = pointed ?? [chosen.row ?? 0, chosen.column ?? 0];
    const next: [number, number] = [within(row + step[0], 0, rows - 1), within(column + step[1], 0, columns - 1)];
    setPointed(next);
    pick(...next);
  };
  const isInside = pointed && pointed[0] < rows && pointed[1] < columns;
  const said = isInside
    ? say("parts.looks", { from: visible(labels[0][pointed[0]]), to: visible(labels[1][pointed[1]]), weight: number(values[pointed[0] * columns + pointed[1]]) })
    : say("parts.matrix.hint");
  return (
    <>
      <div class="scroll tall">
        <canvas
          ref={canvas}
          class="matrix"
          tabIndex={0}
          role="application"
          aria-label={say("parts.matrix", { what, rows, columns, low: number(scale.low), high: number(scale.high) })}
          onPointerMove={(event) => setPointed(under(event))}
          onPointerLeave={() => setPointed(null)}
          onClick={(event) => {
            const found = under(event);
            if (found) pick(...found);
          }}
          onKeyDown={press}
        />
      </div>
      <Told>{said}</Told>
    </>
  );
}

function draw(
  canvas: HTMLCanvasElement | null,
  values: Float32Array,
  labels: [string[], string[]],
  scale: Scale,
  chosen: { row: number | null; column: number | null },
): Placing | null {
  const context = canvas?.getContext("2d");
  if (!canvas || !context) return null;
  const [rows, columns] = [labels[0].length, labels[1].length];
  const style = getComputedStyle(canvas);
  const font = (size: number) => `${size}px system-ui, sans-serif`;
  context.font = font(13);
  const [left, top] = labels.map((tokens) => 12 + Math.ceil(tokens.reduce((most, token) => Math.max(most, context.measureText(short(token)).width), 0)));
  const room = canvas.parentElement?.clientWidth ?? 600;
  const longest = Math.max(rows, columns);
  const side = Math.min(within(Math.floor((room - left) / columns), 12, 28), Math.max(1, (MOST_PIXELS - 200) / longest));
  const [width, height] = [left + side * columns + 1, top + side * rows + 1];
  const ratio = Math.max(width, height) > 2400 ? 1 : devicePixelRatio || 1;
  [canvas.width, canvas.height] = [Math.ceil(ratio * width), Math.ceil(ratio * height)];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  context.scale(ratio, ratio);
  context.fillStyle = style.getPropertyValue("--paper");
  context.fillRect(0, 0, width, height);
  const tile = document.createElement("canvas");
  [tile.width, tile.height] = [columns, rows];
  tile.getContext("2d")!.putImageData(new ImageData(tilePixels(values, scale), columns, rows), 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(tile, left, top, side * columns, side * rows);
  context.fillStyle = style.getPropertyValue("--ink");
  context.font = font(Math.min(13, side));
  context.textBaseline = "middle";
  context.textAlign = "right";
  labels[0].forEach((token, n) => context.fillText(short(token), left - 5, top + (n + 0.5) * side));
  context.textAlign = "left";
  labels[1].forEach((token, n) => {
    context.save();
    context.translate(left + (n + 0.5) * side, top - 5);
    context.rotate(-Math.PI / 2);
    context.fillText(short(token), 0, 0);
    context.restore();
  });
  context.strokeStyle = style.getPropertyValue("--accent");
  context.lineWidth = 2;
  if (chosen.row !== null) context.strokeRect(left, top + chosen.row * side, columns * side, side);
  if (chosen.column !== null) context.strokeRect(left + chosen.column * side, top, side, rows * side);
  return { left, top, side };
}
