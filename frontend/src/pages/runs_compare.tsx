import { useMemo } from "preact/hooks";
import { api, type RunDetail } from "../api";
import { choose, written as addressOf } from "../address";
import { Curves, colourOf } from "../parts/curves";
import { AXES, drawable, points, usualMetric, type Axis, type Curve } from "../parts/curve_data";
import { Failure } from "../parts/guarded";
import { usePolled } from "../parts/polled";
import { count, duration, metricName } from "../parts/quantities";
import { number, say } from "../words";
import { ScoreWords, StatusWord } from "./runs_table";
import { systemName } from "./runs_order";

export function Comparison({ names, chosen }: { names: string[]; chosen: Record<string, string> }) {
  const { answer, error, again } = usePolled(
    () => Promise.all(names.map(api.run)),
    names.join("\n"),
    (runs) => runs.some((run) => run.status === "training"),
  );
  const columns = drawable(answer?.map((run) => run.metrics) ?? []);
  const metric = columns.includes(chosen.metric) ? chosen.metric : usualMetric(columns, answer?.[0]?.score?.name);
  const axis = axisOf(chosen.x);
  const curves = useMemo(() => (answer && metric ? curvesOf(answer, metric, axis) : []), [answer, metric, axis]);
  return (
    <section class="card" aria-labelledby="compared">
      <div class="page-head">
        <h2 id="compared">{say("runs.compared", { count: names.length })}</h2>
        <button type="button" onClick={() => choose({ compare: undefined, metric: undefined, x: undefined })}>
          {say("runs.compare.none")}
        </button>
      </div>
      {names.length === 1 && <p class="note">{say("runs.compare.more")}</p>}
      {error !== null && <Failure error={error} again={again} />}
      {answer && !metric && <p>{say("runs.curves.none")}</p>}
      {answer && metric && (
        <>
          <div class="controls">
            <label class="field">
              <span>{say("runs.metric")}</span>
              <select value={metric} onChange={(event) => choose({ metric: event.currentTarget.value })}>
                {columns.map((column) => (
                  <option key={column} value={column}>
                    {metricName(column)}
                  </option>
                ))}
              </select>
            </label>
            <AxisChoice axis={axis} />
          </div>
          <Curves curves={curves} title={metricName(metric)} across={say(`runs.axis.${axis}`)} height={300} />
        </>
      )}
      {answer && <Scores runs={answer} metric={metric} />}
    </section>
  );
}

export const axisOf = (text: string | undefined): Axis => AXES.find((axis) => axis === text) ?? "step";

export function AxisChoice({ axis }: { axis: Axis }) {
  return (
    <label class="field">
      <span>{say("runs.axis")}</span>
      <select value={axis} onChange={(event) => choose({ x: event.currentTarget.value === "step" ? undefined : event.currentTarget.value })}>
        {AXES.map((name) => (
          <option key={name} value={name}>
            {say(`runs.axis.${name}`)}
          </option>
        ))}
      </select>
    </label>
  );
}

export function curvesOf(runs: Pick<RunDetail, "name" | "metrics">[], metric: string, axis: Axis): Curve[] {
  return runs
    .map((run, colour) => ({ label: run.name, colour, isDashed: colour >= 8, ...points(run.metrics, axis, metric) }))
    .filter((curve) => curve.x.length > 0);
}

function Scores({ runs, metric }: { runs: RunDetail[]; metric: string | undefined }) {
  return (
    <div class="scroll">
      <table class="scores">
        <caption class="unseen">{say("runs.scores")}</caption>
        <thead>
          <tr>
            <th scope="col">{say("runs.column.name")}</th>
            <th scope="col" class="wide">{say("runs.column.status")}</th>
            <th scope="col" class="wide">{say("runs.column.system")}</th>
            <th scope="col" class="number">{say("runs.column.score")}</th>
            <th scope="col" class="number">{say("runs.column.baseline")}</th>
            {metric && <th scope="col" class="number">{say("runs.best", { metric: metricName(metric) })}</th>}
            <th scope="col" class="number">{say("runs.column.parameters")}</th>
            <th scope="col" class="number">{say("runs.column.seconds")}</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run, index) => (
            <tr key={run.name}>
              <th scope="row">
                <span class="swatch" style={{ color: colourOf(index) }} aria-hidden="true" />
                <a href={addressOf({ path: ["runs", run.name], chosen: {} })}>{run.name}</a>
              </th>
              <td class="wide"><StatusWord status={run.status} /></td>
              <td class="wide">{systemName(run)}</td>
              <td class="number"><ScoreWords score={run.score} /></td>
              <td class="number"><ScoreWords score={run.baseline} of={run.baseline?.system} /></td>
              {metric && <td class="number">{bestWords(run, metric)}</td>}
              <td class="number">{run.num_parameters === null ? "–" : count(run.num_parameters)}</td>
              <td class="number">{run.seconds === null ? "–" : duration(run.seconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// Errors and losses are better if low.
const LOW_IS_GOOD = /(loss|mae|rmse|mse|error|perplexity|learning_rate|ece|nll)$/i;

export function best(values: (number | null)[] | undefined, metric: string): number | null {
  const numbers = (values ?? []).filter((value): value is number => value !== null && Number.isFinite(value));
  if (numbers.length === 0) return null;
  return numbers.reduce((a, b) => (LOW_IS_GOOD.test(metric) ? Math.min(a, b) : Math.max(a, b)));
}

function bestWords(run: RunDetail, metric: string): string {
  const value = best(run.metrics[metric], metric);
  return value === null ? "–" : number(value);
}
