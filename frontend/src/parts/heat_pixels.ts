// Heat over a grey picture, pixel by pixel: pure, so that its colours can be tested.
import { colourAt, tables, type Scale } from "./colours";
import { between, nearest, type Field } from "./field";

export interface Pixels {
  data: Uint8ClampedArray<ArrayBuffer>; // RGBA
  width: number;
  height: number;
  factor: number; // pixels here for one of the picture
}

export interface Drawn {
  opacity: number; // 0 to 1
  isSmooth: boolean;
}

const grey = (data: Uint8ClampedArray, at: number): number => 0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2];

export function heatPixels(picture: Pixels, field: Field, scale: Scale, { opacity, isSmooth }: Drawn): Uint8ClampedArray<ArrayBuffer> {
  const { data, width, height, factor } = picture;
  const table = tables[scale.table];
  const out = new Uint8ClampedArray(data.length);
  const value = isSmooth ? between : nearest;
  for (let y = 0, at = 0; y < height; y++) {
    const row = (y + 0.5) / factor / field.cell[0];
    for (let x = 0; x < width; x++, at += 4) {
      const found = value(field, row, (x + 0.5) / factor / field.cell[1]);
      const light = grey(data, at);
      const share = found === null ? 0 : opacity;
      const colour = found === null ? 0 : colourAt(scale, found);
      for (let c = 0; c < 3; c++) out[at + c] = (1 - share) * light + share * table[colour + c];
      out[at + 3] = 255;
    }
  }
  return out;
}

// The picture with `instead` where cells are hidden, or flat grey where there is no such picture.
export function hiddenPixels(picture: Pixels, field: Field, isHidden: Uint8Array, instead: Pixels | null): Uint8ClampedArray<ArrayBuffer> {
  const { width, height, factor } = picture;
  const out = new Uint8ClampedArray(picture.data);
  const [rows, columns] = field.grid;
  for (let y = 0, at = 0; y < height; y++) {
    const row = Math.floor((y + 0.5) / factor / field.cell[0]);
    for (let x = 0; x < width; x++, at += 4) {
      const column = Math.floor((x + 0.5) / factor / field.cell[1]);
      if (row >= rows || column >= columns || !isHidden[row * columns + column]) continue;
      for (let c = 0; c < 3; c++) out[at + c] = instead ? instead.data[at + c] : 128;
    }
  }
  return out;
}

// Which cells are hidden at a step, by falling relevance and equal ones in their order, as Python orders them.
export function hiddenAt(values: Float32Array, fraction: number, isDeletion: boolean): Uint8Array {
  const order = Array.from(values.keys()).sort((a, b) => values[b] - values[a] || a - b);
  const count = Math.round(fraction * values.length);
  const isHidden = new Uint8Array(values.length).fill(isDeletion ? 0 : 1);
  for (const cell of order.slice(0, count)) isHidden[cell] = isDeletion ? 1 : 0;
  return isHidden;
}
