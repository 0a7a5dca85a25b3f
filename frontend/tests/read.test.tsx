import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/preact";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { address, go } from "../src/address";
import { Read } from "../src/pages/read";
import { asAddress, readChoice, USUAL } from "../src/pages/read_choice";
import { question } from "../src/pages/read_next";
import { language } from "../src/words";
import { serve, type Asked } from "./studio_server";

function Page() {
  const { path, chosen } = address.value;
  return <Read path={path.slice(1)} chosen={chosen} />;
}

let asked: Asked[];
beforeEach(() => {
  language.value = "en";
  asked = serve();
});
afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

const open = async (chosen: Record<string, string> = {}) => {
  go(["read", "t"], { text: "the cat sat", ...chosen });
  render(<Page />);
  await screen.findByText(/^Coloured:/);
};

it("address and state round trip", () => {
  const chosen = { text: "¿a & b?", target: "x", at: "2", method: "rollout", layer: "1", head: "2", token: "0", way: "column", view: "graph", edges: "9", written: " on" };
  expect(asAddress(readChoice(chosen))).toEqual(chosen);
  expect(readChoice({})).toEqual(USUAL);
  expect(readChoice({ at: "-4", layer: "x", way: "<", view: "?" })).toEqual(USUAL);
});

it("a sentence is typed and read", async () => {
  go(["read", "t"]);
  render(<Page />);
  const area = await screen.findByRole("textbox");
  fireEvent.input(area, { target: { value: "the cat" } });
  fireEvent.click(screen.getByRole("button", { name: "Read" }));
  expect(address.value.chosen.text).toBe("the cat");
  await waitFor(() => expect(asked.find(({ path }) => path === "runs/t/readings")!.body).toEqual({ text: "the cat" }));
});

describe("tokens", () => {
  it("have the colours of their relevance, and are text", async () => {
    await open();
    const line = screen.getByRole("toolbar", { name: "Tokens by relevance" });
    const tokens = [...line.querySelectorAll("button")];
    expect(tokens.map((token) => token.textContent)).toEqual(["the", "cat", "<i>sat</i>"]);
    expect(tokens.map((token) => token.title)).toEqual(["0.1", "0.9", "0.4"]);
    expect(tokens[1].style.background).toContain("rgb");
  });

  it("are walked by arrow keys", async () => {
    await open();
    const line = screen.getByRole("toolbar", { name: "Tokens" });
    const tokens = [...line.querySelectorAll("button")];
    tokens[0].focus();
    fireEvent.keyDown(tokens[0], { key: "ArrowRight" });
    expect(document.activeElement).toBe(tokens[1]);
    fireEvent.click(tokens[1]);
    expect(address.value.chosen.token).toBe("1");
  });
});

describe("attention", () => {
  it("is the mean of all heads, one request for each", async () => {
    await open();
    const heads = asked.filter(({ path }) => path.endsWith("/weights")).map(({ query }) => query.get("head"));
    expect(heads).toEqual(["0", "1"]);
    // Row 0 of the mean of the two matrices, which differ by 1.
    const line = screen.getByRole("toolbar", { name: "Tokens" });
    expect([...line.querySelectorAll("button")].map((token) => token.title)).toEqual(["1.5", "0.5", "0.5"]);
  });

  it("shows where a token looks, and who looks at it", async () => {
    await open({ token: "2", head: "1" });
    expect(screen.getByText("Coloured: where “<i>sat</i>” looks")).toBeTruthy();
    fireEvent.click(screen.getByRole("button", { name: "who looks at it" }));
    await screen.findByText("Coloured: who looks at “<i>sat</i>”");
    const line = screen.getByRole("toolbar", { name: "Tokens" });
    expect([...line.querySelectorAll("button")].map((token) => token.title)).toEqual(["0", "0", "0.5"]);
  });

  it("a head that looks back only begins at the last token", async () => {
    await open({ head: "1" });
    expect(screen.getByText("Coloured: where “<i>sat</i>” looks")).toBeTruthy();
  });

  it("is drawn as lines, the strongest first, as many as chosen", async () => {
    await open({ view: "graph", edges: "2", head: "1" });
    const lines = [...document.querySelectorAll("svg.graph line")];
    expect(lines.map((line) => line.textContent).sort()).toEqual(["cat → the: 0.5", "the → the: 1"]);
  });

  it("walks the matrix by keys", async () => {
    await open({ token: "0" });
    const matrix = screen.getByRole("application", { name: /blocks.0: matrix of 3 tokens/ });
    fireEvent.keyDown(matrix, { key: "ArrowDown" });
    expect(address.value.chosen.token).toBe("1");
    expect(screen.getByText("“cat” looks at “the”: 1")).toBeTruthy();
  });
});

describe("step by step", () => {
  it("one goes on with a token, and back", async () => {
    await open();
    fireEvent.click(await screen.findByRole("button", { name: "on 70 %" }));
    expect(address.value.chosen.written).toBe("the cat sat on");
    await waitFor(() => expect(asked.filter(({ path }) => path === "runs/t/next").at(-1)!.body).toMatchObject({ text: "the cat sat on" }));
    await waitFor(() => expect((screen.getByRole("button", { name: "by 10 %" }) as HTMLButtonElement).disabled).toBe(false));
    fireEvent.click(screen.getByRole("button", { name: "by 10 %" }));
    expect(address.value.chosen.written).toBe("the cat sat on by");
    fireEvent.click(screen.getByRole("button", { name: /One step back/ }));
    expect(address.value.chosen.written).toBe("the cat sat on");
  });

  it("a translation grows beside its source, a text grows itself", () => {
    expect(question("translate", "uno", "o")).toEqual({ text: "uno", written: "o" });
    expect(question("generate", "uno", "uno dos")).toEqual({ text: "uno dos" });
    expect(question("fill", "uno ___", "")).toEqual({ text: "uno ___" });
  });
});
