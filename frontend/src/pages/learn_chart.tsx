// Lines on plain or logarithmic axes, drawn as SVG: small, and sharp on paper too.
import { say } from "../words";
import { exact } from "./learn_answers";

const [WIDTH, HEIGHT] = [440, 250];
const [LEFT, RIGHT, TOP, BOTTOM] = [58, 12, 12, 40];

export interface Series {
  label: string;
  y: number[];
}

// Places of ticks: powers of ten where the axis is logarithmic (not all of many), else about five round numbers.
export function ticks(low: number, high: number, isLog: boolean): number[] {
  if (isLog) {
    const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
    const step = Math.max(1, Math.ceil((last - first) / 5));
    const found = [];
    for (let power = first; power <= last; power += step) found.push(10 ** power);
    return found.length > 1 ? found : [low, high];
  }
  const raw = (high - low) / 5 || 1;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = size * ([1, 2, 5, 10].find((factor) => factor * size >= raw) ?? 10);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + 1e-9 * step; at += step) found.push(Math.abs(at) < step * 1e-6 ? 0 : Number(at.toPrecision(12)));
  return found;
}

export function tickName(value: number, isLog: boolean): string {
  const power = Math.round(Math.log10(value));
  if (isLog && Math.abs(power) > 3 && Math.abs(value / 10 ** power - 1) < 1e-9) return `10${[...String(power)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)] ?? "⁻").join("")}`;
  return exact(value, 3);
}

export function Chart(props: { title: string; across: string; x: number[]; series: Series[]; logX?: boolean; logY?: boolean; marker?: number | null; markerSaid?: string }) {
  const { x, series, logX = false, logY = false } = props;
  const all = series.flatMap(({ y }) => y).filter((value) => !logY || value > 0);
  const usable = x.filter((value) => !logX || value > 0);
  let [low, high] = [Math.min(...all), Math.max(...all)];
  const [first, last] = [Math.min(...usable), Math.max(...usable)];
  if (!logY && low > 0 && low < 0.6 * high) low = 0;
  if (high <= low) [low, high] = logY ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  const bend = (isLog: boolean) => (value: number) => (isLog ? Math.log10(value) : value);
  const place = (value: number, isLog: boolean, from: number, to: number, start: number, end: number) => {
    const f = bend(isLog);
    return start + ((f(value) - f(from)) / (f(to) - f(from) || 1)) * (end - start);
  };
  const px = (value: number) => place(value, logX, first, last, LEFT, WIDTH - RIGHT);
  const py = (value: number) => place(value, logY, low, high, HEIGHT - BOTTOM, TOP);
  const isShown = (value: number, n: number) => (!logY || value > 0) && (!logX || x[n] > 0);
  const marker = props.marker ?? null;
  return (
    <figure class="lesson-figure">
      <figcaption>{props.title}</figcaption>
      <svg class="lesson-chart" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={summary(props.title, series)}>
        {ticks(low, high, logY).map((value) => (
          <g key={value}>
            <line class="rule" x1={LEFT} x2={WIDTH - RIGHT} y1={py(value)} y2={py(value)} />
            <text x={LEFT - 6} y={py(value) + 4} text-anchor="end">
              {tickName(value, logY)}
            </text>
          </g>
        ))}
        {ticks(first, last, logX).map((value) => (
          <text key={value} x={px(value)} y={HEIGHT - BOTTOM + 16} text-anchor="middle">
            {tickName(value, logX)}
          </text>
        ))}
        <text x={(LEFT + WIDTH - RIGHT) / 2} y={HEIGHT - 6} text-anchor="middle">
          {props.across}
        </text>
        {marker !== null && marker >= first && marker <= last && (
          <g>
            <line class="marker" x1={px(marker)} x2={px(marker)} y1={TOP} y2={HEIGHT - BOTTOM} />
            {props.markerSaid && (
              <text class="marker" x={px(marker) + (px(marker) > WIDTH / 2 ? -5 : 5)} y={TOP + 10} text-anchor={px(marker) > WIDTH / 2 ? "end" : "start"}>
                {props.markerSaid}
              </text>
            )}
          </g>
        )}
        {series.map(({ label, y }, n) => (
          <polyline key={label} class={`line-${n}`} points={y.flatMap((value, at) => (isShown(value, at) ? [`${px(x[at]).toFixed(1)},${py(value).toFixed(1)}`] : [])).join(" ")} />
        ))}
      </svg>
      <ul class="lesson-legend">
        {series.map(({ label }, n) => (
          <li key={label}>
            <svg width="26" height="8" aria-hidden="true" class="lesson-chart">
              <polyline class={`line-${n}`} points="1,4 25,4" />
            </svg>
            {label}
          </li>
        ))}
      </ul>
    </figure>
  );
}

function summary(title: string, series: Series[]): string {
  const ends = series.map(({ label, y }) => say("learn.chart.from", { label, first: exact(y[0]), last: exact(y[y.length - 1]) }));
  return [title, ...ends].join(". ");
}
