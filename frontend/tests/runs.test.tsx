import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/preact";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { address, go } from "../src/address";
import type { RunDetail, RunSummary } from "../src/api";
import { Runs } from "../src/pages/runs";
import { best, curvesOf } from "../src/pages/runs_compare";
import { chartsOf } from "../src/pages/runs_detail";
import { filtered, listed, nextOrder, orderOf, sorted, unlisted, written } from "../src/pages/runs_order";
import { whatTrains } from "../src/pages/runs_progress";
import { shortened } from "../src/pages/runs_table";
import { aligned, drawable, points, usualMetric, valueAt } from "../src/parts/curve_data";
import { count, duration, metricName } from "../src/parts/quantities";
import { language, say } from "../src/words";

// The picture itself is for a real browser.
vi.mock("uplot", () => ({ default: class { setData() {} setSeries() {} setSize() {} destroy() {} } }));

const run = (name: string, more: Partial<RunSummary> = {}): RunSummary => ({
  name,
  status: "finished",
  system: "vit",
  size: "micro",
  task: "single-label",
  kind: "image",
  source: "digits",
  score: { name: "accuracy", value: 0.9, low: 0.85, high: 0.95 },
  baseline: { name: "accuracy", value: 0.8, low: null, high: null, system: "cnn" },
  num_parameters: 1_234_567,
  seconds: 61,
  changed: "2026-01-02T03:04:05Z",
  has_report: true,
  pages: ["look"],
  is_ours: true,
  ...more,
});

const detail = (more: Partial<RunDetail> = {}): RunDetail => ({
  ...run("vit-digits"),
  config_yaml: "system:\n  name: vit\n",
  metrics: { step: [10, 20], seconds: [1.5, 3], epoch: [1, 2], train_loss: [2, 1], val_loss: [1.5, null], val_accuracy: [0.5, 0.75], learning_rate: [1, 1] },
  baseline_metrics: { step: [10, 30], seconds: [1, 2], epoch: [1, 3], val_accuracy: [0.25, 0.5] },
  progress: null,
  log: ["one", "two"],
  failure: null,
  classes: ["a", "b"],
  image_size: [8, 8],
  num_held_out: 270,
  ...more,
});

const words = (status: string) => say(`runs.status.${status}`);

describe("order", () => {
  const runs = [
    run("b", { score: null, changed: "2026-01-03T00:00:00Z" }),
    run("a10", { score: { name: "accuracy", value: 0.5, low: null, high: null }, changed: "2026-01-01T00:00:00Z" }),
    run("a9", { status: "training", changed: "2026-01-02T00:00:00Z" }),
  ];
  const names = (order: string) => sorted(runs, orderOf(order)).map(({ name }) => name);

  test("by name knows numbers", () => expect(names("name")).toEqual(["a9", "a10", "b"]));
  test("by score has what has none last, both ways", () => {
    expect(names("score")).toEqual(["a10", "a9", "b"]);
    expect(names("-score")).toEqual(["a9", "a10", "b"]);
  });
  test("is newest first unless told", () => {
    expect(names("")).toEqual(["b", "a9", "a10"]);
    expect(names("no-such-column")).toEqual(["b", "a9", "a10"]);
  });
  test("by status has what trains first", () => expect(names("status")[0]).toBe("a9"));
  test("is turned by a second click", () => {
    const first = nextOrder(orderOf(undefined), "score");
    expect([written(first), written(nextOrder(first, "score"))]).toEqual(["-score", "score"]);
    expect(written(nextOrder(first, "name"))).toBe("name");
  });
  test("filter wants every word, in the language shown", () => {
    expect(filtered(runs, "a9 VIT:micro", words).length).toBe(1);
    language.value = "es";
    expect(filtered(runs, "en curso", words).map(({ name }) => name)).toEqual(["a9"]);
    language.value = "en";
    expect(filtered(runs, "finished zebra", words)).toEqual([]);
  });
  test("names with commas survive the address", () => {
    const odd = ["a,b", "50%2C", "c"];
    expect(unlisted(listed(odd))).toEqual(odd);
    expect(listed([])).toBeUndefined();
  });
});

describe("curves", () => {
  test("rows without a number are left out, and a step that was done twice counts once", () => {
    const metrics = { step: [10, 30, 20, 20, null], val_loss: [3, 1, 9, 2, 5], other: [1, null, null, null, 2] };
    expect(points(metrics, "step", "val_loss")).toEqual({ x: [10, 20, 30], y: [3, 2, 1] });
    expect(points(metrics, "step", "other")).toEqual({ x: [10], y: [1] });
    expect(points(metrics, "seconds", "val_loss")).toEqual({ x: [], y: [] });
  });
  test("share one axis", () => {
    expect(aligned([{ x: [1, 3], y: [5, 6] }, { x: [2, 3], y: [7, 8] }])).toEqual([[1, 2, 3], [5, undefined, 6], [undefined, 7, 8]]);
    expect(aligned([])).toEqual([[]]);
  });
  test("say their value at a place, or the last one", () => {
    const curve = { x: [1, 3], y: [5, 6] };
    expect([valueAt(curve, 2), valueAt(curve, 0), valueAt(curve, null)]).toEqual([5, null, 6]);
  });
  test("the metric of the score is drawn first", () => {
    const names = drawable([detail().metrics, { step: [1], val_r2: [null], val_f1: [1] }]);
    expect(names).toEqual(["val_accuracy", "val_f1", "val_loss", "learning_rate", "train_loss"]);
    expect(usualMetric(names, "f1")).toBe("val_f1");
    expect(usualMetric(names, "BLEU")).toBe("val_accuracy");
  });
  test("of compared runs keep their colours when one has no points", () => {
    const drawn = curvesOf([{ name: "a", metrics: {} }, detail()], "val_accuracy", "seconds");
    expect(drawn).toEqual([{ label: "vit-digits", colour: 1, isDashed: false, x: [1.5, 3], y: [0.5, 0.75] }]);
  });
  test("of one run: the losses together, metrics beside the baseline", () => {
    const charts = chartsOf(detail(), "step");
    expect(charts.map(({ title }) => title)).toEqual(["Loss", "accuracy, validation"]);
    expect(charts[0].curves.map(({ label }) => label)).toEqual(["loss, training", "loss, validation"]);
    expect(charts[1].curves.map(({ label, isDashed, x }) => [label, isDashed, x])).toEqual([["vit", false, [10, 20]], ["cnn", true, [10, 30]]]);
  });
  test("the best of a loss is the lowest", () => {
    expect([best([3, 1, null, 2], "val_loss"), best([3, 1, null, 2], "val_accuracy"), best([null], "x")]).toEqual([1, 3, null]);
  });
});

describe("quantities", () => {
  test.each([[0.5, "0.5 s"], [59.6, "1 min 00 s"], [61, "1 min 01 s"], [3599.6, "1 h 00 min"], [7260, "2 h 01 min"], [90_000, "1 d 1 h"]])("%d seconds", (seconds, text) =>
    expect(duration(seconds)).toBe(text));
  test("parameters and metrics", () => {
    expect([count(812), count(45_000), count(1_234_567)]).toEqual(["812", "45 k", "1.23 M"]);
    expect([metricName("val_top5_accuracy"), metricName("samples")]).toEqual(["top5 accuracy, validation", "samples"]);
    expect([whatTrains("baseline"), whatTrains("fold 2/3"), whatTrains("teacher")]).toEqual(["Baseline", "Fold of the validation 2/3", "teacher"]);
  });
});

describe("page", () => {
  let answers: Record<string, unknown>;
  let asked: { path: string; body: unknown }[];

  beforeEach(() => {
    asked = [];
    answers = {};
    vi.stubGlobal("fetch", async (path: string, options: RequestInit = {}) => {
      const name = path.replace(/^.*\/api\//, "");
      asked.push({ path: name, body: typeof options.body === "string" ? JSON.parse(options.body) : undefined });
      const found = answers[name];
      const json = { "Content-Type": "application/json" };
      if (found instanceof Error) return new Response(JSON.stringify({ error: found.message }), { status: 400, headers: json });
      return new Response(JSON.stringify(found ?? { error: "nothing there" }), { status: found ? 200 : 404, headers: json });
    });
    go(["runs"]);
  });
  afterEach(() => (cleanup(), vi.unstubAllGlobals()));

  const Here = () => <Runs path={address.value.path.slice(1)} chosen={address.value.chosen} />;

  test.each([
    ["en", ["training", "stopped", "finished", "failed"]],
    ["es", ["en curso", "detenido", "terminado", "fallido"]],
  ] as const)("says in %s how runs stand", async (spoken, expected) => {
    language.value = spoken;
    const statuses = ["training", "stopped", "finished", "failed"] as const;
    answers.runs = { folder: "runs", version: "1", runs: statuses.map((status) => run(`run-${status}`, { status })) };
    const { container } = render(<Here />);
    await screen.findByText("run-failed");
    statuses.forEach((status, index) => expect(container.querySelector(`.status.${status}`)!.textContent).toBe(expected[index]));
    language.value = "en";
  });

  test("shows a score with its interval beside the baseline's, and ways to open the run", async () => {
    answers.runs = { folder: "runs", version: "1", runs: [run("vit <b>digits</b>")] };
    render(<Here />);
    const row = (await screen.findByText("vit <b>digits</b>")).closest("tr")!;
    expect(row.textContent).toContain("0.9accuracy0.85 – 0.95");
    expect(row.textContent).toContain("0.8cnn accuracy");
    expect(row.querySelector<HTMLAnchorElement>('a[href^="#/look/"]')!.getAttribute("href")).toBe("#/look/vit%20%3Cb%3Edigits%3C%2Fb%3E");
    expect(row.querySelector('a[target="_blank"]')!.getAttribute("href")).toMatch(/\/api\/runs\/.*\/report$/);
  });

  test("tells a newcomer what to do", async () => {
    answers.runs = { folder: "/data/runs", version: "1", runs: [] };
    render(<Here />);
    expect((await screen.findByText(/shows the runs in \/data\/runs/)).textContent).toBeTruthy();
    expect(screen.getByText("mirada train digits")).toBeTruthy();
  });

  test("says the server's sentence when it refuses", async () => {
    answers.runs = new Error("There is no folder of runs.");
    render(<Here />);
    expect((await screen.findByRole("alert")).textContent).toContain("There is no folder of runs.");
  });

  test("compares what is ticked, and the address knows it", async () => {
    answers.runs = { folder: "runs", version: "1", runs: [run("a"), run("b")] };
    answers["runs/a"] = detail({ name: "a" });
    answers["runs/b"] = detail({ name: "b" });
    render(<Here />);
    fireEvent.click(await screen.findByLabelText("Compare a"));
    fireEvent.click(screen.getByLabelText("Compare b"));
    expect(address.value.chosen.compare).toBe("a,b");
    fireEvent.change(await screen.findByLabelText("Metric"), { target: { value: "val_loss" } });
    expect(address.value.chosen.metric).toBe("val_loss");
    await waitFor(() => expect(screen.getAllByRole("img")[0].getAttribute("aria-label")).toBe("loss, validation. a: from 1.5 to 1.5. b: from 1.5 to 1.5"));
  });

  test("shows live progress, and stops a training of its own only", async () => {
    const progress = { what: "model", step: 30, steps: 120, epoch: 1.5, samples: 960, seconds: 12, seconds_left: 36, samples_per_second: 80, train_loss: 1.25, learning_rate: 0.001 };
    answers["runs/vit-digits"] = detail({ status: "training", progress });
    answers["runs/vit-digits/stop"] = detail({ status: "stopped" });
    go(["runs", "vit-digits"]);
    render(<Here />);
    expect((await screen.findByText("step 30 of 120, 25 %")).textContent).toBeTruthy();
    expect(screen.getByText("80 samples/s")).toBeTruthy();
    fireEvent.click(screen.getByText("Stop"));
    await waitFor(() => expect(asked.map(({ path }) => path)).toContain("runs/vit-digits/stop"));
    answers["runs/elsewhere"] = detail({ name: "elsewhere", status: "training", is_ours: false });
    go(["runs", "elsewhere"]);
    await screen.findByText(/started elsewhere/);
    expect(screen.queryByText("Stop")).toBeNull();
  });

  test("a failed run says why, and can be resumed", async () => {
    answers["runs/vit-digits"] = detail({ status: "failed", failure: "The disk is full." });
    go(["runs", "vit-digits"]);
    render(<Here />);
    expect((await screen.findByRole("alert")).textContent).toBe("The disk is full.");
    answers["runs/vit-digits/resume"] = new Error("Another training runs already.");
    fireEvent.click(screen.getByText("Resume"));
    await screen.findByText("Another training runs already.");
  });

  test("a new training sends only what was changed, and shows what the server refuses", async () => {
    const schema = { properties: { runs: { type: "string" }, train: { properties: { batch_size: { type: "integer", minimum: 1, default: 64 }, minutes: { type: "number" } } } } };
    answers.choices = { schema, systems: [{ name: "vit", sizes: ["micro", "tiny"], summary: "Patches.", kinds: ["image"] }], presets: [{ name: "small-data", summary: "Few images." }], samples: ["digits"] };
    answers.trainings = new Error("train.batch_size=7: too odd.");
    go(["runs"], { new: "1" });
    render(<Here />);
    fireEvent.click(await screen.findByText("Start training"));
    expect(await screen.findByText("Say what to learn from.")).toBeTruthy();
    expect(asked.map(({ path }) => path)).not.toContain("trainings");
    fireEvent.click(screen.getByText("digits"));
    fireEvent.change(screen.getByLabelText("System"), { target: { value: "vit" } });
    fireEvent.change(await screen.findByLabelText("Size"), { target: { value: "micro" } });
    fireEvent.input(screen.getByLabelText("Minutes"), { target: { value: "1.5" } });
    fireEvent.input(screen.getByLabelText("batch_size"), { target: { value: "7" } });
    expect(screen.queryByLabelText("runs")).toBeNull();
    fireEvent.click(screen.getByText("Start training"));
    expect((await screen.findByRole("alert")).textContent).toContain("too odd");
    expect(screen.getByLabelText("batch_size").getAttribute("aria-invalid")).toBe("true");
    expect(asked.at(-1)!.body).toEqual({ source: "digits", system: "vit:micro", settings: { "train.batch_size": 7, "train.minutes": 1.5 } });
    answers.trainings = { name: "vit-digits" };
    answers["runs/vit-digits"] = detail();
    fireEvent.click(screen.getByText("Start training"));
    await waitFor(() => expect(address.value.path).toEqual(["runs", "vit-digits"]));
  });
});

test("of a long path the last folders and the name are shown", () => {
  expect(shortened("photos")).toBe("photos");
  expect(shortened("fieldwork/ana/projects/leaves/tables/plots.csv")).toBe("…/leaves/tables/plots.csv");
  expect(shortened("tables/a-table-with-a-name-that-is-too-long.csv")).toBe("…a-name-that-is-too-long.csv".slice(-28));
});
