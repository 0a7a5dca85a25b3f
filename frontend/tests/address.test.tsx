import { beforeEach, describe, expect, test } from "vitest";
import { address, choose, go, parse, permalink, written, type Address } from "../src/address";

describe("address", () => {
  test.each([
    ["#/runs", { path: ["runs"], chosen: {} }],
    ["", { path: [], chosen: {} }],
    ["#/look/vit-digits?layer=3&method=chefer", { path: ["look", "vit-digits"], chosen: { layer: "3", method: "chefer" } }],
    ["#/runs/a%2Fb?x=1", { path: ["runs", "a/b"], chosen: { x: "1" } }],
    ["#/read/r?text=why%3F%20yes", { path: ["read", "r"], chosen: { text: "why? yes" } }],
    ["#/read/r?text=a?b", { path: ["read", "r"], chosen: { text: "a?b" } }],
    ["#/runs/50%", { path: ["runs", "50%"], chosen: {} }], // half typed
  ])("%s is read", (hash, expected) => expect(parse(hash)).toEqual(expected));

  test.each<Address>([
    { path: ["runs"], chosen: {} },
    { path: ["look", "niños & 50% / <b>"], chosen: { text: "¿qué? a=b&c #1", at: "3,5" } },
    { path: ["runs", "a b"], chosen: { compare: "x,y%2Cz", empty: "" } },
  ])("what is written is read back", (what) => expect(parse(written(what))).toEqual(what));

  test("choices are written in one order, whatever the order in which they were made", () =>
    expect(written({ path: ["a"], chosen: { b: "1", a: "2" } })).toBe(written({ path: ["a"], chosen: { a: "2", b: "1" } })));
});

describe("going and choosing", () => {
  beforeEach(() => go(["runs"]));

  test("a choice changes the address in place, undefined forgets it", () => {
    choose({ sort: "-score", layer: 3 });
    expect(location.hash).toBe("#/runs?layer=3&sort=-score");
    expect(address.value.chosen).toEqual({ sort: "-score", layer: "3" });
    choose({ layer: undefined });
    expect(address.value.chosen).toEqual({ sort: "-score" });
  });

  test("the permalink leads to the same place and keeps the token to itself", () => {
    go(["look", "a/b"], { method: "chefer" });
    const link = new URL(permalink());
    expect(parse(link.hash)).toEqual({ path: ["look", "a/b"], chosen: { method: "chefer" } });
    expect(link.searchParams.has("token")).toBe(false);
  });
});
