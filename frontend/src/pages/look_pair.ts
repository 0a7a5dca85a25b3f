// Two models may see one image at different sizes: places and fields of the one in pixels of the other.
import type { Field } from "../parts/field";

type Size = [number, number];

export function scaledAt(at: string, from: Size, to: Size): string {
  if (!at.includes(",") || (from[0] === to[0] && from[1] === to[1])) return at;
  const [y, x] = at.split(",").map(Number);
  return [(y * to[0]) / from[0], (x * to[1]) / from[1]].map((place) => Number(place.toFixed(2))).join(",");
}

export const scaledField = (field: Field, from: Size, to: Size): Field => ({
  ...field,
  cell: [(field.cell[0] * to[0]) / from[0], (field.cell[1] * to[1]) / from[1]],
});
