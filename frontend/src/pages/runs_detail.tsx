import { useMemo, useState } from "preact/hooks";
import { api, type RunDetail } from "../api";
import { choose } from "../address";
import { drawable, points, type Axis, type Curve } from "../parts/curve_data";
import { Curves } from "../parts/curves";
import { Failure } from "../parts/guarded";
import { usePolled } from "../parts/polled";
import { count, date, duration, metricName } from "../parts/quantities";
import { number, say } from "../words";
import { AxisChoice, axisOf } from "./runs_compare";
import { systemName } from "./runs_order";
import { ProgressCard } from "./runs_progress";
import { OpenLinks, ScoreWords, StatusWord } from "./runs_table";

export function RunPage({ name, chosen }: { name: string; chosen: Record<string, string> }) {
  const { answer: run, error, again } = usePolled(() => api.run(name), name, ({ status }) => status === "training");
  return (
    <>
      <p class="way">
        <a href="#/runs">← {say("runs.back")}</a>
      </p>
      <div class="page-head">
        <h1>
          {name} {run && <StatusWord status={run.status} />}
        </h1>
        {run && <Actions run={run} isReport={chosen.view === "report"} again={again} />}
      </div>
      {error !== null && <Failure error={error} again={again} />}
      {!run && error === null && <p role="status">{say("shell.loading")}</p>}
      {run?.failure && (
        <p class="error" role="alert">
          {run.failure}
        </p>
      )}
      {run && (chosen.view === "report" && run.has_report ? <Report name={name} /> : <Overview run={run} chosen={chosen} />)}
    </>
  );
}

function Actions({ run, isReport, again }: { run: RunDetail; isReport: boolean; again: () => void }) {
  const [isAsking, setAsking] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const ask = async (question: (name: string) => Promise<unknown>) => {
    setAsking(true);
    setError(null);
    try {
      await question(run.name);
    } catch (refused) {
      setError(refused);
    }
    setAsking(false);
    again();
  };
  return (
    <div class="actions">
      {run.status === "training" && run.is_ours && (
        <button type="button" disabled={isAsking} onClick={() => ask(api.stop)}>
          {say(isAsking ? "runs.stopping" : "runs.stop")}
        </button>
      )}
      {run.status === "training" && !run.is_ours && <span class="note">{say("runs.elsewhere")}</span>}
      {(run.status === "stopped" || run.status === "failed") && (
        <button type="button" class="main" disabled={isAsking} onClick={() => ask(api.resume)}>
          {say("runs.resume")}
        </button>
      )}
      {run.has_report && (
        <button type="button" aria-pressed={isReport} onClick={() => choose({ view: isReport ? undefined : "report" })}>
          {say("runs.report.here")}
        </button>
      )}
      <OpenLinks run={run} />
      {error !== null && <Failure error={error} />}
    </div>
  );
}

// The report is a whole page with its own scripts: it runs in a frame that can touch nothing of the studio.
function Report({ name }: { name: string }) {
  return <iframe class="report" title={say("runs.report.of", { name })} src={api.report(name)} sandbox="allow-scripts allow-popups allow-downloads" />;
}

function Overview({ run, chosen }: { run: RunDetail; chosen: Record<string, string> }) {
  return (
    <>
      {run.progress && <ProgressCard progress={run.progress} />}
      {run.status === "training" && !run.progress && (
        <p class="verdict" role="status">
          {say("runs.starting")}
        </p>
      )}
      <Facts run={run} />
      <RunCurves run={run} axis={axisOf(chosen.x)} />
      <details class="card">
        <summary>{say("runs.settings")}</summary>
        <pre tabIndex={0}>{run.config_yaml}</pre>
      </details>
      <details class="card" open={run.status === "failed" || undefined}>
        <summary>{say("runs.log")}</summary>
        <pre tabIndex={0}>{run.log.join("\n") || say("runs.log.empty")}</pre>
      </details>
    </>
  );
}

function Facts({ run }: { run: RunDetail }) {
  const facts: [string, preact.ComponentChildren][] = [
    ["score", <ScoreWords score={run.score} />],
    ["baseline", <ScoreWords score={run.baseline} of={run.baseline?.system} />],
    ["system", systemName(run)],
    ["source", run.source],
    ["task", run.task],
    ["parameters", run.num_parameters === null ? "–" : count(run.num_parameters)],
    ["seconds", run.seconds === null ? "–" : duration(run.seconds)],
    ["changed", date(run.changed)],
  ];
  if (run.classes.length) facts.push(["classes", number(run.classes.length)]);
  if (run.image_size) facts.push(["image_size", run.image_size.join(" × ")]);
  if (run.num_held_out) facts.push(["held_out", number(run.num_held_out, 6)]);
  return (
    <dl class="card facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{say(`runs.column.${name}`)}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function RunCurves({ run, axis }: { run: RunDetail; axis: Axis }) {
  const charts = useMemo(() => chartsOf(run, axis), [run, axis]);
  if (charts.length === 0) return <p class="note">{say("runs.curves.none")}</p>;
  return (
    <section class="card" aria-label={say("runs.curves")}>
      <div class="controls">
        <AxisChoice axis={axis} />
      </div>
      <div class="charts">
        {charts.map(({ title, curves }) => (
          <Curves key={title} curves={curves} title={title} across={say(`runs.axis.${axis}`)} height={230} />
        ))}
      </div>
    </section>
  );
}

interface Chart {
  title: string;
  curves: Curve[];
}

// One chart of the losses, then one for every other metric; the baseline is dashed.
export function chartsOf(run: Pick<RunDetail, "metrics" | "baseline_metrics" | "system"> & { baseline: { system: string } | null }, axis: Axis): Chart[] {
  const columns = drawable([run.metrics]).filter((name) => name !== "learning_rate");
  const losses = columns.filter((name) => name.endsWith("loss")).sort();
  const opponent = run.baseline?.system ?? say("runs.column.baseline");
  const curve = (label: string, metrics: RunDetail["metrics"], column: string, colour: number, isDashed: boolean): Curve => ({
    label,
    colour,
    isDashed,
    ...points(metrics, axis, column),
  });
  const charts: Chart[] = [];
  if (losses.length)
    charts.push({
      title: say("runs.losses"),
      curves: losses.map((column, index) => curve(metricName(column), run.metrics, column, index, false)),
    });
  for (const column of columns.filter((name) => !losses.includes(name)))
    charts.push({
      title: metricName(column),
      curves: [curve(run.system, run.metrics, column, 0, false), curve(opponent === run.system ? `${opponent} (${say("runs.column.baseline")})` : opponent, run.baseline_metrics, column, 1, true)],
    });
  return charts
    .map(({ title, curves }) => ({ title, curves: curves.filter(({ x }) => x.length > 0) }))
    .filter(({ curves }) => curves.length > 0);
}
