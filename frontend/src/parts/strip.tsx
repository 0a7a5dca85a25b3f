// Is the map faithful? The probability while the most relevant patches go, or come, beside a random order in grey.
import { floats, type Strip } from "../api";
import { number, say } from "../words";
import { Choice, percent, Slider, Told } from "./controls";

const CHART = { width: 420, height: 218, left: 40, right: 8, top: 10, bottom: 42 };
export type Curve = "deletion" | "insertion";

export interface Curves {
  fractions: Float32Array;
  deletion: Float32Array;
  insertion: Float32Array;
  random_deletion: Float32Array;
  random_insertion: Float32Array;
}

export const curvesOf = (strip: Strip): Curves => ({
  fractions: floats(strip.fractions),
  deletion: floats(strip.deletion),
  insertion: floats(strip.insertion),
  random_deletion: floats(strip.random_deletion),
  random_insertion: floats(strip.random_insertion),
});

export function nearestStep(fractions: Float32Array, share: number): number {
  let best = 0;
  fractions.forEach((fraction, n) => {
    if (Math.abs(fraction - share) < Math.abs(fractions[best] - share)) best = n;
  });
  return best;
}

export function verdictOf(strip: Strip): { text: string; isGood: boolean } {
  const isGood = strip.beats.length === 2;
  return { text: say(`parts.strip.${isGood ? "both" : (strip.beats[0] ?? "none")}`), isGood };
}

export function StripView(props: {
  strip: Strip;
  curves: Curves;
  curve: Curve;
  step: number;
  target: string;
  choose: (changes: { curve?: Curve; step?: number }) => void;
  children: preact.ComponentChildren; // the picture at this step
}) {
  const { strip, curves, curve, step, target, choose } = props;
  const verdict = verdictOf(strip);
  const said = say(`parts.strip.said.${curve}`, {
    share: percent(curves.fractions[step]),
    baseline: strip.baseline,
    target,
    probability: number(curves[curve][step]),
    random: number(curves[`random_${curve}`][step]),
  });
  return (
    <div class="strip">
      <h3>{say("parts.strip.title")}</h3>
      <p class={verdict.isGood ? "verdict" : "warning"}>{verdict.text}</p>
      <Chart strip={strip} curves={curves} curve={curve} step={step} target={target} pick={(share) => choose({ step: nearestStep(curves.fractions, share) })} />
      <div class="controls">
        <Choice
          label={say("parts.strip.order")}
          options={[
            ["deletion", say("parts.strip.delete")],
            ["insertion", say("parts.strip.insert")],
          ]}
          value={curve}
          choose={(chosen) => choose({ curve: chosen })}
        />
        <Slider
          label={say("parts.strip.step")}
          low={0}
          high={curves.fractions.length - 1}
          value={step}
          said={percent(curves.fractions[step])}
          choose={(chosen) => choose({ step: chosen })}
        />
      </div>
      <div class="step">
        {props.children}
        <Told>{said + (strip.picture ? "" : ` ${say("parts.strip.grey")}`)}</Told>
      </div>
      <Areas strip={strip} />
    </div>
  );
}

function Areas({ strip }: { strip: Strip }) {
  const rows: [Curve, number, number][] = [
    ["deletion", strip.deletion_auc, strip.random_deletion_auc],
    ["insertion", strip.insertion_auc, strip.random_insertion_auc],
  ];
  return (
    <table class="areas">
      <caption>{say("parts.strip.areas", { baseline: strip.baseline })}</caption>
      <thead>
        <tr>
          <th scope="col">{say("parts.strip.area")}</th>
          <th scope="col" class="number">
            {say("parts.strip.map")}
          </th>
          <th scope="col" class="number">
            {say("parts.strip.random")}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, area, random]) => (
          <tr key={name}>
            <th scope="row">{say(`parts.strip.area.${name}`)}</th>
            <td class="number">{number(area, 4)}</td>
            <td class="number">{number(random, 4)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Chart(props: { strip: Strip; curves: Curves; curve: Curve; step: number; target: string; pick: (share: number) => void }) {
  const { strip, curves, curve, step } = props;
  const { width, height, left, right, top, bottom } = CHART;
  const names = ["random_deletion", "random_insertion", "deletion", "insertion"] as const;
  const most = names.reduce((best, name) => curves[name].reduce((a, b) => Math.max(a, b), best), 1e-9);
  const high = most > 0.5 ? Math.max(1, most) : most;
  const x = (share: number) => left + (width - left - right) * share;
  const y = (value: number) => height - bottom - ((height - top - bottom) * value) / high;
  const points = (name: (typeof names)[number]) =>
    Array.from(curves[name], (value, n) => `${x(curves.fractions[n]).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const at = x(curves.fractions[step]);
  const click = (event: MouseEvent) => {
    const box = (event.currentTarget as SVGElement).getBoundingClientRect();
    const across = ((event.clientX - box.left) / (box.width || 1)) * width;
    props.pick((across - left) / (width - left - right));
  };
  const label = say("parts.strip.chart", {
    target: props.target,
    deletion: number(strip.deletion_auc),
    random_deletion: number(strip.random_deletion_auc),
    insertion: number(strip.insertion_auc),
    random_insertion: number(strip.random_insertion_auc),
  });
  return (
    <svg class="chart" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label} onClick={click}>
      {[0, 0.5, 1].map((share, n) => (
        <g key={share}>
          <line class="rule" x1={left} x2={width - right} y1={y(share * high)} y2={y(share * high)} />
          <text x={left - 6} y={y(share * high) + 4} text-anchor="end">
            {number(share * high)}
          </text>
          <text x={x(share)} y={height - bottom + 16} text-anchor={["start", "middle", "end"][n]}>
            {`${100 * share} %`}
          </text>
        </g>
      ))}
      {names.map((name) => (
        <polyline key={name} class={`curve ${name} ${name.endsWith(curve) ? "chosen" : ""}`} points={points(name)} />
      ))}
      <line class="scrub" x1={at} x2={at} y1={top} y2={height - bottom} />
      <circle class={`dot random_${curve}`} cx={at} cy={y(curves[`random_${curve}`][step])} r={4} />
      <circle class={`dot ${curve}`} cx={at} cy={y(curves[curve][step])} r={4} />
      {(["deletion", "insertion", "random"] as const).map((name, n) => (
        <text key={name} class={`key ${name}`} x={left + 8 + 112 * n} y={height - 3}>
          {`${name === "random" ? "- -" : "—"} ${say(`parts.strip.key.${name}`)}`}
        </text>
      ))}
    </svg>
  );
}
