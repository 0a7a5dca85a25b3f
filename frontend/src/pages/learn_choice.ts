// All that is chosen on the page Learn, as the address has it. What is as usual is left out of the address.
import { choose } from "../address";

export const SCORES = ["scaled dot", "dot", "divided by width", "bilinear", "additive", "graph additive", "learned temperature", "distance", "soft capped", "random features"];
export const KINDS = ["full", "causal", "window", "strided", "fixed", "not self", "grid", "windows", "edges"];
export const ALSO = ["", "causal", "window", "not self"];
export const POSITIONS = ["none", "sinusoidal", "learned", "appended", "rotary", "relative", "bias table"];
export const HEADS = ["concatenated", "collaborative", "re-attention", "averaged"];

export const SENTENCE = "el gato negro salta la cuerda";

export const USUAL = {
  text: SENTENCE,
  length: 0, // tokens without names, where it is not 0
  score: "scaled dot",
  kind: "full",
  reach: 1,
  stride: 3,
  block: 3,
  num_summary: 1,
  radius: 1,
  size: 2,
  shift: 0,
  columns: 0, // 0: as square as can be
  edges: "0-1,1-0,1-2,2-1,3-5,5-3,4-5",
  also: "",
  also_reach: 2,
  position: "none",
  heads: "concatenated",
  num_heads: 2,
  dim: 16,
  seed: 0,
  head: 1,
  row: 2, // the token whose neighbourhood is marked
  cost: "pairs",
  demo: "",
};
export type LearnChoice = typeof USUAL;

// The numbers of each neighbourhood, with the least and the most.
export const NUMBERS: Record<string, [keyof LearnChoice, number, number][]> = {
  window: [["reach", 0, 64]],
  strided: [["stride", 1, 64]],
  fixed: [["block", 1, 64], ["num_summary", 0, 64]],
  grid: [["radius", 0, 8]],
  windows: [["size", 1, 16], ["shift", 0, 15]],
};
export const isOnAPlane = (kind: string): boolean => kind === "grid" || kind === "windows";

export function chosenOf(chosen: Record<string, string>): LearnChoice {
  const entries = Object.entries(USUAL).map(([name, usual]) => {
    const given = chosen[name];
    if (given === undefined) return [name, usual];
    if (typeof usual === "string") return [name, given];
    const number = Number(given);
    return [name, given !== "" && Number.isFinite(number) ? number : usual];
  });
  return Object.fromEntries(entries) as LearnChoice;
}

export function pick(changes: Partial<LearnChoice>): void {
  const entries = Object.entries(changes) as [keyof LearnChoice, string | number][];
  choose(Object.fromEntries(entries.map(([name, value]) => [name, value === USUAL[name] ? undefined : value])));
}

export interface Rule {
  kind: string;
  [number: string]: unknown;
}

export function pairsOf(edges: string): [number, number][] {
  return [...edges.matchAll(/(\d+)\s*-\s*(\d+)/g)].map(([, from, to]) => [Number(from), Number(to)]);
}

export function rulesOf(choice: LearnChoice): Rule[] {
  const numbers = (NUMBERS[choice.kind] ?? []).map(([name]) => [name, choice[name]]);
  const edges = choice.kind === "edges" ? { edges: pairsOf(choice.edges) } : {};
  const first = { kind: choice.kind, ...Object.fromEntries(numbers), ...edges };
  if (!choice.also) return [first];
  return [first, { kind: choice.also, ...(choice.also === "window" ? { reach: choice.also_reach } : {}) }];
}

// What is sent to be computed.
export function mechanismOf(choice: LearnChoice): Record<string, unknown> {
  const { score, position, heads, num_heads, dim, seed } = choice;
  const tokens = choice.length ? { length: choice.length } : { text: choice.text };
  const columns = isOnAPlane(choice.kind) && choice.columns ? { columns: choice.columns } : {};
  return { ...tokens, ...columns, score, position, heads, num_heads, dim, seed, neighbours: rulesOf(choice) };
}

export function costQuery(choice: LearnChoice, num_tokens: number): string {
  const [{ edges, ...first }, second] = rulesOf(choice);
  const pairs = edges ? { edges: pairsOf(choice.edges).map((pair) => pair.join("-")).join(",") } : {};
  const also = second ? { also: second.kind, ...(second.reach === undefined ? {} : { also_reach: second.reach }) } : {};
  const given = { ...first, ...pairs, ...also, dim: choice.dim, num_tokens };
  return new URLSearchParams(Object.entries(given).map(([name, value]) => [name, String(value)])).toString();
}

// Of a demo: `in.theta=0.7`. Another demo has other inputs.
export function inputsOf(chosen: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(chosen).filter(([name]) => name.startsWith("in.")).map(([name, value]) => [name.slice(3), value]));
}

export function openDemo(name: string, chosen: Record<string, string>): void {
  const forgotten = Object.keys(inputsOf(chosen)).map((input) => [`in.${input}`, undefined]);
  choose({ ...Object.fromEntries(forgotten), demo: name || undefined });
}

