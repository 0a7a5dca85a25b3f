import { expect, it } from "vitest";
import { scaleOf } from "../src/parts/colours";
import { heatSvg, wrapped } from "../src/parts/export_picture";
import { csv, fileName } from "../src/parts/files";

const values = new Float32Array([0.125, 0.5, 0.25, 1]);
const shown = {
  picture: "data:image/png;base64,AAAA",
  size: [3, 4] as [number, number], // the second row of cells reaches beyond the picture
  field: { values, start: 0, grid: [2, 2] as [number, number], cell: [2, 2] as [number, number] },
  scale: scaleOf(values),
  opacity: 0.6,
  mark: { row: 0, column: 1, cell: [2, 2] as [number, number] },
  unit: "relevance",
  lines: ['<script>alert("x")</script> & a \u0000 name', "What it is not."],
};

it("an SVG parses and has every number, its scale and its words", () => {
  const svg = heatSvg(shown);
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
  expect(parsed.querySelector("parsererror")).toBeNull();
  const cells = [...parsed.querySelectorAll("g.heat rect")];
  expect(cells.map((cell) => Number(cell.getAttribute("data-value")))).toEqual([0.125, 0.5, 0.25, 1]);
  expect(cells.map((cell) => `${cell.getAttribute("data-row")},${cell.getAttribute("data-column")}`)).toEqual(["1,1", "1,2", "2,1", "2,2"]);
  expect(cells.map((cell) => Number(cell.getAttribute("height")))).toEqual([240, 240, 120, 120]);
  const texts = [...parsed.querySelectorAll("text")].map((text) => text.textContent);
  expect(texts).toContain("0.125");
  expect(texts).toContain("1");
  expect(texts).toContain("What it is not.");
});

it("names in an SVG are text, never markup", () => {
  const svg = heatSvg(shown);
  expect(svg).not.toContain("<script>");
  expect(svg).not.toContain("\u0000");
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
  expect(parsed.querySelector("script")).toBeNull();
  expect([...parsed.querySelectorAll("text")].some((text) => text.textContent!.includes('<script>alert("x")</script>'))).toBe(true);
});

it("long lines are wrapped between words", () => {
  expect(wrapped("one two three", 7)).toEqual(["one two", "three"]);
  expect(wrapped("unbreakable", 3)).toEqual(["unbreakable"]);
});

it("a CSV quotes names, and gives no formulas to spreadsheets", () => {
  expect(csv([["a", "b"], ['he said "no"', 0.1234567891], ["=1+1", -2]])).toBe('"a","b"\n"he said ""no""",0.1234568\n"\'=1+1",-2\n');
});

it("names of files have no paths in them", () => {
  expect(fileName("../../etc/pass wd", "layer 3")).toBe("etc-pass-wd-layer-3");
  expect(fileName("…")).toBe("mirada");
});
