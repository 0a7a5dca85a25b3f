// All that is chosen on the page Look, as the address has it. What is as usual is left out of the address.
import { choose } from "../address";
import { headsOf, type Heads } from "../parts/heads";
import type { Curve } from "../parts/strip";

export interface LookChoice {
  held: number; // index in the held-out set
  image: "" | "own"; // "own": dropped here, which no link can carry
  target: string; // class to explain; "": the one that the model names
  method: string;
  follow: boolean; // relevance as followed from the chosen patch
  layer: number; // from 1; 0: the last
  head: string; // from 1, or mean, max, min
  at: string; // token: see `tokenAt`
  way: "row" | "column"; // where it looks, who looks at it
  second: string; // another run
  smooth: boolean;
  opacity: number; // per cent
  common: boolean; // one scale for all tiles
  curve: Curve;
  step: number; // of the curve; -1: a quarter
  start: number; // first of the held-out images in sight
  only: "" | "right" | "wrong";
}

export const USUAL: LookChoice = {
  held: 0,
  image: "",
  target: "",
  method: "",
  follow: false,
  layer: 0,
  head: "mean",
  at: "",
  way: "row",
  second: "",
  smooth: false,
  opacity: 60,
  common: true,
  curve: "deletion",
  step: -1,
  start: 0,
  only: "",
};

const ALLOWED: Partial<Record<keyof LookChoice, string[]>> = {
  image: ["", "own"],
  way: ["row", "column"],
  curve: ["deletion", "insertion"],
  only: ["", "right", "wrong"],
};

// What no choice can be is as usual: links are typed by people.
export function lookChoice(chosen: Record<string, string>): LookChoice {
  const found: Record<string, unknown> = { ...USUAL };
  for (const name of Object.keys(USUAL) as (keyof LookChoice)[]) {
    const text = chosen[name];
    if (text === undefined) continue;
    const usual = USUAL[name];
    if (typeof usual === "boolean") found[name] = text === "1";
    else if (typeof usual === "string") {
      if (ALLOWED[name]?.includes(text) ?? true) found[name] = text;
    } else if (/^-?\d+$/.test(text)) found[name] = Number(text);
  }
  const choice = found as unknown as LookChoice;
  return {
    ...choice,
    held: Math.max(0, choice.held),
    start: Math.max(0, choice.start),
    opacity: Math.min(100, Math.max(0, choice.opacity)),
    head: String(headsOf(choice.head)),
  };
}

export function asAddress(changes: Partial<LookChoice>): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(changes).map(([name, value]) => {
      const isUsual = value === USUAL[name as keyof LookChoice];
      return [name, isUsual ? undefined : typeof value === "boolean" ? String(Number(value)) : String(value)];
    }),
  );
}

export type Change = (changes: Partial<LookChoice>) => void;
export const changeLook: Change = (changes) => choose(asAddress(changes));

export const headsChosen = (choice: LookChoice): Heads => headsOf(choice.head);
