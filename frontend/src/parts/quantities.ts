// Numbers as people read them, in the chosen language.
import type { Score } from "../api";
import { language, number, say } from "../words";

export function duration(seconds: number): string {
  if (seconds < 9.95) return `${number(seconds, 2)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min ${two(whole % 60)} s`;
  const total = Math.round(seconds / 60);
  if (total < 60 * 24) return `${Math.floor(total / 60)} h ${two(total % 60)} min`;
  const hours = Math.round(seconds / 3600);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const two = (value: number): string => String(value).padStart(2, "0");

export function count(value: number): string {
  if (value >= 1e9) return `${number(value / 1e9)} G`;
  if (value >= 1e6) return `${number(value / 1e6)} M`;
  if (value >= 1e4) return `${number(value / 1e3)} k`;
  return value.toLocaleString(language.value);
}

export function date(iso: string): string {
  const when = new Date(iso);
  if (Number.isNaN(when.getTime())) return iso;
  const isOld = when.getFullYear() !== new Date().getFullYear();
  return when.toLocaleString(language.value, {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    ...(isOld ? { year: "numeric" } : {}),
  });
}

export function interval({ low, high }: Pick<Score, "low" | "high">): string | null {
  return low === null || high === null ? null : `${number(low)} – ${number(high)}`;
}

// "val_accuracy" is a column; people read "accuracy, validation".
export function metricName(column: string): string {
  const [, part, rest] = /^(val|train)_(.+)$/.exec(column) ?? [];
  const name = (rest ?? column).replaceAll("_", " ");
  if (part === "val") return say("runs.metric.val", { name });
  if (part === "train") return say("runs.metric.train", { name });
  return name;
}
