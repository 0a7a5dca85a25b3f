import { fireEvent, render, screen, cleanup } from "@testing-library/preact";
import { useState } from "preact/hooks";
import { afterEach, describe, expect, test } from "vitest";
import { allFields, read, sectionsOf, settingsOf, typed, type Draft, type Shape } from "../src/parts/schema";
import { SchemaForm } from "../src/parts/schema_form";
import { teach } from "../src/words";
import { runs } from "../src/words/runs";

teach(runs);
afterEach(cleanup);

const schema = {
  $defs: {
    Train: {
      description: "How to train.",
      properties: {
        batch_size: { default: 64, description: "images per batch", minimum: 1, type: "integer" },
        warmup: { default: 0.1, exclusiveMaximum: 1, exclusiveMinimum: 0, type: "number" },
        minutes: { anyOf: [{ exclusiveMinimum: 0, type: "number" }, { type: "null" }], default: null },
        optimiser: { default: "adamw", enum: ["adamw", "sgd"], type: "string" },
        task: { anyOf: [{ enum: ["translate", "fill"], type: "string" }, { type: "null" }], default: null },
        compile: { default: false, type: "boolean" },
        betas: { default: [0.9, 0.999], minItems: 2, maxItems: 2, prefixItems: [{ type: "number", maximum: 1 }, { type: "number" }], type: "array" },
        inner: { $ref: "#/$defs/Inner" },
      },
      type: "object",
    },
    Inner: { description: "Deeper.", properties: { seed: { type: "integer" }, again: { $ref: "#/$defs/Train" } }, type: "object" },
  },
  properties: {
    name: { anyOf: [{ type: "string" }, { type: "null" }], default: null, description: "of the folder" },
    label: { anyOf: [{ type: "string" }, { items: { type: "string" }, type: "array" }, { type: "null" }], default: null },
    block: { anyOf: [{ type: "number" }, { type: "string" }, { type: "null" }], default: null },
    ignore: { items: { anyOf: [{ type: "integer" }, { type: "string" }] }, type: "array" },
    arguments: { additionalProperties: true, type: "object" },
    train: { $ref: "#/$defs/Train", default: {} },
  },
};
const whole = sectionsOf(schema);
const fields = allFields(whole);
const shape = (path: string): Shape => fields.find((field) => field.path === path)!.shape;

describe("a schema", () => {
  test("becomes sections with fields", () => {
    expect(whole.fields.map(({ path }) => path)).toEqual(["name", "label", "block", "ignore", "arguments"]);
    expect(whole.sections.map(({ path, description }) => [path, description])).toEqual([["train", "How to train."]]);
    expect(whole.sections[0].sections[0].path).toBe("train.inner");
  });

  test("that holds itself ends", () => expect(shape("train.inner.again")).toEqual({ kind: "free" }));

  test.each([
    ["name", "text", true],
    ["label", "several", true],
    ["arguments", "free", false],
    ["train.batch_size", "number", false],
    ["train.minutes", "number", true],
    ["train.optimiser", "choice", false],
    ["train.task", "choice", true],
    ["train.compile", "switch", false],
    ["train.betas", "list", false],
  ])("%s is a %s", (path, kind, canBeNone) => {
    const field = fields.find((one) => one.path === path)!;
    expect([field.shape.kind, field.canBeNone]).toEqual([kind, canBeNone]);
  });
});

describe("what is typed", () => {
  test.each<[string, string, unknown]>([
    ["train.batch_size", " 32 ", 32],
    ["train.warmup", "5e-2", 0.05],
    ["train.compile", "true", true],
    ["train.optimiser", "sgd", "sgd"],
    ["train.betas", "0.8, 0.95", [0.8, 0.95]],
    ["train.betas", "[0.8, 0.95]", [0.8, 0.95]],
    ["name", "12", "12"],
    ["label", "species", "species"],
    ["label", "a, b", ["a", "b"]],
    ["label", '["a, b", "c"]', ["a, b", "c"]],
    ["block", "3", 3],
    ["block", "3deg", "3deg"],
    ["ignore", "255, #ff0000", [255, "#ff0000"]],
    ["arguments", '{"dim": 64}', { dim: 64 }],
  ])("%s: %s", (path, text, value) => expect(read(shape(path), text)).toEqual({ value }));

  test.each([
    ["train.batch_size", "0", "schema.least"],
    ["train.batch_size", "1.5", "schema.whole"],
    ["train.batch_size", "many", "schema.whole"],
    ["train.warmup", "0", "schema.above"],
    ["train.warmup", "1", "schema.below"],
    ["train.betas", "0.9", "schema.length"],
    ["train.betas", "2, 0.9", "schema.most"],
    ["train.optimiser", "lion", "schema.choice"],
    ["arguments", "dim=64", "schema.free"],
    ["arguments", "[1]", "schema.free"],
  ])("%s: %s is refused", (path, text, problem) => expect(read(shape(path), text)).toMatchObject({ problem }));

  test("only what was changed is sent, and none is null", () => {
    const draft: Draft = { "train.batch_size": "16", "train.minutes": null, "train.warmup": "", name: "x" };
    expect(settingsOf(fields, draft).settings).toEqual({ "train.batch_size": 16, "train.minutes": null, name: "x" });
    expect(Object.keys(settingsOf(fields, { "train.betas": "1" }).problems)).toEqual(["train.betas"]);
  });

  test("defaults are written as they would be typed", () => {
    expect([typed([0.9, 0.999]), typed(null), typed({ a: 1 }), typed(false)]).toEqual(["0.9, 0.999", "", '{"a":1}', "false"]);
  });
});

function Form({ onDraft, blamed = [] }: { onDraft: (draft: Draft) => void; blamed?: string[] }) {
  const [draft, setDraft] = useState<Draft>({});
  const { problems } = settingsOf(fields, draft);
  return <SchemaForm section={whole} draft={draft} problems={problems} blamed={blamed} onChange={(next) => (setDraft(next), onDraft(next))} />;
}

describe("the form", () => {
  test("has a control of the right kind for every setting", () => {
    render(<Form onDraft={() => {}} />);
    expect(screen.getByLabelText<HTMLInputElement>("batch_size").placeholder).toBe("64");
    expect([...screen.getByLabelText<HTMLSelectElement>("optimiser").options].map(({ text }) => text)).toEqual(["as usual (adamw)", "adamw", "sgd"]);
    expect([...screen.getByLabelText<HTMLSelectElement>("task").options].map(({ text }) => text)).toEqual(["as usual", "translate", "fill", "none"]);
    expect(screen.getByLabelText("arguments").tagName).toBe("TEXTAREA");
    expect(screen.getByLabelText("minutes: none")).toBeTruthy();
  });

  test("tells what changes, and forgets what is emptied", () => {
    let draft: Draft = {};
    render(<Form onDraft={(next) => (draft = next)} />);
    fireEvent.input(screen.getByLabelText("batch_size"), { target: { value: "0" } });
    expect(draft).toEqual({ "train.batch_size": "0" });
    expect(screen.getByLabelText("batch_size").getAttribute("aria-invalid")).toBe("true");
    expect(screen.getByText("At least 1.")).toBeTruthy();
    fireEvent.input(screen.getByLabelText("batch_size"), { target: { value: "" } });
    fireEvent.click(screen.getByLabelText("minutes: none"));
    fireEvent.change(screen.getByLabelText("task"), { target: { value: "fill" } });
    expect(draft).toEqual({ "train.minutes": null, "train.task": "fill" });
  });

  test("opens the section that the server blames, and finds settings", () => {
    const { container } = render(<Form onDraft={() => {}} blamed={["train.warmup"]} />);
    expect(container.querySelector("details")!.open).toBe(true);
    fireEvent.input(screen.getByLabelText("Find a setting"), { target: { value: "images per" } });
    expect(screen.queryByLabelText("warmup")).toBeNull();
    expect(screen.getByLabelText("batch_size")).toBeTruthy();
  });
});
