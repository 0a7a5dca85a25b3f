// What the studio's server answers, and how to ask it. `src/mirada/studio` answers in these very shapes.
// Arrays of numbers come as base64 of little-endian float32 (`Floats`) in raster order, exactly as Python has them.

export type Floats = string;

export type Kind = "image" | "masks" | "text" | "pairs" | "graph" | "plots" | "pixels";
export type Status = "training" | "stopped" | "finished" | "failed";
export type PageName = "look" | "read" | "map";

export interface Score {
  name: string; // "accuracy", "BLEU", …
  value: number;
  low: number | null; // 95 % interval, where there is one
  high: number | null;
}

export interface RunSummary {
  name: string;
  status: Status;
  system: string;
  size: string | null;
  task: string;
  kind: Kind;
  source: string;
  score: Score | null;
  baseline: (Score & { system: string }) | null;
  num_parameters: number | null;
  seconds: number | null; // spent in training
  changed: string; // ISO time
  has_report: boolean;
  pages: PageName[]; // which pages this run can be opened in
  is_ours: boolean; // started from this studio, which can therefore stop it
}

export interface Progress {
  what: string; // "model", "baseline", "fold"
  step: number;
  steps: number;
  epoch: number;
  samples: number;
  seconds: number;
  seconds_left: number;
  samples_per_second: number;
  train_loss: number;
  learning_rate: number;
}

// Columns of metrics.csv, with null where a cell is empty.
export type Metrics = Record<string, (number | null)[]>;

export interface RunDetail extends RunSummary {
  config_yaml: string;
  metrics: Metrics;
  baseline_metrics: Metrics;
  progress: Progress | null; // of a run that is training
  log: string[]; // the last lines of log.txt
  failure: string | null; // why it failed, in a sentence
  classes: string[];
  image_size: [number, number] | null;
  num_held_out: number;
}

export interface SystemCard {
  name: string;
  sizes: string[];
  summary: string;
  kinds: string[];
}

export interface Choices {
  schema: unknown; // JSON Schema of the configuration
  systems: SystemCard[];
  presets: { name: string; summary: string }[];
  samples: string[]; // sample sets that need no files
}

export interface NewTraining {
  source: string;
  system?: string | null; // "vit" or "vit:micro"
  preset?: string | null;
  settings?: Record<string, unknown>; // "train.minutes": 2
}

export interface Method {
  name: string;
  title: string;
  is_not: string; // one sentence: what this picture does not show
  cost: string;
}

export interface HeldOut {
  index: number;
  name: string;
  truth: string | null;
  answer: string | null;
  is_right: boolean | null;
}

export interface Strip {
  fractions: Floats;
  deletion: Floats;
  insertion: Floats;
  random_deletion: Floats;
  random_insertion: Floats;
  deletion_auc: number;
  insertion_auc: number;
  random_deletion_auc: number;
  random_insertion_auc: number;
  baseline: string;
  beats: ("deletion" | "insertion")[];
  verdict: string;
  picture: string | null; // data: URL of what stands where patches are taken away
}

export interface MapResult {
  method: string;
  title: string;
  is_not: string;
  cost: string;
  grid: [number, number];
  cell: [number, number]; // height and width of a cell in pixels of the picture
  values: Floats;
  strip: Strip | null;
}

export interface Lattice {
  size: number[]; // of tokens: (rows, columns), or (length,)
  extra: number; // tokens before them: the class token, …
  cell: [number, number] | null; // null: they do not lie on the picture
}

export interface LayerInfo {
  name: string;
  kind: "self" | "target" | "cross";
  asker: string;
  shape: [number, number, number]; // heads, queries, keys
  queries: Lattice;
  keys: Lattice;
  labels?: [string[], string[]]; // of texts: names of queries and keys
}

export interface Look {
  id: string; // of what the server keeps: ask for weights and further maps with it
  run: string;
  name: string;
  size: [number, number];
  picture: string; // data: URL
  answers: [string, number][];
  target: string;
  classes: string[];
  maps: MapResult[];
  layers: LayerInfo[];
  methods: Method[]; // all that there are
  command: string; // that gives the same on the command line
  notes: string[];
}

export interface TokenMap {
  method: string;
  title: string;
  is_not: string;
  cost: string;
  values: Floats;
  of_target: Floats | null;
}

export interface Reading {
  id: string;
  run: string;
  task: string; // translate, generate, fill, single-label
  tokens: string[];
  source: string[] | null; // tokens of the source of a translation
  answers: [string, number][];
  target: string;
  maps: TokenMap[];
  layers: LayerInfo[];
  methods: Method[];
  translation: { text: string; score: number; alignment: Floats | null } | null; // (target, source) weights
  command: string;
  notes: string[];
}

export interface NextTokens {
  tokens: string[]; // what has been read so far
  top: { text: string; token: string; probability: number }[]; // `text`: what to send next if this one is chosen
  is_end: boolean;
}

export interface MapBand {
  name: string; // prediction, interval width, spread, applicability, low, high
  low: number; // what the first colour stands for, and what lies below
  high: number;
  colours: string[]; // "#rrggbb" from low to high, each for an equal part
}

export interface MapFile {
  file: string;
  target: string;
  bounds: [[number, number], [number, number]]; // south-west and north-east, latitude first; east of 180° goes on
  size: [number, number];
  bands: MapBand[];
}

export interface MapAnswer {
  longitude: number;
  latitude: number;
  values: Record<string, number | null>;
  coverage: number; // what the interval from low to high is to hold
  // Shares of attention on the pixels around the place, NaN without data: of the place itself, or received from all pixels.
  chip: { size: [number, number]; attention: Floats; kind: "around" | "received" } | null;
  plots: SeenPlot[]; // known plots it looks at, strongest first
  num_plots: number; // that it looks at in all
  missing: "data" | "tags" | "model" | "rasters" | "plots" | null; // why there is no chip or no plots
}

export interface SeenPlot {
  name: string;
  longitude: number;
  latitude: number;
  value: number; // measured there
  weight: number;
  km: number;
}

export class Refused extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

// The key to a studio that is open to others, from `?token=` of its address; remembered until the tab is closed.
const token = new URLSearchParams(location.search).get("token") ?? sessionStorage.getItem("mirada.token");
if (token) sessionStorage.setItem("mirada.token", token);

export function url(path: string): string {
  const { pathname, search } = new URL(`api/${path}`, document.baseURI);
  return pathname + search;
}

// For what the browser itself asks for (images, frames, links), which cannot send a header.
export function keyed(address: string): string {
  return token ? `${address}?token=${encodeURIComponent(token)}` : address;
}

async function ask<T>(path: string, options: RequestInit = {}): Promise<T> {
  const headers = new Headers(options.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  let answer: Response;
  try {
    answer = await fetch(url(path), { ...options, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Refused("The studio does not answer: is `mirada studio` still running?", 0);
  }
  const content = answer.headers.get("Content-Type")?.includes("json") ? await answer.json() : null;
  if (!answer.ok) throw new Refused(content?.error ?? `${answer.status} ${answer.statusText}`, answer.status);
  return content as T;
}

const json = (content: unknown): RequestInit => ({
  method: "POST",
  headers: { "Content-Type": "application/json" },
  body: JSON.stringify(content),
});

const one = encodeURIComponent;

export interface LookOptions {
  method?: string[];
  target?: string;
  faithfulness?: boolean;
}

export interface MapOptions {
  method: string;
  target?: string;
  at?: [number, number]; // follow what this patch has seen
  layer?: number;
  head?: number;
  faithfulness?: boolean;
}

const query = (given: object): string => {
  const words = Object.entries(given).filter(([, value]) => value !== undefined && value !== null);
  return words.length ? `?${new URLSearchParams(words.map(([name, value]) => [name, String(value)]))}` : "";
};

export const api = {
  runs: () => ask<{ folder: string; version: string; runs: RunSummary[] }>("runs"),
  run: (name: string) => ask<RunDetail>(`runs/${one(name)}`),
  report: (name: string) => keyed(url(`runs/${one(name)}/report`)),
  choices: () => ask<Choices>("choices"),
  train: (what: NewTraining) => ask<{ name: string }>("trainings", json(what)),
  stop: (name: string) => ask<RunDetail>(`runs/${one(name)}/stop`, { method: "POST" }),
  resume: (name: string) => ask<RunDetail>(`runs/${one(name)}/resume`, { method: "POST" }),
  heldOut: (name: string, start = 0, count = 24, signal?: AbortSignal) =>
    ask<{ total: number; items: HeldOut[] }>(`runs/${one(name)}/held-out${query({ start, count })}`, { signal }),
  heldOutPicture: (name: string, index: number) => keyed(url(`runs/${one(name)}/held-out/${index}/picture`)),
  look: (name: string, what: File | number, options: LookOptions = {}, signal?: AbortSignal) => {
    const form = new FormData();
    if (typeof what === "number") form.set("held_out", String(what));
    else form.set("image", what);
    for (const method of options.method ?? []) form.append("method", method);
    if (options.target !== undefined) form.set("target", options.target);
    form.set("faithfulness", String(options.faithfulness ?? true));
    return ask<Look>(`runs/${one(name)}/looks`, { method: "POST", body: form, signal });
  },
  lookMap: (id: string, options: MapOptions, signal?: AbortSignal) =>
    ask<MapResult>(`looks/${one(id)}/map${query({ ...options, at: options.at?.join(",") })}`, { signal }),
  // Where token `query` looks, (heads, keys); who looks at token `key`, (heads, queries); one head's matrix.
  weights: (id: string, layer: number, what: { query: number } | { key: number } | { head: number }, signal?: AbortSignal) =>
    ask<{ shape: number[]; values: Floats }>(`looks/${one(id)}/weights${query({ layer, ...what })}`, { signal }),
  read: (name: string, what: { text: string; at?: number; target?: string; method?: string[] }, signal?: AbortSignal) =>
    ask<Reading>(`runs/${one(name)}/readings`, { ...json(what), signal }),
  next: (name: string, what: { text: string; written?: string; count?: number }, signal?: AbortSignal) =>
    ask<NextTokens>(`runs/${one(name)}/next`, { ...json(what), signal }),
  maps: (name: string, signal?: AbortSignal) => ask<MapFile[]>(`runs/${one(name)}/maps`, { signal }),
  mapTiles: (name: string, file: string, band: string) =>
    keyed(url(`runs/${one(name)}/maps/${one(file)}/tiles/${one(band)}/`) + "{z}/{x}/{y}.png"),
  mapAt: (name: string, file: string, longitude: number, latitude: number, signal?: AbortSignal) =>
    ask<MapAnswer>(`runs/${one(name)}/maps/${one(file)}/at${query({ longitude, latitude })}`, { signal }),
  learn: <T>(path: string, content?: unknown) => ask<T>(`learn/${path}`, content === undefined ? {} : json(content)),
};

export function floats(text: Floats): Float32Array {
  const letters = atob(text);
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}
