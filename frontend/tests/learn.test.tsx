import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/preact";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { address, go, parse } from "../src/address";
import { Learn } from "../src/pages/learn";
import { exact, reasonIn, type Demo, type DemoAnswer, type Lesson } from "../src/pages/learn_answers";
import { arcPath, arcsOf, neighboursOf } from "../src/pages/learn_arcs";
import { ticks, tickName } from "../src/pages/learn_chart";
import { chosenOf, costQuery, inputsOf, mechanismOf, openDemo, pairsOf, pick, USUAL } from "../src/pages/learn_choice";
import { valuesOf } from "../src/pages/learn_demos";
import { equation, pieces } from "../src/pages/learn_equation";
import { language } from "../src/words";

const plain = (line: string) => pieces(line).map(({ text }) => text).join("");
const base64 = (values: number[]) => btoa(String.fromCharCode(...new Uint8Array(Float32Array.from(values).buffer)));

describe("the equation", () => {
  beforeEach(() => (language.value = "en"));

  test("of full scaled dot attention", () => {
    expect(equation(USUAL).map(plain)).toEqual(["sij = qi·kj / √K", "Ni = {all j}", "αij = exp(sij) / Σl ∈ Ni exp(sil)", "hi = Σj ∈ Ni αij vj", "out = Concat(head1 … headH) WO"]);
  });

  test("names every chosen part", () => {
    const lines = equation({ ...USUAL, score: "additive", kind: "window", reach: 2, also: "causal", position: "rotary", heads: "averaged" }).map(plain);
    expect(lines[0]).toBe("qi ← Ri qi,  kj ← Rj kj");
    expect(lines[1]).toBe("sij = v⊤ tanh(Wq qi + Wk kj)");
    expect(lines[2]).toBe("Ni = {j : |i − j| ≤ 2, j ≤ i}");
    expect(lines.at(-1)).toBe("out = mean(head1 … headH)");
  });

  test("a relative position enters scores and values", () => {
    const lines = equation({ ...USUAL, position: "relative" }).map(plain);
    expect(lines[0]).toBe("sij = qi·kj / √K + qi·aj−i / √K");
    expect(lines.at(-2)).toBe("hi = Σj ∈ Ni αij (vj + bj−i)");
  });

  test("indices are below the line, an index of an index too", () => {
    expect(pieces("Σ_{j ∈ N_{i}} W^{O} x")).toEqual([
      { text: "Σ", level: "line" },
      { text: "j ∈ Ni", level: "sub" },
      { text: " W", level: "line" },
      { text: "O", level: "sup" },
      { text: " x", level: "line" },
    ]);
  });
});

describe("the address", () => {
  beforeEach(() => go(["learn"]));

  test("what is picked is read back, and what is usual is left out", () => {
    const changes = { text: "¿a & b?", kind: "fixed", block: 5, num_summary: 2, also: "window", also_reach: 3, heads: "re-attention", row: 0, cost: "flops" };
    pick(changes);
    expect(chosenOf(parse(location.hash).chosen)).toEqual({ ...USUAL, ...changes });
    pick({ ...USUAL });
    expect(location.hash).toBe("#/learn");
  });

  test("nonsense in a link becomes the usual", () => expect(chosenOf({ dim: "wide", row: "" })).toEqual(USUAL));

  test("a demo has its own inputs, which go with it", () => {
    go(["learn"], { kind: "causal" });
    openDemo("rotary-sign", address.value.chosen);
    go(["learn"], { ...address.value.chosen, "in.theta": "1.5" });
    expect(inputsOf(address.value.chosen)).toEqual({ theta: "1.5" });
    openDemo("grid", address.value.chosen);
    expect(address.value.chosen).toEqual({ kind: "causal", demo: "grid" });
  });
});

describe("what is asked", () => {
  test("a mechanism has only the numbers of its rules", () => {
    expect(mechanismOf({ ...USUAL, kind: "window", reach: 2, also: "causal" }).neighbours).toEqual([{ kind: "window", reach: 2 }, { kind: "causal" }]);
    expect(mechanismOf({ ...USUAL, kind: "grid", columns: 3 })).toMatchObject({ columns: 3, text: USUAL.text });
    expect(mechanismOf({ ...USUAL, length: 9, columns: 3 })).toMatchObject({ length: 9 });
    expect(mechanismOf({ ...USUAL, length: 9, columns: 3 })).not.toHaveProperty("columns");
  });

  test("edges as people type them", () => {
    expect(pairsOf("0-1, 2 - 3;4-5 x")).toEqual([[0, 1], [2, 3], [4, 5]]);
    expect(costQuery({ ...USUAL, kind: "edges", edges: "0-1, 1-2" }, 6)).toBe("kind=edges&edges=0-1%2C1-2&dim=16&num_tokens=6");
  });

  test("the cost of two rules", () => {
    expect(costQuery({ ...USUAL, kind: "strided", also: "window", also_reach: 4 }, 6)).toBe("kind=strided&stride=3&also=window&also_reach=4&dim=16&num_tokens=6");
  });
});

describe("a mask as a graph", () => {
  const causal = [1, 0, 0, 1, 1, 0, 0, 1, 1];

  test("an arc for each pair", () => {
    expect(arcsOf(causal, 3)).toEqual([{ from: 0, to: 0 }, { from: 1, to: 0 }, { from: 1, to: 1 }, { from: 2, to: 1 }, { from: 2, to: 2 }]);
    expect(neighboursOf(causal, 3, 2)).toEqual([1, 2]);
  });

  test("back over the top, ahead under the bottom", () => {
    const x = (index: number) => 10 * index;
    expect(arcPath({ from: 2, to: 0 }, x, 50, 5)).toBe("M20 45A10 10 0 0 0 0 45");
    expect(arcPath({ from: 0, to: 2 }, x, 50, 5)).toBe("M0 55A10 10 0 0 0 20 55");
  });
});

describe("numbers", () => {
  beforeEach(() => (language.value = "en"));

  test.each([
    [2003828736, "2,003,828,736"],
    [0.40131232, "0.40131"],
    [1.746928e-7, "1.7469e−7"],
    [0, "0"],
  ])("%d is said as %s", (value, expected) => expect(exact(value)).toBe(expected));

  test("ticks are round", () => {
    expect(ticks(0, 9, false)).toEqual([0, 2, 4, 6, 8]);
    expect(ticks(1, 1e4, true)).toEqual([1, 10, 100, 1000, 10000]);
    expect(tickName(1e6, true)).toBe("10⁶");
    expect(tickName(1e-7, true)).toBe("10⁻⁷");
  });

  test("reasons are said in Spanish, and unknown ones as they come", () => {
    language.value = "es";
    expect(reasonIn("ScaledDot is no distance")).toBe("ScaledDot no es una distancia");
    expect(reasonIn("something new")).toBe("something new");
  });
});

const SLOW = { timeout: 10_000 };
const same = (text: string) => ({ en: text, es: `${text} (es)` });
const demo: Demo = {
  name: "rotary-sign",
  items: ["E33", "C9"],
  title: same("One sign"),
  given: "última fila",
  right: same("sin, cos"),
  see: same("Look at the determinant."),
  inputs: [
    { name: "theta", label: same("θ"), value: 0.7, low: 0, high: 3.2, step: 0.1, choices: [] },
    { name: "position", label: same("position"), value: "none", low: 0, high: 0, step: 1, choices: ["none", "rotary"] },
  ],
};
const answer: DemoAnswer = {
  numbers: [{ label: same("determinant"), value: 0.16996714, mark: "wrong" }],
  pictures: [
    { kind: "matrix", title: same("block"), rows: ["a", "b"], columns: ["a", "b"], values: [[0.76, -0.64], [0.64, 0.76]], digits: 2 },
    { kind: "lines", title: same("against"), x_label: same("angle"), x: [0, 1, 2], series: { det: [1, 0.5, 1] }, labels: { det: same("det") }, log_x: false, log_y: false, marker: 1 },
  ],
};
const lesson: Lesson = {
  tokens: ["el", "gato", "negro"],
  size: [3],
  num_heads: 1,
  mask: base64([1, 0, 0, 1, 1, 0, 0, 1, 1]),
  logits: base64(Array(9).fill(0)),
  weights: base64([1, 0, 0, 0.25, 0.75, 0, 0, 0.5, 0.5]),
  kernel: "block local",
  kernels: [
    { name: "edge list", reason: "the neighbourhood is not a list of edges" },
    { name: "block local", reason: null },
  ],
  num_pairs: 5,
  flops_formula: 3000,
  flops_full: 5000,
};
const cost = { lengths: [2, 4, 8], pairs: [3, 7, 15], pairs_full: [4, 16, 64], flops: [1, 2, 3], flops_full: [2, 4, 8] };

describe("the page", { timeout: 40_000 }, () => {
  const asked: [string, unknown][] = [];

  beforeEach(() => {
    language.value = "en";
    asked.length = 0;
    vi.stubGlobal("fetch", async (path: string, options: RequestInit = {}) => {
      asked.push([path, options.body ? JSON.parse(String(options.body)) : null]);
      const found = path.includes("attend") ? lesson : path.includes("cost") ? cost : path.includes("count") ? { flops: 4321 } : path.includes("demos/") ? answer : [demo];
      return new Response(JSON.stringify(found), { headers: { "Content-Type": "application/json" } });
    });
    go(["learn"], { demo: "rotary-sign", "in.theta": "0.5" });
  });
  afterEach(() => {
    cleanup();
    vi.unstubAllGlobals();
  });

  const Page = () => <Learn path={[]} chosen={address.value.chosen} />;

  test("a demo shows the numbers that the server computed from its inputs", async () => {
    render(<Page />);
    await waitFor(() => screen.getByText("0.16997"), SLOW);
    expect(asked.find(([path]) => path.endsWith("demos/rotary-sign"))?.[1]).toEqual({ theta: 0.5, position: "none" });
    expect(screen.getByText("E33")).toBeTruthy();
    expect(screen.getByText("última fila")).toBeTruthy();
    fireEvent.input(screen.getByLabelText("θ"), { target: { value: "0.7" } });
    expect(address.value.chosen).toEqual({ demo: "rotary-sign" });
  });

  test("weights, kernel and graph are those of the answer, and a click marks a token", async () => {
    const { container } = render(<Page />);
    await waitFor(() => screen.getByText("Computed by: block local"), SLOW);
    expect([...container.querySelectorAll("table.weights tbody tr")[1].querySelectorAll("td")].map((cell) => cell.textContent)).toEqual(["0.25", "0.75", "·"]);
    await waitFor(() => screen.getByText(/4,321/), SLOW);
    expect(container.querySelectorAll("svg.arcs path").length).toBe(2);
    expect(container.querySelectorAll("svg.mask .pair").length).toBe(5);
    expect(screen.getByText("“negro” sees 2: gato, negro.")).toBeTruthy();
    fireEvent.click(container.querySelectorAll(".token-node")[0]);
    await waitFor(() => screen.getByText("“el” sees 1: el."), SLOW);
    expect(address.value.chosen.row).toBe("0");
  });

  test("values of inputs are numbers or one of the choices", () =>
    expect(valuesOf(demo.inputs, { position: "rotary" })).toEqual({ theta: 0.7, position: "rotary" }));
});
