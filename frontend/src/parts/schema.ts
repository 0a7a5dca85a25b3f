// A JSON Schema, as pydantic writes it, read as sections of settings; and what people type, read as values.

export type Shape =
  | { kind: "choice"; options: string[] }
  | { kind: "switch" }
  | { kind: "number"; isWhole: boolean; low?: Bound; high?: Bound }
  | { kind: "text" }
  | { kind: "list"; of: Shape; length?: number } // with `length`: exactly so many
  | { kind: "several"; of: Shape[] } // one of several shapes, told apart by how it is written
  | { kind: "free" }; // anything: {"dim": 64}

interface Bound {
  value: number;
  isOpen: boolean; // the bound itself is not allowed
}

export interface Field {
  path: string; // "train.batch_size"
  description: string;
  usual: unknown; // the default
  canBeNone: boolean;
  shape: Shape;
}

export interface Section {
  path: string; // "" for the settings that stand in no section
  description: string;
  fields: Field[];
  sections: Section[];
}

type Node = Record<string, any>;

export function sectionsOf(schema: unknown, path = ""): Section {
  return section(schema as Node, schema as Node, path, []);
}

function section(root: Node, given: Node, path: string, above: Node[]): Section {
  const node = resolved(root, given);
  const made: Section = { path, description: node.description ?? "", fields: [], sections: [] };
  for (const [name, raw] of Object.entries<Node>(node.properties ?? {})) {
    const [child, canBeNone] = withoutNone(root, raw);
    const where = path ? `${path}.${name}` : name;
    // A section that holds itself would never end: below it, it is written as free text.
    if (child.properties && !canBeNone && ![...above, node].includes(child)) made.sections.push(section(root, child, where, [...above, node]));
    else {
      const description = raw.description ?? child.description ?? "";
      made.fields.push({ path: where, description, usual: raw.default, canBeNone, shape: shapeOf(root, child) });
    }
  }
  return made;
}

function resolved(root: Node, node: Node): Node {
  let found = node;
  for (let hops = 0; found.$ref && hops < 20; hops++) {
    const names: string[] = String(found.$ref).replace(/^#\//, "").split("/");
    found = names.reduce<Node>((at, name) => at?.[name.replaceAll("~1", "/").replaceAll("~0", "~")] ?? {}, root);
  }
  return found.allOf?.length === 1 ? resolved(root, found.allOf[0]) : found;
}

function withoutNone(root: Node, raw: Node): [Node, boolean] {
  const node = resolved(root, raw);
  const ways: Node[] | undefined = node.anyOf ?? node.oneOf;
  if (ways) {
    const left = ways.map((way) => resolved(root, way)).filter((way) => way.type !== "null");
    return [left.length === 1 ? left[0] : { anyOf: left }, left.length < ways.length];
  }
  if (Array.isArray(node.type) && node.type.includes("null")) {
    const left = node.type.filter((type: string) => type !== "null");
    return [{ ...node, type: left.length === 1 ? left[0] : left }, true];
  }
  return [node, false];
}

function shapeOf(root: Node, raw: Node): Shape {
  const node = resolved(root, raw);
  const ways: Node[] | undefined = node.anyOf ?? node.oneOf;
  if (ways) return { kind: "several", of: ways.map((way) => shapeOf(root, way)) };
  if (node.const !== undefined) return { kind: "choice", options: [String(node.const)] };
  if (node.enum) return { kind: "choice", options: node.enum.map(String) };
  if (node.type === "boolean") return { kind: "switch" };
  if (node.type === "integer" || node.type === "number")
    return {
      kind: "number",
      isWhole: node.type === "integer",
      low: bound(node.minimum, node.exclusiveMinimum),
      high: bound(node.maximum, node.exclusiveMaximum),
    };
  if (node.type === "string") return { kind: "text" };
  if (node.type === "array") {
    const of = node.prefixItems?.[0] ?? node.items ?? {};
    return { kind: "list", of: shapeOf(root, of), length: node.minItems === node.maxItems ? node.minItems : undefined };
  }
  return { kind: "free" };
}

function bound(closed: number | undefined, open: number | undefined): Bound | undefined {
  if (closed !== undefined) return { value: closed, isOpen: false };
  return open === undefined ? undefined : { value: open, isOpen: true };
}

export type Read = { value: unknown } | { problem: string; given?: Record<string, string | number> };

// `problem` is a key of the words. The server has the last word; this only spares the way there.
export function read(shape: Shape, typed: string): Read {
  const text = typed.trim();
  switch (shape.kind) {
    case "choice":
      return shape.options.includes(text) ? { value: text } : { problem: "schema.choice", given: { options: shape.options.join(", ") } };
    case "switch":
      return text === "true" || text === "false" ? { value: text === "true" } : { problem: "schema.choice", given: { options: "true, false" } };
    case "number":
      return readNumber(shape, text);
    case "text":
      return { value: text };
    case "list":
      return readList(shape, text);
    case "several": {
      const all = [...shape.of].sort((a, b) => strictness(a) - strictness(b)).map((way) => ({ way, read: read(way, text) }));
      return (all.find(({ way, read }) => "value" in read && !isStray(way, text)) ?? all[all.length - 1]).read;
    }
    case "free":
      return readFree(text);
  }
}

const ORDER: Shape["kind"][] = ["switch", "number", "choice", "free", "list", "text", "several"];
const strictness = (shape: Shape): number => ORDER.indexOf(shape.kind);

// "label" is a text where a text is allowed too, not a list of one.
const isStray = (shape: Shape, text: string): boolean => shape.kind === "list" && !text.startsWith("[") && !text.includes(",");

function readNumber({ isWhole, low, high }: Extract<Shape, { kind: "number" }>, text: string): Read {
  const value = Number(text);
  if (text === "" || !Number.isFinite(value)) return { problem: isWhole ? "schema.whole" : "schema.number" };
  if (isWhole && !Number.isInteger(value)) return { problem: "schema.whole" };
  if (low && (low.isOpen ? value <= low.value : value < low.value))
    return { problem: low.isOpen ? "schema.above" : "schema.least", given: { bound: low.value } };
  if (high && (high.isOpen ? value >= high.value : value > high.value))
    return { problem: high.isOpen ? "schema.below" : "schema.most", given: { bound: high.value } };
  return { value };
}

function readList({ of, length }: Extract<Shape, { kind: "list" }>, text: string): Read {
  let words: string[];
  if (text.startsWith("[")) {
    const whole = readFree(text, Array.isArray);
    if (!("value" in whole)) return { problem: "schema.list" };
    words = (whole.value as unknown[]).map((item) => (typeof item === "string" ? item : JSON.stringify(item)));
  } else words = text === "" ? [] : text.split(",").map((word) => word.trim()).filter(Boolean);
  if (length !== undefined && words.length !== length) return { problem: "schema.length", given: { length } };
  const values: unknown[] = [];
  for (const word of words) {
    const item = read(of, word);
    if (!("value" in item)) return item;
    values.push(item.value);
  }
  return { value: values };
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);

function readFree(text: string, fits: (value: unknown) => boolean = isObject): Read {
  try {
    const value: unknown = JSON.parse(text);
    return fits(value) ? { value } : { problem: "schema.free" };
  } catch {
    return { problem: "schema.free" };
  }
}

// How a value would be typed.
export function typed(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(typed).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function allFields(section: Section): Field[] {
  return [...section.fields, ...section.sections.flatMap(allFields)];
}

// What was typed, by path; `null` is "none". A path that is not there was left as it is.
export type Draft = Record<string, string | null>;

export function settingsOf(fields: Field[], draft: Draft): { settings: Record<string, unknown>; problems: Record<string, Exclude<Read, { value: unknown }>> } {
  const settings: Record<string, unknown> = {};
  const problems: Record<string, Exclude<Read, { value: unknown }>> = {};
  for (const { path, shape } of fields) {
    const words = draft[path];
    if (words === undefined || words === "") continue;
    if (words === null) settings[path] = null;
    else {
      const answer = read(shape, words);
      if ("value" in answer) settings[path] = answer.value;
      else problems[path] = answer;
    }
  }
  return { settings, problems };
}
