// What the colours of a band stand for, and where a value lies on them.
import type { MapBand } from "../api";
import { number, say } from "../words";

// Hard steps, as the tiles have them: applicability jumps at 1.
export function gradient(colours: string[]): string {
  const parts = colours.map((colour, n) => `${colour} ${share(n, colours.length)} ${share(n + 1, colours.length)}`);
  return `linear-gradient(to right, ${parts.join(", ")})`;
}

const share = (n: number, count: number): string => `${((100 * n) / count).toFixed(3)}%`;

export const unitOf = (band: string, target: string): string => (band === "applicability" ? say("map.threshold") : target);

// Bands that another tool added are called as it called them.
export function bandName(band: string): string {
  const key = `map.band.${band}`;
  const said = say(key);
  return said === key ? band : said;
}

// Beyond both ends colours stay the same, but nothing is less alike than not at all.
export function legendNumbers({ name, low, high }: MapBand): [string, string, string] {
  const isLeast = name === "applicability";
  return [`${isLeast ? "" : "≤ "}${number(low)}`, number((low + high) / 2), `≥ ${number(high)}`];
}

export function Legend({ band, target }: { band: MapBand; target: string }) {
  const [low, middle, high] = legendNumbers(band);
  const unit = unitOf(band.name, target);
  return (
    <div class="map-legend" role="img" aria-label={say("map.legend", { band: bandName(band.name), low: number(band.low), high: number(band.high), unit })}>
      <div class="colours" style={{ backgroundImage: gradient(band.colours) }} />
      <div class="ticks">
        <span>{low}</span>
        <span>{middle}</span>
        <span>{high}</span>
      </div>
      <div class="unit">
        {unit} · {say("map.noData")}
      </div>
    </div>
  );
}

export interface Span {
  from: number;
  to: number;
}

// The legend's scale, made longer where the interval leaves it.
export function spanOf(band: MapBand, low: number, high: number): Span {
  return { from: Math.min(band.low, low), to: Math.max(band.high, high) };
}

export const along = ({ from, to }: Span, value: number): number => (to > from ? (100 * (value - from)) / (to - from) : 50);

export function Interval({ band, value, low, high }: { band: MapBand; value: number; low: number; high: number }) {
  const span = spanOf(band, low, high);
  const percent = (at: number) => `${along(span, at)}%`;
  const said = { from: number(span.from), to: number(span.to), value: number(value), low: number(low), high: number(high) };
  return (
    <div class="interval" role="img" aria-label={say("map.intervalBar", said)}>
      <div class="track">
        <div
          class="colours"
          style={{ left: percent(band.low), width: `${along(span, band.high) - along(span, band.low)}%`, backgroundImage: gradient(band.colours) }}
        />
        <div class="range" style={{ left: percent(low), width: `${along(span, high) - along(span, low)}%` }} />
        <div class="dot" style={{ left: percent(value) }} />
      </div>
      <div class="ticks">
        <span>{said.from}</span>
        <span>{said.to}</span>
      </div>
    </div>
  );
}
