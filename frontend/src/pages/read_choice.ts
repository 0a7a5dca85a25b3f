// All that is chosen on the page Read, as the address has it. What is as usual is left out of the address.
import { choose } from "../address";
import { headsOf } from "../parts/heads";

export interface ReadChoice {
  text: string;
  target: string; // class or token to explain; "": the one that the model names
  at: number; // place of the token to explain; -1: as the server chooses
  method: string;
  layer: number; // from 1; 0: the last
  head: string; // from 1, or mean, max, min
  token: number; // whose looks are coloured; -1: the last or the first
  way: "row" | "column"; // where it looks, who looks at it
  view: "matrix" | "graph";
  edges: number; // lines of the graph; 0: twice as many as tokens
  written: string; // what has been chosen so far, step by step
}

export const USUAL: ReadChoice = {
  text: "",
  target: "",
  at: -1,
  method: "",
  layer: 0,
  head: "mean",
  token: -1,
  way: "row",
  view: "matrix",
  edges: 0,
  written: "",
};

export function readChoice(chosen: Record<string, string>): ReadChoice {
  const whole = (name: "at" | "layer" | "token" | "edges") => (/^\d+$/.test(chosen[name] ?? "") ? Number(chosen[name]) : USUAL[name]);
  return {
    text: chosen.text ?? "",
    target: chosen.target ?? "",
    at: whole("at"),
    method: chosen.method ?? "",
    layer: whole("layer"),
    head: String(headsOf(chosen.head)),
    token: whole("token"),
    way: chosen.way === "column" ? "column" : "row",
    view: chosen.view === "graph" ? "graph" : "matrix",
    edges: whole("edges"),
    written: chosen.written ?? "",
  };
}

export function asAddress(changes: Partial<ReadChoice>): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(changes).map(([name, value]) => [name, value === USUAL[name as keyof ReadChoice] ? undefined : String(value)]),
  );
}

export const changeRead = (changes: Partial<ReadChoice>): void => choose(asAddress(changes));
