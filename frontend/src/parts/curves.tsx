// Curves on one pair of axes, with a legend that says their values under the pointer.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { isDark } from "../theme";
import { number, say } from "../words";
import { aligned, valueAt, type Curve } from "./curve_data";
import "./curves.css";

// Okabe and Ito's colours, which colour-blind people tell apart, made lighter or darker until each has a contrast of 3.
const LIGHT = ["#0072b2", "#c24e00", "#008562", "#b0528a", "#8a6d00", "#3f7fa8", "#6a4fb3", "#7a5230"];
const DARK = ["#56b4e9", "#f0883e", "#2fc79a", "#e39bc4", "#e6c229", "#9ecbe8", "#b39df0", "#cda27a"];

export function colourOf(index: number): string {
  const palette = isDark.value ? DARK : LIGHT;
  return palette[index % palette.length];
}

interface Props {
  curves: Curve[];
  title: string;
  across: string; // what the x axis is
  height?: number;
}

export function Curves({ curves, title, across, height = 260 }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const data = useMemo(() => aligned(curves), [curves]);
  const latest = useRef(data);
  latest.current = data;
  // Only another set of curves, another colour or another axis makes a new chart; more points are added to the old one.
  const look = JSON.stringify([curves.map(({ label, colour, isDashed }) => [label, colour, isDashed]), across, height, isDark.value]);

  useEffect(() => {
    const holder = place.current!;
    const made = new uPlot(options(curves, across, holder.clientWidth || 320, height, setAt), latest.current as uPlot.AlignedData, holder);
    chart.current = made;
    const sizes = new ResizeObserver(() => holder.clientWidth && made.setSize({ width: holder.clientWidth, height }));
    sizes.observe(holder);
    return () => {
      sizes.disconnect();
      made.destroy();
      chart.current = null;
      setAt(null);
    };
  }, [look]);
  useEffect(() => chart.current?.setData(data as uPlot.AlignedData), [data]);
  useEffect(() => {
    curves.forEach(({ label }, index) => chart.current?.setSeries(index + 1, { show: !hidden.has(label) }));
  }, [hidden, look]);

  const toggle = (label: string) => {
    const next = new Set(hidden);
    if (!next.delete(label)) next.add(label);
    setHidden(next);
  };
  const where = at === null ? say("curves.last") : `${across} ${number(at, 4)}`;
  return (
    <figure class="curves">
      <figcaption>{title}</figcaption>
      <div ref={place} role="img" aria-label={summary(title, curves)} />
      <ul class="legend" aria-label={say("curves.legend", { title })}>
        {curves.map((curve) => {
          const value = valueAt(curve, at);
          return (
            <li key={curve.label}>
              <button type="button" aria-pressed={!hidden.has(curve.label)} onClick={() => toggle(curve.label)}>
                <span class={`swatch ${curve.isDashed ? "dashed" : ""}`} style={{ color: colourOf(curve.colour) }} aria-hidden="true" />
                {curve.label} <b>{value === null ? "–" : number(value)}</b>
              </button>
            </li>
          );
        })}
        <li class="note">{where}</li>
      </ul>
    </figure>
  );
}

// For those who do not see the picture.
export function summary(title: string, curves: Curve[]): string {
  const ends = curves.filter((curve) => curve.y.length).map((curve) => say("curves.from", {
    label: curve.label,
    first: number(curve.y[0]),
    last: number(curve.y[curve.y.length - 1]),
  }));
  return [title, ...ends].join(". ");
}

function options(curves: Curve[], across: string, width: number, height: number, onPlace: (at: number | null) => void): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const [ink, line] = [style.getPropertyValue("--faint").trim(), style.getPropertyValue("--line").trim()];
  const font = "12px system-ui, sans-serif";
  const axis = { stroke: ink, font, labelFont: font, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const words = (_: uPlot, splits: number[]) => splits.map((value) => number(value, 4));
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false } },
    scales: { x: { time: false } },
    axes: [
      { ...axis, label: across, labelSize: 18, size: 32, values: words },
      { ...axis, size: 58, values: words },
    ],
    series: [
      {},
      ...curves.map(({ label, colour, isDashed, x }): uPlot.Series => ({
        label,
        stroke: colourOf(colour),
        width: 2,
        dash: isDashed ? [6, 5] : undefined,
        points: { show: x.length === 1 ? true : undefined },
      })),
    ],
    hooks: {
      setCursor: [(plot) => onPlace(plot.cursor.idx === null || plot.cursor.idx === undefined ? null : (plot.data[0][plot.cursor.idx] ?? null))],
    },
  };
}
