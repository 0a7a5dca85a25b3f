// What the page Look asks the server for: a look, further maps of it, and the weights around a token.
import { useEffect, useState } from "preact/hooks";
import { api, floats, type LayerInfo, type Lattice, type Look, type MapResult } from "../api";
import { sentence, useAnswer, type Answer } from "../parts/ask";
import { isPlaced, tokenAt, type Token } from "../parts/field";
import type { LookChoice } from "./look_choice";

// The image as a file, so that another model can be given the very same.
export async function asFile(run: string, held: number, signal: AbortSignal): Promise<File> {
  const answer = await fetch(api.heldOutPicture(run, held), { signal });
  if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
  return new File([await answer.blob()], `${run}-${held}.png`, { type: answer.headers.get("Content-Type") ?? "image/png" });
}

// The same image in another model; the same class, where it knows it.
export async function lookToo(run: string, image: File, target: string, signal: AbortSignal): Promise<Look> {
  const first = await api.look(run, image, {}, signal);
  return first.target === target || !first.classes.includes(target) ? first : api.look(run, image, { target }, signal);
}

export interface Maps {
  maps: MapResult[]; // all that are there
  map: MapResult | null; // the chosen one, once it is there
  isAsking: boolean;
  error: string | null;
}

export const FOLLOWING = ["rollout", "attention"]; // what can follow one patch

// Maps that were asked for after the look, by the look's id.
const NONE: MapResult[] = [];

export function useMaps(look: Look | null, choice: LookChoice): Maps {
  const [more, setMore] = useState<{ id: string; maps: MapResult[] }>({ id: "", maps: NONE });
  const kept = look && more.id === look.id ? more.maps : NONE;
  const maps = look ? [...look.maps, ...kept] : NONE;
  const isKnown = look?.methods.some((method) => method.name === choice.method);
  const name = isKnown ? choice.method : (maps[0]?.method ?? look?.methods[0]?.name ?? "");
  const usual = maps.find((map) => map.method === name) ?? null;
  const token = look && usual && choice.follow && FOLLOWING.includes(name) ? tokenAt(choice.at, { size: usual.grid, extra: 0, cell: usual.cell }, look.size) : null;
  const at = isPlaced(token) && choice.at.includes(",") ? ([token.row, token.column] as [number, number]) : undefined;
  const key = look && name && (!usual || at) ? JSON.stringify([look.id, name, at]) : null;
  const asked = useAnswer(
    key,
    async (signal) => {
      const map = await api.lookMap(look!.id, { method: name, target: look!.target, at, faithfulness: !at }, signal);
      if (!at && !signal.aborted) setMore((old) => ({ id: look!.id, maps: [...(old.id === look!.id ? old.maps : NONE), map] }));
      return map;
    },
    { isFresh: true },
  );
  return { maps, map: key ? asked.value : usual, isAsking: asked.isAsking, error: asked.error };
}

// Who is asked about in a layer, and where the numbers lie: a row of the weights, or a column.
export interface Asked {
  token: Token | null; // null: this layer has no such token
  asked: Lattice;
  seen: Lattice;
  isPooling: boolean; // one query for all, which is no token
}

export function askedIn(layer: LayerInfo, choice: { at: string; way: "row" | "column" }, size: [number, number]): Asked {
  const isRow = choice.way === "row";
  const [asked, seen] = isRow ? [layer.queries, layer.keys] : [layer.keys, layer.queries];
  const isPooling = layer.shape[1] === 1;
  return { token: isRow && isPooling ? { index: 0 } : tokenAt(choice.at, asked, size), asked, seen, isPooling };
}

const KEPT = 800; // rows of weights
const rows = new Map<string, Float32Array>();

async function weightsOf(id: string, layer: number, way: "row" | "column", index: number, signal: AbortSignal): Promise<Float32Array> {
  const key = JSON.stringify([id, layer, way, index]);
  const known = rows.get(key);
  if (known) return known;
  const found = floats((await api.weights(id, layer, way === "row" ? { query: index } : { key: index }, signal)).values);
  if (rows.size >= KEPT) rows.delete(rows.keys().next().value!);
  rows.set(key, found);
  return found;
}

export interface Weights {
  at: string; // the token they are of: until new ones are there, the old stay with their own
  way: "row" | "column";
  layers: (Float32Array | null)[]; // (heads, tokens) of each; null where they are not there yet
}

// Of every layer for the chosen token, the chosen layer first.
export function useWeights(look: Look | null, { at, way }: { at: string; way: "row" | "column" }, layer: number): Answer<Weights> {
  const key = look && look.layers.length ? JSON.stringify([look.id, at, way]) : null;
  const [answer, setAnswer] = useState<Answer<Weights> & { id: string }>({ value: null, error: null, isAsking: false, id: "" });
  useEffect(() => {
    if (!look || key === null) return;
    const stopper = new AbortController();
    const { signal } = stopper;
    const { id } = look;
    const tokens = look.layers.map((info) => askedIn(info, { at, way }, look.size).token);
    const order = [layer, ...look.layers.keys()].filter((n, place, all) => all.indexOf(n) === place && tokens[n]);
    const layers: (Float32Array | null)[] = look.layers.map(() => null);
    setAnswer((old) => ({ value: old.id === id ? old.value : null, error: null, isAsking: true, id }));
    const one = async (n: number) => {
      layers[n] = await weightsOf(id, n, way, tokens[n]!.index, signal);
    };
    const tell = (isAsking: boolean) => {
      if (!signal.aborted) setAnswer({ value: { at, way, layers: [...layers] }, error: null, isAsking, id });
    };
    (async () => {
      if (order.length) await one(order[0]);
      tell(order.length > 1);
      await Promise.all(order.slice(1).map(one));
      if (order.length > 1) tell(false);
    })().catch((error) => signal.aborted || setAnswer({ value: null, error: sentence(error), isAsking: false, id }));
    return () => stopper.abort();
  }, [key]);
  const isOther = answer.id !== look?.id;
  return { value: isOther ? null : answer.value, error: isOther ? null : answer.error, isAsking: key !== null && (isOther || answer.isAsking) };
}
