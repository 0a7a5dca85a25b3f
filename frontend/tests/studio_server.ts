// A server of small made-up answers, in the shapes of api.ts.
import { configure } from "@testing-library/preact";
import { vi } from "vitest";
import type { LayerInfo, Look, MapResult, Reading, RunSummary } from "../src/api";

// Slow machines are no failures.
configure({ asyncUtilTimeout: 30_000 });
vi.setConfig({ testTimeout: 120_000 });

export const coded = (values: number[]): string => btoa(String.fromCharCode(...new Uint8Array(new Float32Array(values).buffer)));

const PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

export const summary = (name: string, pages: RunSummary["pages"], task = "single-label"): RunSummary => ({
  name,
  status: "finished",
  system: "vit",
  size: "micro",
  task,
  kind: pages.includes("read") ? "text" : "image",
  source: "digits",
  score: null,
  baseline: null,
  num_parameters: 10,
  seconds: 1,
  changed: "2026-01-01T00:00:00Z",
  has_report: false,
  pages,
  is_ours: false,
});

export const NOT = "It shows no cause.";

export const mapOf = (method: string, values: number[], hasStrip = true): MapResult => ({
  method,
  title: `Title of ${method}`,
  is_not: NOT,
  cost: "1 forward",
  grid: [2, 2],
  cell: [4, 4],
  values: coded(values),
  strip: hasStrip
    ? {
        fractions: coded([0, 0.25, 0.5, 1]),
        deletion: coded([0.9, 0.4, 0.2, 0.1]),
        insertion: coded([0.1, 0.6, 0.8, 0.9]),
        random_deletion: coded([0.9, 0.7, 0.5, 0.1]),
        random_insertion: coded([0.1, 0.3, 0.5, 0.9]),
        deletion_auc: 0.3,
        insertion_auc: 0.7,
        random_deletion_auc: 0.55,
        random_insertion_auc: 0.45,
        baseline: "blurred picture",
        beats: ["deletion", "insertion"],
        verdict: "Better than a random order, at deletion and at insertion.",
        picture: null,
      }
    : null,
});

const lattice = { size: [2, 2], extra: 1, cell: [4, 4] as [number, number] };
export const layers: LayerInfo[] = [
  { name: "blocks.0", kind: "self", asker: "", shape: [2, 5, 5], queries: lattice, keys: lattice },
  { name: "blocks.1", kind: "self", asker: "", shape: [2, 5, 5], queries: lattice, keys: lattice },
  { name: "pool", kind: "self", asker: "pooling", shape: [2, 1, 5], queries: { size: [0], extra: 1, cell: null }, keys: { size: [5], extra: 0, cell: null } },
];

export const lookOf = (run: string, maps = [mapOf("chefer", [0.1, 0.2, 0.3, 0.4]), mapOf("rollout", [4, 3, 2, 1])]): Look => ({
  id: `look-${run}-${turn}`,
  run,
  name: "digit <b>7</b>",
  size: [8, 8],
  picture: PIXEL,
  answers: [
    ["seven", 0.8],
    ["one", 0.2],
  ],
  target: "seven",
  classes: ["one", "seven"],
  maps,
  layers,
  methods: ["chefer", "rollout", "occlusion"].map((name) => ({ name, title: `Title of ${name}`, is_not: NOT, cost: "cheap" })),
  command: "mirada explain runs/a image.png",
  notes: [],
});

// weight[head, n] for a token: numbers that tell what was asked.
export const weight = (layer: number, index: number, head: number, n: number): number => (1 + layer + head) / 10 + n / 100 + index / 1000;

const words = ["the", "cat", "<i>sat</i>"];
export const readingOf = (run: string, task: string): Reading => ({
  id: `reading-${run}-${turn}`,
  run,
  task,
  tokens: words,
  source: null,
  answers: [
    ["on", 0.7],
    ["by", 0.1],
  ],
  target: "on",
  maps: [{ method: "chefer", title: "Title of chefer", is_not: NOT, cost: "", values: coded([0.1, 0.9, 0.4]), of_target: null }],
  layers: [{ name: "blocks.0", kind: "self", asker: "", shape: [2, 3, 3], queries: { size: [3], extra: 0, cell: null }, keys: { size: [3], extra: 0, cell: null }, labels: [words, words] }],
  methods: [],
  translation: null,
  command: "mirada explain runs/t 'the cat sat'",
  notes: [],
});

let turn = 0; // as with the real server, no two looks have the same id

export interface Asked {
  path: string;
  query: URLSearchParams;
  body: unknown;
}

export function serve(): Asked[] {
  const asked: Asked[] = [];
  turn++;
  const answer = (path: string, query: URLSearchParams, body: any): unknown => {
    const [, run] = /runs\/([^/]+)\//.exec(path) ?? [];
    if (path === "runs") return { folder: "runs", version: "1", runs: [summary("a", ["look"]), summary("b", ["look"]), summary("t", ["read"], "generate")] };
    if (path.endsWith("held-out")) {
      return {
        total: 2,
        items: [
          { index: 0, name: "x.png", truth: "seven", answer: "seven", is_right: true },
          { index: 1, name: "y.png", truth: "seven", answer: "one", is_right: false },
        ],
      };
    }
    if (path.endsWith("looks")) return { ...lookOf(run), target: (body as FormData).get("target") ?? "seven" };
    if (path.endsWith("/map")) return mapOf(query.get("method")!, [0, 0, 0, 1], query.get("faithfulness") === "true");
    if (path.endsWith("/weights")) {
      const layer = Number(query.get("layer"));
      if (query.has("head")) return { shape: [3, 3], values: coded([1, 0, 0, 0.5, 0.5, 0, 0.2, 0.3, 0.5].map((value) => value + Number(query.get("head")))) };
      const index = Number(query.get("query") ?? query.get("key"));
      return { shape: [2, 5], values: coded([0, 1].flatMap((head) => [0, 1, 2, 3, 4].map((n) => weight(layer, index, head, n)))) };
    }
    if (path.endsWith("readings")) return readingOf(run, "generate");
    if (path.endsWith("next")) {
      const top = [" on", " by"].map((token, n) => ({ text: body.text + token, token, probability: [0.7, 0.1][n] }));
      return { tokens: words, top, is_end: false };
    }
    throw new Error(`nobody answers ${path}`);
  };
  vi.stubGlobal("fetch", async (address: string, options: RequestInit = {}) => {
    const whole = new URL(address, "http://localhost/");
    const path = whole.pathname.replace(/^.*\/api\//, "");
    const body = typeof options.body === "string" ? JSON.parse(options.body) : options.body;
    asked.push({ path, query: whole.searchParams, body });
    if (path.endsWith("/picture")) return new Response(new Blob(["x"]), { headers: { "Content-Type": "image/png" } });
    return new Response(JSON.stringify(answer(path, whole.searchParams, body)), { headers: { "Content-Type": "application/json" } });
  });
  return asked;
}
