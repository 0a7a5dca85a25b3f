// What `api/learn` answers.
import type { Floats } from "../api";
import { language, say } from "../words";

export interface Said {
  en: string;
  es: string;
}

export interface Lesson {
  tokens: string[];
  size: number[]; // (N), or rows and columns
  num_heads: number;
  mask: Floats; // (N, N), 1 where i may look at j
  logits: Floats; // (heads, N, N), before the mask
  weights: Floats; // (heads, N, N)
  kernel: string;
  kernels: { name: string; reason: string | null }[];
  num_pairs: number;
  flops_formula: number;
  flops_full: number;
}

export interface Cost {
  lengths: number[];
  pairs: number[];
  pairs_full: number[];
  flops: number[];
  flops_full: number[];
}

export interface DemoInput {
  name: string;
  label: Said;
  value: number | string;
  low: number;
  high: number;
  step: number;
  choices: string[];
}

export interface Demo {
  name: string;
  items: string[];
  title: Said;
  given: string;
  right: Said;
  see: Said;
  inputs: DemoInput[];
}

export interface MatrixPicture {
  kind: "matrix";
  title: Said;
  rows: string[];
  columns: string[];
  values: number[][];
  digits: number;
}

export interface LinesPicture {
  kind: "lines";
  title: Said;
  x_label: Said;
  x: number[];
  series: Record<string, number[]>;
  labels: Record<string, Said>;
  log_x: boolean;
  log_y: boolean;
  marker: number | null;
}

export interface PointsPicture {
  kind: "points";
  title: Said;
  names: string[];
  places: number[][];
  weights: number[];
}

export type Picture = MatrixPicture | LinesPicture | PointsPicture;

export interface DemoAnswer {
  numbers: { label: Said; value: number; mark: "right" | "wrong" | "" }[];
  pictures: Picture[];
}

export const said = (text: Said): string => text[language.value];

// Whole numbers in full, others to five digits.
export function exact(value: number, digits = 5): string {
  if (Number.isInteger(value)) return value.toLocaleString(language.value);
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e6) return value.toExponential(digits - 1).replace(/-/g, "−").replace(/\.?0+e/, "e");
  return value.toLocaleString(language.value, { maximumSignificantDigits: digits });
}

// With so many digits after the point, for cells that stand below each other.
export function rounded(value: number, digits: number): string {
  const shown = value.toLocaleString(language.value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return /[1-9]/.test(shown) ? shown.replace("-", "−") : shown.replace("-", "");
}

// The core gives its reasons in English; names of its parts stay as they are.
const REASONS: [RegExp, string][] = [
  [/^the neighbourhood is not a list of edges$/, "edges"],
  [/^(\w+) needs the whole matrix$/, "matrix"],
  [/^(\w+) mixes the weights of whole rows$/, "rows"],
  [/^(\w+) mixes the weights$/, "mixes"],
  [/^the neighbourhood is not a band of finite width$/, "band"],
  [/^the neighbourhood is neither strided nor fixed$/, "sparse"],
  [/^the neighbourhood is neither a grid nor windows$/, "grid"],
  [/^the tokens are not on a plane, or some have no place on it$/, "plane"],
  [/^the tokens are not on a line$/, "line"],
  [/^(\w+) adds to the values$/, "values"],
  [/^(\w+) is not a dot product$/, "dot"],
  [/^(\w+) is not a product of features$/, "features"],
  [/^(\w+) is no distance$/, "distance"],
  [/^only where all look at all is one sum over the keys enough$/, "sum"],
  [/^it looks at all keys that are real$/, "all"],
  [/^a position adds to the logits$/, "logits"],
  [/^it would serve as well, but comes later in the table$/, "later"],
  [/^the band is not narrow against the number of tokens$/, "wide"],
];

export function reasonIn(reason: string): string {
  for (const [form, name] of REASONS) {
    const found = form.exec(reason);
    if (found) return say(`learn.reason.${name}`, { part: found[1] ?? "" });
  }
  return reason;
}
