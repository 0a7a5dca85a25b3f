import { describe, expect, it } from "vitest";
import type { LayerInfo } from "../src/api";
import { rankCorrelation, ranks } from "../src/parts/agreement";
import { place, resampled, shownCells, tokenAt, walked, type Field } from "../src/parts/field";
import { strongest } from "../src/parts/graph";
import { fused, headsOf } from "../src/parts/heads";
import { layerNumber, moved } from "../src/parts/layers";
import { nearestStep } from "../src/parts/strip";
import { askedIn } from "../src/pages/look_ask";
import { scaledAt, scaledField } from "../src/pages/look_pair";
import { teach } from "../src/words";
import { read } from "../src/words/read";
import { writtenTokens } from "../src/pages/read_translation";

teach(read);
const vit = { size: [2, 3], extra: 1, cell: [4, 4] as [number, number] };
const size: [number, number] = [8, 12];

describe("places of tokens", () => {
  it("come after the extra ones, row by row", () => {
    expect(tokenAt("6,9", vit, size)).toEqual({ index: 6, row: 1, column: 2 });
    expect(tokenAt("0,0", vit, size)).toEqual({ index: 1, row: 0, column: 0 });
  });

  it("are the class token where nothing is chosen, or the middle where there is none", () => {
    expect(tokenAt("", vit, size)).toEqual({ index: 0 });
    expect(tokenAt("", { ...vit, extra: 0 }, size)).toEqual({ index: 4, row: 1, column: 1 });
  });

  it("know further extra tokens, and say when there is no such one", () => {
    expect(tokenAt("e1", { ...vit, extra: 3 }, size)).toEqual({ index: 1 });
    expect(tokenAt("e7", { ...vit, extra: 3 }, size)).toEqual({ index: 2 });
    expect(tokenAt("e0", { ...vit, extra: 0 }, size)).toBeNull();
    expect(tokenAt("1,1", { size: [5], extra: 1, cell: null }, size)).toBeNull();
    expect(tokenAt("x,y", vit, size)).toBeNull();
  });

  it("stay on the grid, also for typed nonsense", () => {
    expect(tokenAt("999,-5", vit, size)).toEqual({ index: 4, row: 1, column: 0 });
  });

  it("walk by arrow keys, on the cells that can be seen of a padded grid", () => {
    const padded = { size: [3, 3], extra: 0, cell: [4, 4] as [number, number] };
    const picture: [number, number] = [10, 8]; // 2.5 rows and 2 columns of cells
    expect(shownCells(padded, picture)).toEqual([3, 2]);
    expect(walked("6,6", "ArrowRight", padded, picture)).toBe(place(1, 1, [4, 4]));
    expect(walked("6,6", "ArrowDown", padded, picture)).toBe("10,6");
    expect(walked("6,6", "ArrowUp", padded, picture)).toBe("2,6");
    expect(walked("", "ArrowUp", padded, picture)).toBe("6,2"); // from nowhere to the middle
    expect(walked("6,6", "x", padded, picture)).toBeNull();
    expect(walked("6,6", "ArrowUp", { size: [9], extra: 0, cell: null }, picture)).toBeNull();
  });
});

describe("who is asked in a layer", () => {
  const layer = (shape: [number, number, number]): LayerInfo => ({ name: "a", kind: "self", asker: "pool", shape, queries: vit, keys: { ...vit, extra: 0 } });
  it("is a query for where it looks, a key for who looks at it", () => {
    expect(askedIn(layer([2, 7, 6]), { at: "0,0", way: "row" }, size)).toMatchObject({ token: { index: 1 }, isPooling: false });
    expect(askedIn(layer([2, 7, 6]), { at: "0,0", way: "column" }, size)).toMatchObject({ token: { index: 0 } });
  });
  it("is the one query of a pooling", () => {
    expect(askedIn(layer([2, 1, 6]), { at: "6,9", way: "row" }, size)).toMatchObject({ token: { index: 0 }, isPooling: true });
  });
});

describe("heads as one", () => {
  const values = new Float32Array([1, 5, 3, 3, 2, 10]); // 3 heads, 2 tokens
  it("by mean, max, min, or one of them", () => {
    expect([...fused(values, 3, "mean")]).toEqual([2, 6]);
    expect([...fused(values, 3, "max")]).toEqual([3, 10]);
    expect([...fused(values, 3, "min")]).toEqual([1, 3]);
    expect([...fused(values, 3, 2)]).toEqual([3, 3]);
    expect([...fused(values, 3, 99)]).toEqual([2, 10]);
  });
  it("leave the numbers as they were", () => {
    fused(values, 3, "mean");
    expect([...values]).toEqual([1, 5, 3, 3, 2, 10]);
  });
  it("are read from an address", () => {
    expect([undefined, "mean", "max", "min", "3", "0", "-1", "x", "1.5"].map(headsOf)).toEqual(["mean", "mean", "max", "min", 3, "mean", "mean", "mean", "mean"]);
  });
});

describe("layers", () => {
  it("are the last for nothing and for numbers there is no layer of", () => {
    expect([0, 1, 4, 5, -1].map((layer) => layerNumber(layer, 4))).toEqual([3, 0, 3, 3, 3]);
  });
  it("move by keys and stay inside", () => {
    const layers = [{ shape: [2, 1, 1] }, { shape: [4, 1, 1] }] as LayerInfo[];
    expect(moved(layers, 0, "mean", [0, 1])).toEqual({ layer: 1, head: "1" });
    expect(moved(layers, 0, 2, [0, 1])).toEqual({ layer: 1, head: "2" });
    expect(moved(layers, 0, "max", [1, 0])).toEqual({ layer: 2, head: "max" });
    expect(moved(layers, 1, 3, [1, 0])).toEqual({ layer: 2, head: "3" });
  });
});

describe("agreement", () => {
  it("is Spearman's rank correlation, with shared ranks", () => {
    expect([...ranks([10, 30, 20, 20])]).toEqual([1, 4, 2.5, 2.5]);
    expect(rankCorrelation([1, 2, 3], [10, 20, 90])).toBeCloseTo(1);
    expect(rankCorrelation([1, 2, 3], [3, 2, 1])).toBeCloseTo(-1);
    // scipy.stats.spearmanr([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]) = 0.8207826816681233
    expect(rankCorrelation([1, 2, 3, 4, 5], [5, 6, 7, 8, 7])).toBeCloseTo(0.8207826816681233, 12);
  });
  it("is not there where one map is the same everywhere", () => {
    expect(rankCorrelation([1, 1, 1], [1, 2, 3])).toBeNull();
    expect(rankCorrelation([1, 2], [1, 2, 3])).toBeNull();
  });
  it("reads another grid in the middles of cells", () => {
    const fine: Field = { values: Float32Array.from({ length: 16 }, (_, n) => n), start: 0, grid: [4, 4], cell: [2, 2] };
    expect([...resampled(fine, [2, 2], [4, 4])]).toEqual([5, 7, 13, 15]);
    const large = scaledField(fine, [8, 8], [16, 16]);
    expect(large.cell).toEqual([4, 4]);
    expect(scaledAt("4,6", [8, 8], [16, 32])).toBe("8,24");
    expect(scaledAt("e1", [8, 8], [16, 32])).toBe("e1");
  });
});

describe("smaller things", () => {
  it("the step nearest to a share", () => {
    expect(nearestStep(new Float32Array([0, 0.2, 0.4, 1]), 0.25)).toBe(1);
    expect(nearestStep(new Float32Array([0, 0.2, 0.4, 1]), 9)).toBe(3);
  });
  it("the strongest edges first, also of very many", () => {
    expect(strongest(new Float32Array([0, 0.3, 0.7, 0]), 2)).toEqual([
      { row: 1, column: 0, weight: expect.closeTo(0.7) },
      { row: 0, column: 1, weight: expect.closeTo(0.3) },
    ]);
    const many = Float32Array.from({ length: 1_000_000 }, (_, n) => ((n * 7919) % 1_000_003) / 1_000_003);
    const found = strongest(many, 1000, 100);
    expect(found).toHaveLength(100);
    expect(found[99].weight).toBe([...many.slice().sort()].at(-100));
  });
  it("rows of an alignment by what was written", () => {
    expect(writtenTokens(["[start]", "a", "b"], 2)).toEqual(["a", "b"]);
    expect(writtenTokens(["[start]", "a", "b"], 3)).toEqual(["a", "b", "[end]"]);
  });
});
