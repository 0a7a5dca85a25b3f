// From columns of metrics.csv to curves on one axis.
import type { Metrics } from "../api";

export type Axis = "step" | "seconds" | "epoch";
export const AXES: Axis[] = ["step", "seconds", "epoch"];
const NOT_DRAWN = new Set<string>([...AXES, "samples"]);

export interface Curve {
  label: string;
  colour: number; // which of the palette
  isDashed: boolean;
  x: number[];
  y: number[];
}

// What can be drawn: every column with a number in it, validation before training, loss after what is better if high.
export function drawable(several: Metrics[]): string[] {
  const found = new Set<string>();
  for (const metrics of several)
    for (const [name, values] of Object.entries(metrics))
      if (!NOT_DRAWN.has(name) && values.some((value) => value !== null)) found.add(name);
  const rank = (name: string) => (name.startsWith("val_") ? 0 : 2) + (name.endsWith("loss") ? 1 : 0);
  return [...found].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

export function usualMetric(names: string[], score: string | undefined): string | undefined {
  const wanted = score && `val_${score.toLowerCase().replaceAll(" ", "_")}`;
  return names.find((name) => name === wanted) ?? names[0];
}

// Rows with both numbers, in the order of x. A resumed run may have a step twice: the later row counts.
export function points(metrics: Metrics, axis: Axis, column: string): { x: number[]; y: number[] } {
  const across = metrics[axis] ?? [];
  const up = metrics[column] ?? [];
  const found = new Map<number, number>();
  across.forEach((x, row) => {
    const y = up[row];
    if (x !== null && Number.isFinite(x) && y !== null && y !== undefined && Number.isFinite(y)) found.set(x, y);
  });
  const x = [...found.keys()].sort((a, b) => a - b);
  return { x, y: x.map((at) => found.get(at)!) };
}

// One shared x for all; `undefined` where a curve has no point of its own, which the line passes over.
export function aligned(curves: Pick<Curve, "x" | "y">[]): [number[], ...(number | undefined)[][]] {
  const x = [...new Set(curves.flatMap((curve) => curve.x))].sort((a, b) => a - b);
  const place = new Map(x.map((value, index) => [value, index]));
  const columns = curves.map((curve) => {
    const column = new Array<number | undefined>(x.length).fill(undefined);
    curve.x.forEach((at, index) => (column[place.get(at)!] = curve.y[index]));
    return column;
  });
  return [x, ...columns];
}

// What a curve says at `at`: its last point up to there; with no place, its last point.
export function valueAt(curve: Pick<Curve, "x" | "y">, at: number | null): number | null {
  let value: number | null = null;
  for (let index = 0; index < curve.x.length; index++) {
    if (at !== null && curve.x[index] > at) break;
    value = curve.y[index];
  }
  return value;
}
