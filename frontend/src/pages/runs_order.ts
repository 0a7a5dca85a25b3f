// Which runs are shown, and in which order.
import type { RunSummary, Status } from "../api";

export type Column = "name" | "status" | "system" | "source" | "score" | "baseline" | "parameters" | "seconds" | "changed";
export const COLUMNS: Column[] = ["name", "status", "system", "source", "score", "baseline", "parameters", "seconds", "changed"];
export const NUMBERS: Column[] = ["score", "baseline", "parameters", "seconds"];

export interface Order {
  column: Column;
  isDescending: boolean;
}

export const NEWEST_FIRST: Order = { column: "changed", isDescending: true };

// "-score" in the address: the highest first.
export function orderOf(text: string | undefined): Order {
  const isDescending = text?.startsWith("-") ?? false;
  const column = COLUMNS.find((name) => name === (isDescending ? text!.slice(1) : text));
  return column ? { column, isDescending } : NEWEST_FIRST;
}

export const written = ({ column, isDescending }: Order): string => `${isDescending ? "-" : ""}${column}`;

// A second click turns the order around; numbers and dates start with the largest.
export function nextOrder(now: Order, column: Column): Order {
  if (now.column === column) return { column, isDescending: !now.isDescending };
  return { column, isDescending: column === "changed" || NUMBERS.includes(column) };
}

const STATUSES: Status[] = ["training", "stopped", "failed", "finished"];

const VALUES: Record<Column, (run: RunSummary) => string | number | null> = {
  name: (run) => run.name,
  status: (run) => STATUSES.indexOf(run.status),
  system: (run) => systemName(run),
  source: (run) => run.source,
  score: (run) => run.score?.value ?? null,
  baseline: (run) => run.baseline?.value ?? null,
  parameters: (run) => run.num_parameters,
  seconds: (run) => run.seconds,
  changed: (run) => Date.parse(run.changed) || null,
};

// What has no value comes last in both directions; equals keep the order of their names.
export function sorted(runs: RunSummary[], { column, isDescending }: Order): RunSummary[] {
  const value = VALUES[column];
  const compare = (a: string | number, b: string | number): number =>
    typeof a === "string" ? a.localeCompare(String(b), undefined, { numeric: true }) : a - Number(b);
  return [...runs].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null) || compare(a.name, b.name);
    return (isDescending ? -compare(x, y) : compare(x, y)) || compare(a.name, b.name);
  });
}

// Every word must be found somewhere.
export function filtered(runs: RunSummary[], wanted: string, statusWord: (status: Status) => string): RunSummary[] {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  return runs.filter((run) => {
    const text = [run.name, systemName(run), run.source, run.task, run.kind, run.status, statusWord(run.status)].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export const systemName = ({ system, size }: Pick<RunSummary, "system" | "size">): string => (size ? `${system}:${size}` : system);

// Names in the address are divided by commas, so a comma in a name is written otherwise.
export const listed = (names: string[]): string | undefined => names.map((name) => name.replaceAll("%", "%25").replaceAll(",", "%2C")).join(",") || undefined;
export const unlisted = (text: string | undefined): string[] =>
  (text ?? "").split(",").filter(Boolean).map((name) => name.replaceAll("%2C", ",").replaceAll("%25", "%"));
