import { cleanup, fireEvent, render, screen, waitFor } from "@testing-library/preact";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { address, go } from "../src/address";
import { Look } from "../src/pages/look";
import { asAddress, lookChoice, USUAL } from "../src/pages/look_choice";
import { language } from "../src/words";
import { serve, weight, type Asked } from "./studio_server";

function Page() {
  const { path, chosen } = address.value;
  return <Look path={path.slice(1)} chosen={chosen} />;
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

const open = async (chosen: Record<string, string> = {}, run = "a") => {
  go(["look", run], chosen);
  render(<Page />);
  await screen.findByRole("heading", { name: /Layer/ });
};
const attention = () => screen.getByRole("application", { name: /Layer .* on the picture/ });
const weights = () => asked.filter(({ path }) => path.endsWith("/weights"));

describe("address and state", () => {
  it("round trip: what is chosen comes back, and what is usual is left out", () => {
    const chosen = { held: "3", target: "a & b", method: "rollout", follow: "1", layer: "2", head: "max", at: "4.5,6", way: "column", second: "b", smooth: "1", opacity: "20", common: "0", curve: "insertion", step: "2", start: "12", only: "wrong" };
    const choice = lookChoice(chosen);
    expect(asAddress(choice)).toMatchObject(chosen);
    expect(lookChoice({})).toEqual(USUAL);
    expect(Object.values(asAddress(USUAL)).every((value) => value === undefined)).toBe(true);
  });

  it("nonsense in a link is as usual", () => {
    expect(lookChoice({ held: "-3", opacity: "900", way: "up", head: "x", layer: "two", curve: "<b>", image: "../x" })).toEqual({ ...USUAL, opacity: 100 });
  });

  it("a run is chosen from those that can look", async () => {
    go(["look"]);
    render(<Page />);
    const select = (await screen.findByLabelText("Model")) as HTMLSelectElement;
    expect([...select.options].map((option) => option.value)).toEqual(["", "a", "b"]);
    fireEvent.change(select, { target: { value: "b" } });
    expect(address.value.path).toEqual(["look", "b"]);
  });
});

describe("attention", () => {
  it("asks each layer once for the class token", async () => {
    await open();
    await waitFor(() => expect(weights()).toHaveLength(3));
    expect(weights().map(({ query }) => query.get("layer")).sort()).toEqual(["0", "1", "2"]);
    expect(weights().every(({ query }) => query.get("query") === "0")).toBe(true);
  });

  it("arrow keys walk from patch to patch, and the numbers follow", async () => {
    await open({ layer: "1", head: "1" });
    expect(screen.getByText(/Strongest: patch in row 2, column 2 gets 0.14,/)).toBeTruthy(); // weight(0, 0, 0, 4)
    fireEvent.keyDown(attention(), { key: "ArrowDown" }); // to the middle, which is the upper left of 2 × 2
    expect(address.value.chosen.at).toBe("2,2");
    await screen.findByText(new RegExp(`gets ${weight(0, 1, 0, 4).toLocaleString("en")},`));
    fireEvent.keyDown(attention(), { key: "ArrowRight" });
    fireEvent.keyDown(attention(), { key: "ArrowDown" });
    expect(address.value.chosen.at).toBe("6,6");
    await screen.findByRole("heading", { name: /where it looks – patch in row 2, column 2/ });
    expect(weights().at(-1)!.query.get("query")).toBe("4");
    fireEvent.keyDown(attention(), { key: " " });
    await screen.findByRole("heading", { name: /who looks at it – patch in row 2, column 2/ });
    expect(weights().at(-1)!.query.get("key")).toBe("4");
    fireEvent.keyDown(attention(), { key: "Home" });
    expect(address.value.chosen.at).toBeUndefined();
  });

  it("keys change layer and head", async () => {
    await open({ layer: "1" });
    fireEvent.keyDown(attention(), { key: "PageDown" });
    expect(address.value.chosen.layer).toBe("2");
    fireEvent.keyDown(attention(), { key: "+" });
    expect(address.value.chosen.head).toBe("1");
    await screen.findByRole("heading", { name: /Layer 2 \(blocks.1\), head 1/ });
  });

  it("a click chooses the patch under it", async () => {
    await open({ layer: "1" });
    const canvas = attention();
    canvas.getBoundingClientRect = () => ({ left: 0, top: 0, width: 80, height: 80 }) as DOMRect;
    fireEvent.click(canvas, { clientX: 70, clientY: 10 });
    expect(address.value.chosen.at).toBe("2,6");
  });

  it("a token that a layer does not place on the picture is told in words", async () => {
    await open();
    expect(screen.getByText(/do not lie on a grid of the picture/)).toBeTruthy();
    expect(screen.getByRole("heading", { name: /Layer 3 \(pool\), mean of 2 heads: where it looks – pooling/ })).toBeTruthy();
  });

  it("a patch of a link is drawn as chosen", async () => {
    await open({ at: "6,2", layer: "2", head: "max", way: "column" });
    expect(screen.getByRole("heading", { name: "Layer 2 (blocks.1), max of 2 heads: who looks at it – patch in row 2, column 1" })).toBeTruthy();
  });
});

describe("relevance", () => {
  it("shows what the method is not, numbers of the scale, and the verdict", async () => {
    await open();
    const card = document.getElementById("look-relevance")!.closest("section")!;
    expect(card.querySelector(".is-not")!.textContent).toBe("It shows no cause.");
    expect([...card.querySelectorAll(".split .ticks span")].map((tick) => tick.textContent)).toEqual(["0.1", "0.25", "0.4"]);
    expect(card.querySelector(".strip .verdict")!.textContent).toMatch(/Better than a random order/);
    expect(card.textContent).toContain("25 % of the patches deleted");
  });

  it("asks for a method that is not there yet", async () => {
    await open();
    fireEvent.click(screen.getByRole("button", { name: /Title of occlusion/ }));
    await waitFor(() => expect(asked.some(({ path, query }) => path.startsWith("looks/look-a") && query.get("method") === "occlusion")).toBe(true));
    await screen.findByRole("heading", { name: "Title of occlusion" });
  });

  it("scrubs the curve", async () => {
    await open({ step: "3", curve: "insertion" });
    expect(document.body.textContent).toContain("100 % of the patches inserted (into blurred picture): probability of seven 0.9");
  });

  it("explains another class on request", async () => {
    await open();
    fireEvent.change(screen.getByLabelText("Explain"), { target: { value: "one" } });
    expect(address.value.chosen.target).toBe("one");
    await screen.findByRole("heading", { name: "What mattered for: one" });
  });
});

describe("images", () => {
  it("of the held-out set are chosen by click", async () => {
    await open();
    fireEvent.click(await screen.findByTitle("y.png"));
    expect(address.value.chosen.held).toBe("1");
    await waitFor(() => expect((asked.filter(({ path }) => path === "runs/a/looks").at(-1)!.body as FormData).get("held_out")).toBe("1"));
  });

  it("of one's own are dropped, and a link says that it cannot carry them", async () => {
    await open();
    const file = new File(["x"], "mine.png", { type: "image/png" });
    const input = document.querySelector("input[type=file]") as HTMLInputElement;
    Object.defineProperty(input, "files", { value: [file] });
    fireEvent.change(input);
    await waitFor(() => expect(((asked.filter(({ path }) => path === "runs/a/looks").at(-1)!.body as FormData).get("image") as File)?.name).toBe("mine.png"));
    expect(address.value.chosen.image).toBe("own");
  });

  it("that are lost are asked for", async () => {
    go(["look", "a"], { image: "own" });
    render(<Page />);
    await screen.findByText(/drop it here to see the same/);
    expect(asked.some(({ path }) => path === "runs/a/looks")).toBe(false);
  });

  it("have names that are never markup", async () => {
    await open();
    expect(screen.getByRole("heading", { name: "digit <b>7</b>" })).toBeTruthy();
  });
});

it("two models see the same image, and agree by rank", async () => {
  await open({ second: "b", layer: "1", at: "6,6" });
  await waitFor(() => expect(screen.getAllByText(/agree with a rank correlation of 1 /)).toHaveLength(2)); // relevance, attention
  const body = asked.find(({ path }) => path === "runs/b/looks")!.body as FormData;
  expect(body.get("image")).toBeInstanceOf(File);
  expect(asked.some(({ path }) => path.startsWith("looks/look-b"))).toBe(true);
});

it("errors are sentences", async () => {
  vi.stubGlobal("fetch", async () => new Response(JSON.stringify({ error: "No run is called zzz." }), { status: 404, headers: { "Content-Type": "application/json" } }));
  go(["look", "zzz"]);
  render(<Page />);
  expect((await screen.findAllByRole("alert"))[0].textContent).toContain("No run is called zzz.");
});
