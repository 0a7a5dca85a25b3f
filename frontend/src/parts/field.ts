// Numbers that lie on a picture, and tokens that have a place on it.
import type { Lattice } from "../api";

// A grid of numbers from `start` on in `values`; the grid may reach beyond the picture, where nothing of it is shown.
export interface Field {
  values: Float32Array;
  start: number;
  grid: [number, number];
  cell: [number, number]; // height and width in pixels of the picture
}

export interface Token {
  index: number;
  row?: number; // only where it has a place
  column?: number;
}

export interface Placed extends Token {
  row: number;
  column: number;
}

export const within = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

export const isPlaced = (token: Token | null): token is Placed => token !== null && token.row !== undefined;

// The number under a place given in cells from the upper left corner; null beyond the grid.
export function nearest({ values, start, grid }: Field, row: number, column: number): number | null {
  const [y, x] = [Math.floor(row), Math.floor(column)];
  return y >= 0 && x >= 0 && y < grid[0] && x < grid[1] ? values[start + y * grid[1] + x] : null;
}

// The same, between the middles of cells (bilinear).
export function between(field: Field, row: number, column: number): number | null {
  const { values, start, grid } = field;
  if (row >= grid[0] || column >= grid[1]) return null;
  const y = within(row - 0.5, 0, grid[0] - 1);
  const x = within(column - 0.5, 0, grid[1] - 1);
  const [top, left] = [Math.floor(y), Math.floor(x)];
  const [down, right] = [y - top, x - left];
  const at = (r: number, c: number) => values[start + Math.min(r, grid[0] - 1) * grid[1] + Math.min(c, grid[1] - 1)];
  return (
    (1 - down) * ((1 - right) * at(top, left) + right * at(top, left + 1)) +
    down * ((1 - right) * at(top + 1, left) + right * at(top + 1, left + 1))
  );
}

export const part = ({ values, start, grid }: Field): Float32Array => values.subarray(start, start + grid[0] * grid[1]);

// A field read off in the middles of the cells of another grid, so that two of them can be compared.
export function resampled(field: Field, grid: [number, number], cell: [number, number]): Float32Array {
  return Float32Array.from({ length: grid[0] * grid[1] }, (_, n) => {
    const row = ((Math.floor(n / grid[1]) + 0.5) * cell[0]) / field.cell[0];
    const column = (((n % grid[1]) + 0.5) * cell[1]) / field.cell[1];
    return nearest(field, within(row, 0, field.grid[0] - 1e-6), within(column, 0, field.grid[1] - 1e-6)) ?? 0;
  });
}

// The token that `at` names: "e0" is the first extra one (the class token), "12,20" the patch at these pixels (y, x).
// Nothing stands for the class token, or for the patch in the middle where there is none. Null: no such token here.
export function tokenAt(at: string, { size, extra, cell }: Lattice, picture: [number, number]): Token | null {
  if (at === "" && extra) return { index: 0 };
  if (at.startsWith("e")) return extra ? { index: within(Number(at.slice(1)) || 0, 0, extra - 1) } : null;
  const [y, x] = at === "" ? [picture[0] / 2, picture[1] / 2] : at.split(",").map(Number);
  if (!cell || size.length !== 2 || !Number.isFinite(y) || !Number.isFinite(x)) return null;
  const row = within(Math.floor(y / cell[0]), 0, size[0] - 1);
  const column = within(Math.floor(x / cell[1]), 0, size[1] - 1);
  return { index: extra + row * size[1] + column, row, column };
}

// `at` of the middle of a cell, kept inside the picture where the cell reaches beyond it.
export function place(row: number, column: number, cell: [number, number]): string {
  return [(row + 0.5) * cell[0], (column + 0.5) * cell[1]].map((at) => Number(at.toFixed(2))).join(",");
}

// Rows and columns that can be seen: a padded grid has more.
export function shownCells(lattice: { size: number[]; cell: [number, number] }, picture: [number, number]): [number, number] {
  const count = (side: 0 | 1) => Math.max(1, Math.min(lattice.size[side], Math.ceil(picture[side] / lattice.cell[side] - 1e-6)));
  return [count(0), count(1)];
}

const STEPS: Record<string, [number, number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

export const stepOf = (key: string): [number, number] | undefined => STEPS[key];

// Where an arrow key leads from `at`: from what has no place, to the middle.
export function walked(at: string, key: string, lattice: Lattice, picture: [number, number]): string | null {
  const step = stepOf(key);
  if (!step || !lattice.cell || lattice.size.length !== 2) return null;
  const cell = lattice.cell;
  const [rows, columns] = shownCells({ size: lattice.size, cell }, picture);
  const now = at.includes(",") ? tokenAt(at, lattice, picture) : null;
  const [row, column] = isPlaced(now)
    ? [now.row + step[0], now.column + step[1]]
    : [(rows - 1) >> 1, (columns - 1) >> 1];
  return place(within(row, 0, rows - 1), within(column, 0, columns - 1), cell);
}
