// Weights of several heads as one.
export type Heads = "mean" | "max" | "min" | number; // a number counts from 1

export function headsOf(text: string | undefined): Heads {
  if (text === "max" || text === "min") return text;
  const given = Number(text);
  return Number.isInteger(given) && given >= 1 ? given : "mean";
}

// `values` are (heads, length) in raster order.
export function fused(values: Float32Array, numHeads: number, heads: Heads): Float32Array {
  const length = values.length / numHeads;
  const row = (head: number) => values.subarray(head * length, (head + 1) * length);
  if (typeof heads === "number") return row(Math.min(heads, numHeads) - 1);
  const out = row(0).slice();
  for (let head = 1; head < numHeads; head++) {
    row(head).forEach((weight, n) => {
      if (heads === "mean") out[n] += weight;
      else out[n] = heads === "max" ? Math.max(out[n], weight) : Math.min(out[n], weight);
    });
  }
  return heads === "mean" ? out.map((weight) => weight / numHeads) : out;
}
