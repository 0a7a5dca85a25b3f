// What the studio says, in English and Spanish. `say("runs.title")`; {name} is filled in.
import { signal } from "@preact/signals";
import { shell } from "./shell";

export type Words = Record<string, { en: string; es: string }>;
export type Language = "en" | "es";

const all: Words = { ...shell };

// Every page brings its own words.
export function teach(words: Words): void {
  Object.assign(all, words);
}

const remembered = (): Language => {
  const kept = localStorage.getItem("mirada.language");
  if (kept === "en" || kept === "es") return kept;
  return navigator.language.toLowerCase().startsWith("es") ? "es" : "en";
};

export const language = signal<Language>(remembered());

language.subscribe((chosen) => {
  localStorage.setItem("mirada.language", chosen);
  document.documentElement.lang = chosen;
});

export function say(key: string, given: Record<string, string | number> = {}): string {
  const entry = all[key];
  if (!entry) return key; // a test looks for these
  return entry[language.value].replace(/\{(\w+)\}/g, (_, name: string) => String(given[name] ?? `{${name}}`));
}

export function number(value: number, digits = 3): string {
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-3 || size >= 1e6)) return value.toExponential(1).replace(/-/g, "−");
  return value.toLocaleString(language.value, { maximumSignificantDigits: digits });
}
