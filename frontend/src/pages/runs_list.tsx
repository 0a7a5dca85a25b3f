import { api, type RunSummary } from "../api";
import { choose } from "../address";
import { Failure } from "../parts/guarded";
import { usePolled } from "../parts/polled";
import { number, say } from "../words";
import { Comparison } from "./runs_compare";
import { COLUMNS, filtered, listed, orderOf, sorted, unlisted, written } from "./runs_order";
import { RunTable } from "./runs_table";

export function RunList({ chosen }: { chosen: Record<string, string> }) {
  const { answer, error, again } = usePolled(api.runs, "runs", ({ runs }) => runs.some((run) => run.status === "training"));
  const order = orderOf(chosen.sort);
  const wanted = chosen.filter ?? "";
  const runs = answer ? sorted(filtered(answer.runs, wanted, (status) => say(`runs.status.${status}`)), order) : [];
  const compared = unlisted(chosen.compare).filter((name) => !answer || answer.runs.some((run) => run.name === name));
  const compare = (name: string, isWanted: boolean) =>
    choose({ compare: listed(isWanted ? [...compared, name] : compared.filter((other) => other !== name)) });
  return (
    <>
      <div class="page-head">
        <h1>{say("runs.title")}</h1>
        <a class="button main" href="#/runs?new=1">
          {say("runs.new")}
        </a>
      </div>
      {error !== null && <Failure error={error} again={again} />}
      {!answer && error === null && <p role="status">{say("shell.loading")}</p>}
      {answer && answer.runs.length === 0 && <Newcomer folder={answer.folder} />}
      {answer && answer.runs.length > 0 && (
        <>
          <div class="controls">
            <label class="field">
              <span>{say("runs.filter")}</span>
              <input type="search" value={wanted} onInput={(event) => choose({ filter: event.currentTarget.value || undefined })} />
            </label>
            <label class="field narrow-only">
              <span>{say("runs.sort")}</span>
              <select value={written(order)} onChange={(event) => choose({ sort: event.currentTarget.value })}>
                {COLUMNS.flatMap((column) =>
                  [false, true].map((isDescending) => (
                    <option key={written({ column, isDescending })} value={written({ column, isDescending })}>
                      {say(`runs.column.${column}`)} {isDescending ? "↓" : "↑"}
                    </option>
                  )),
                )}
              </select>
            </label>
            <span class="note" role="status">
              {counted(runs, answer.runs)}
            </span>
          </div>
          {runs.length > 0 && <RunTable runs={runs} order={order} compared={compared} onCompare={compare} />}
          {compared.length > 0 && <Comparison names={compared} chosen={chosen} />}
          <p class="note">{say("runs.folder", { folder: answer.folder, version: answer.version })}</p>
        </>
      )}
    </>
  );
}

function counted(shown: RunSummary[], all: RunSummary[]): string {
  const training = all.filter((run) => run.status === "training").length;
  const words = say(all.length === 1 ? "runs.count.one" : "runs.count", { shown: number(shown.length), all: number(all.length) });
  return training ? `${words}, ${say("runs.count.training", { training })}` : words;
}

function Newcomer({ folder }: { folder: string }) {
  return (
    <section class="card">
      <h2>{say("runs.empty.title")}</h2>
      <p>{say("runs.empty.what", { folder })}</p>
      <ol>
        <li>
          {say("runs.empty.click")} <a href="#/runs?new=1&source=digits&minutes=1">{say("runs.empty.digits")}</a>
        </li>
        <li>
          {say("runs.empty.command")} <code>mirada train digits</code>
        </li>
        <li>{say("runs.empty.own")}</li>
      </ol>
    </section>
  );
}
