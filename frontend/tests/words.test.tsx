import { afterEach, describe, expect, test } from "vitest";
import { language, number, say, teach, type Words } from "../src/words";

const files = import.meta.glob<Record<string, Words>>("../src/words/*.ts", { eager: true });
const sources = import.meta.glob<string>("../src/**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true });

const all: Words = {};
for (const [file, exported] of Object.entries(files))
  if (!file.endsWith("/index.ts")) for (const words of Object.values(exported)) Object.assign(all, words);

// say("a.b"), say(isX ? "a.b" : "c.d") and say(`a.${b}`), whose part before ${ must be the start of some key.
function asked(source: string): { keys: string[]; starts: string[] } {
  const calls = [...source.matchAll(/\bsay\(([^()]*?["`][^()]*?)[,)]/g)].map((call) => call[1]);
  const keys = calls.flatMap((call) => [...call.matchAll(/"([\w-]+(?:\.[\w-]+)+)"/g)].map((key) => key[1]));
  const starts = calls.flatMap((call) => [...call.matchAll(/`([\w.-]*)\$\{/g)].map((start) => start[1]));
  return { keys, starts };
}

const holes = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map((hole) => hole[1]).sort();

describe("words", () => {
  test("the sources are found, and calls in them", () => {
    expect(Object.keys(sources).length).toBeGreaterThan(15);
    expect(asked('say("a.b") say(x ? "c.d" : "e.f", { g: 1 }) say(`h.${i}`)')).toEqual({ keys: ["a.b", "c.d", "e.f"], starts: ["h."] });
  });

  test.each(Object.keys(sources))("%s says only what is written down", (file) => {
    const { keys, starts } = asked(sources[file]);
    expect(keys.filter((key) => !all[key])).toEqual([]);
    expect(starts.filter((start) => start && !Object.keys(all).some((key) => key.startsWith(start)))).toEqual([]);
  });

  test.each(Object.entries(all))("%s is said in both languages, with the same gaps", (_, { en, es }) => {
    expect(en.trim()).not.toBe("");
    expect(es.trim()).not.toBe("");
    expect(holes(es)).toEqual(holes(en));
  });
});

describe("say", () => {
  afterEach(() => (language.value = "en"));

  test("fills in and follows the language", () => {
    teach({ "test.hello": { en: "Hello {name}", es: "Hola {name}" } });
    expect(say("test.hello", { name: "$& Ana" })).toBe("Hello $& Ana");
    language.value = "es";
    expect(say("test.hello", { name: "Ana" })).toBe("Hola Ana");
    expect(document.documentElement.lang).toBe("es");
    expect(say("no.such.word")).toBe("no.such.word");
  });

  test("numbers are short", () => {
    expect(number(0.98765)).toBe("0.988");
    expect(number(0)).toBe("0");
    expect(number(0.00012)).toBe("1.2e−4");
    expect(number(12_345_678)).toBe("1.2e+7");
  });
});
