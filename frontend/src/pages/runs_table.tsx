import { api, type RunSummary, type Score, type Status } from "../api";
import { choose, written as addressOf } from "../address";
import { count, date, duration, interval } from "../parts/quantities";
import { number, say } from "../words";
import { COLUMNS, nextOrder, NUMBERS, systemName, written, type Column, type Order } from "./runs_order";

const LETTERS = 28;

interface Props {
  runs: RunSummary[];
  order: Order;
  compared: string[];
  onCompare: (name: string, isWanted: boolean) => void;
}

export function RunTable({ runs, order, compared, onCompare }: Props) {
  return (
    <div class="card scroll runs-card">
      <table class="runs">
        <caption class="unseen">{say("runs.title")}</caption>
        <thead>
          <tr>
            <th>
              <span class="unseen">{say("runs.compare")}</span>
            </th>
            {COLUMNS.map((column) => (
              <Head key={column} column={column} order={order} />
            ))}
            <th>{say("runs.open")}</th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <Row key={run.name} run={run} isCompared={compared.includes(run.name)} onCompare={onCompare} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Head({ column, order }: { column: Column; order: Order }) {
  const isSorted = order.column === column;
  const direction = order.isDescending ? "descending" : "ascending";
  return (
    <th scope="col" class={NUMBERS.includes(column) ? "number" : undefined} aria-sort={isSorted ? direction : undefined}>
      <button type="button" class="bare" onClick={() => choose({ sort: written(nextOrder(order, column)) })}>
        {say(`runs.column.${column}`)}
        <span aria-hidden="true">{isSorted ? (order.isDescending ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

function Row({ run, isCompared, onCompare }: { run: RunSummary; isCompared: boolean } & Pick<Props, "onCompare">) {
  const cell = (column: Column) => ({
    "data-label": say(`runs.column.${column}`),
    class: NUMBERS.includes(column) ? `number of-${column}` : `of-${column}`,
  });
  return (
    <tr class={isCompared ? "is-compared" : undefined}>
      <td class="of-check">
        <input
          type="checkbox"
          checked={isCompared}
          aria-label={say("runs.compare.one", { name: run.name })}
          onChange={(event) => onCompare(run.name, event.currentTarget.checked)}
        />
      </td>
      <th scope="row" {...cell("name")}>
        <a href={addressOf({ path: ["runs", run.name], chosen: {} })}>{run.name}</a>
      </th>
      <td {...cell("status")}>
        <StatusWord status={run.status} />
      </td>
      <td {...cell("system")}>{systemName(run)}</td>
      <td {...cell("source")} title={run.source}>
        {shortened(run.source)}
      </td>
      <td {...cell("score")}>
        <ScoreWords score={run.score} />
      </td>
      <td {...cell("baseline")}>
        <ScoreWords score={run.baseline} of={run.baseline?.system} />
      </td>
      <td {...cell("parameters")}>{run.num_parameters === null ? "–" : count(run.num_parameters)}</td>
      <td {...cell("seconds")}>{run.seconds === null ? "–" : duration(run.seconds)}</td>
      <td {...cell("changed")}>{date(run.changed)}</td>
      <td class="of-open">
        <OpenLinks run={run} />
      </td>
    </tr>
  );
}

export function StatusWord({ status }: { status: Status }) {
  return <span class={`status ${status}`}>{say(`runs.status.${status}`)}</span>;
}

export function ScoreWords({ score, of }: { score: Score | null; of?: string }) {
  if (!score) return <>–</>;
  const range = interval(score);
  return (
    <>
      <b>{number(score.value)}</b>
      <span class="note under">
        {[of, score.name].filter(Boolean).join(" ")}
        {range && (
          <>
            <br />
            {range}
          </>
        )}
      </span>
    </>
  );
}

export function OpenLinks({ run }: { run: Pick<RunSummary, "name" | "pages" | "has_report"> }) {
  if (run.pages.length === 0 && !run.has_report) return null;
  return (
    <span class="links">
      {run.pages.map((page) => (
        <a key={page} href={addressOf({ path: [page, run.name], chosen: {} })}>
          {say(`shell.${page}`)}
        </a>
      ))}
      {run.has_report && (
        <a href={api.report(run.name)} target="_blank" rel="noopener" aria-label={say("runs.report.of", { name: run.name })}>
          {say("runs.report")} <span aria-hidden="true">↗</span>
        </a>
      )}
    </span>
  );
}

// Of a long path the last folders tell most, and the name always stays.
export function shortened(source: string): string {
  if (source.length <= LETTERS) return source;
  const parts = source.split("/");
  let end = parts.pop() ?? "";
  while (parts.length && `…/${parts[parts.length - 1]}/${end}`.length <= LETTERS) end = `${parts.pop()}/${end}`;
  return end.length <= LETTERS - 2 ? `…/${end}` : `…${end.slice(1 - LETTERS)}`;
}
