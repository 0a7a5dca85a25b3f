// How far two maps put the same cells first.

// Ranks from 1; equal numbers share the mean of theirs.
export function ranks(values: ArrayLike<number>): Float64Array {
  const order = Array.from({ length: values.length }, (_, n) => n).sort((a, b) => values[a] - values[b]);
  const out = new Float64Array(values.length);
  for (let first = 0; first < order.length; ) {
    let last = first;
    while (last + 1 < order.length && values[order[last + 1]] === values[order[first]]) last++;
    for (let n = first; n <= last; n++) out[order[n]] = (first + last) / 2 + 1;
    first = last + 1;
  }
  return out;
}

// Spearman's rank correlation; null where one of the two is the same everywhere.
export function rankCorrelation(a: ArrayLike<number>, b: ArrayLike<number>): number | null {
  if (a.length !== b.length || a.length < 2) return null;
  const [x, y] = [ranks(a), ranks(b)];
  const middle = (a.length + 1) / 2;
  let [together, ofX, ofY] = [0, 0, 0];
  for (let n = 0; n < x.length; n++) {
    together += (x[n] - middle) * (y[n] - middle);
    ofX += (x[n] - middle) ** 2;
    ofY += (y[n] - middle) ** 2;
  }
  return ofX && ofY ? together / Math.sqrt(ofX * ofY) : null;
}
