import { describe, expect, it } from "vitest";
import { colourAt, cssColour, onPaper, scaleOf, tables, tilePixels } from "../src/parts/colours";
import type { Field } from "../src/parts/field";
import { heatPixels, hiddenAt, hiddenPixels, type Pixels } from "../src/parts/heat_pixels";

const flat = (width: number, height: number, grey: number, factor = 1): Pixels => {
  const data = new Uint8ClampedArray(4 * width * height).fill(grey);
  for (let n = 3; n < data.length; n += 4) data[n] = 255;
  return { data, width, height, factor };
};
const pixel = (data: Uint8ClampedArray, n: number): number[] => [...data.subarray(4 * n, 4 * n + 4)];

describe("colours", () => {
  it("are those of matplotlib's tables", () => {
    expect([...tables.heat.subarray(0, 3)]).toEqual([0, 0, 3]);
    expect([...tables.heat.subarray(3 * 128, 3 * 128 + 3)]).toEqual([182, 54, 121]);
    expect([...tables.heat.subarray(3 * 255)]).toEqual([251, 252, 191]);
    expect([...tables.signed.subarray(0, 3)]).toEqual([5, 48, 97]);
    expect([...tables.signed.subarray(3 * 255)]).toEqual([103, 0, 31]);
  });

  it("have zero in the middle where numbers are on both sides of it", () => {
    const scale = scaleOf([-1, 0, 3]);
    expect(scale).toMatchObject({ low: -3, high: 3, table: "signed" });
    expect(cssColour(scale, 0).background).toBe("rgb(247, 246, 246)");
  });

  it("leave out outliers, and say so", () => {
    const values = Float32Array.from({ length: 1000 }, (_, n) => (n === 7 ? 100 : n / 1000));
    expect(scaleOf(values, { top: 0.99 })).toMatchObject({ isCut: true });
    expect(scaleOf(values, { top: 0.99 }).high).toBeLessThan(1);
    expect(scaleOf(values).high).toBe(100);
  });

  it("do not fail on a map that is the same everywhere, or empty", () => {
    expect(scaleOf([2, 2])).toMatchObject({ low: 0, high: 2 });
    expect(scaleOf([0, 0])).toMatchObject({ low: 0, high: 1 });
    expect(scaleOf([])).toMatchObject({ low: 0, high: 1 });
  });

  it("are light for little on paper", () => {
    const scale = onPaper(scaleOf([0, 1]), false);
    expect(cssColour(scale, 0)).toEqual({ background: "rgb(251, 252, 191)", color: "#000000" });
    expect(cssColour(scale, 1)).toEqual({ background: "rgb(0, 0, 3)", color: "#ffffff" });
  });
});

describe("a tile", () => {
  it("has the colour of each number", () => {
    const data = tilePixels(new Float32Array([9, 0, 0.5, 1]), { low: 0, high: 1, table: "heat" }, 1);
    expect(pixel(data, 0)).toEqual([0, 0, 3, 255]);
    expect(pixel(data, 1)).toEqual([182, 54, 121, 255]);
    expect(pixel(data, 2)).toEqual([251, 252, 191, 255]);
  });
});

describe("heat on a picture", () => {
  const field: Field = { values: new Float32Array([7, 0, 1, 0.5, 0.25]), start: 1, grid: [2, 2], cell: [2, 2] };
  const scale = { low: 0, high: 1, table: "heat" as const };

  it("paints each cell over the grey picture, golden", () => {
    const data = heatPixels(flat(4, 4, 100), field, scale, { opacity: 1, isSmooth: false });
    const row = (n: number) => [0, 1, 2, 3].map((x) => pixel(data, 4 * n + x));
    const [a, b, c] = [[0, 0, 3, 255], [251, 252, 191, 255], [182, 54, 121, 255]];
    const d = [...tables.heat.subarray(colourAt(scale, 0.25), colourAt(scale, 0.25) + 3), 255];
    expect(row(0)).toEqual([a, a, b, b]);
    expect(row(1)).toEqual(row(0));
    expect(row(2)).toEqual([c, c, d, d]);
    expect(row(3)).toEqual(row(2));
  });

  it("mixes with the picture by its opacity", () => {
    const data = heatPixels(flat(4, 4, 100), field, scale, { opacity: 0.5, isSmooth: false });
    expect(pixel(data, 2)).toEqual([176, 176, 146, 255]); // (100 + 251) / 2, (100 + 252) / 2, (100 + 191) / 2
  });

  it("turns the picture grey by its brightness", () => {
    const red: Pixels = { data: new Uint8ClampedArray([255, 0, 0, 255]), width: 1, height: 1, factor: 1 };
    expect(pixel(heatPixels(red, field, scale, { opacity: 0, isSmooth: false }), 0)).toEqual([76, 76, 76, 255]);
  });

  it("leaves the picture alone beyond the grid", () => {
    const data = heatPixels(flat(6, 4, 100), field, scale, { opacity: 1, isSmooth: false });
    expect(pixel(data, 4)).toEqual([100, 100, 100, 255]);
  });

  it("does not show cells beyond the picture: a padded grid is cut", () => {
    const padded: Field = { values: new Float32Array([0, 0, 1, 0, 0, 1, 1, 1, 1]), start: 0, grid: [3, 3], cell: [2, 2] };
    const data = heatPixels(flat(4, 4, 100), padded, scale, { opacity: 1, isSmooth: false });
    for (let n = 0; n < 16; n++) expect(pixel(data, n)).toEqual([0, 0, 3, 255]);
  });

  it("is smooth between the middles of cells", () => {
    const two: Field = { values: new Float32Array([0, 1]), start: 0, grid: [1, 2], cell: [8, 8] };
    const data = heatPixels(flat(16, 8, 0), two, scale, { opacity: 1, isSmooth: true });
    const at = (share: number) => [...tables.heat.subarray(colourAt(scale, share), colourAt(scale, share) + 3), 255];
    expect(pixel(data, 0)).toEqual(at(0));
    expect(pixel(data, 7)).toEqual(at((7.5 - 4) / 8));
    expect(pixel(data, 15)).toEqual(at(1));
  });
});

describe("hidden cells", () => {
  it("go by falling relevance, equal ones in their order", () => {
    const values = new Float32Array([0.1, 0.5, 0.5, 0.9]);
    expect([...hiddenAt(values, 0.5, true)]).toEqual([0, 1, 0, 1]);
    expect([...hiddenAt(values, 0.5, false)]).toEqual([1, 0, 1, 0]);
    expect([...hiddenAt(values, 0, true)]).toEqual([0, 0, 0, 0]);
  });

  it("show the picture that stands in for them, or grey", () => {
    const field: Field = { values: new Float32Array(2), start: 0, grid: [1, 2], cell: [1, 1] };
    const picture = flat(2, 1, 10);
    expect(pixel(hiddenPixels(picture, field, new Uint8Array([0, 1]), flat(2, 1, 77)), 1)).toEqual([77, 77, 77, 255]);
    const grey = hiddenPixels(picture, field, new Uint8Array([0, 1]), null);
    expect(pixel(grey, 0)).toEqual([10, 10, 10, 255]);
    expect(pixel(grey, 1)).toEqual([128, 128, 128, 255]);
  });
});
