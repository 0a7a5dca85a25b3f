// From a mask to what is drawn of it.

export interface Arc {
  from: number; // who looks
  to: number; // who is seen
}

export function arcsOf(mask: ArrayLike<number>, count: number): Arc[] {
  const found: Arc[] = [];
  for (let from = 0; from < count; from++) for (let to = 0; to < count; to++) if (mask[from * count + to]) found.push({ from, to });
  return found;
}

export const neighboursOf = (mask: ArrayLike<number>, count: number, from: number): number[] =>
  arcsOf(mask, count).filter((arc) => arc.from === from).map((arc) => arc.to);

// On a line: arcs above look back and arcs below look ahead; who looks at itself has a ring.
export function arcPath({ from, to }: Arc, x: (index: number) => number, y: number, gap: number): string {
  const radius = Math.abs(x(from) - x(to)) / 2;
  const side = to < from ? y - gap : y + gap;
  // Against the clock: from the right to the left over the top, from the left to the right under the bottom.
  const height = Math.min(radius, 60 + radius / 8);
  return `M${x(from)} ${side}A${radius} ${height} 0 0 0 ${x(to)} ${side}`;
}

export function placesOn(size: number[], step: number): { x: number; y: number }[] {
  const columns = size[1];
  return Array.from({ length: size[0] * columns }, (_, n) => ({ x: (n % columns + 0.5) * step, y: (Math.floor(n / columns) + 0.5) * step }));
}
