// The address holds all that is chosen: `#/look/vit-digits?method=chefer&layer=3`. Whoever has the link sees the same.
import { computed, signal } from "@preact/signals";

export interface Address {
  path: string[]; // ["look", "vit-digits"]
  chosen: Record<string, string>;
}

export function parse(hash: string): Address {
  const whole = hash.replace(/^#\/?/, "");
  const mark = whole.indexOf("?");
  const [path, query] = mark < 0 ? [whole, ""] : [whole.slice(0, mark), whole.slice(mark + 1)];
  const parts = path.split("/").filter(Boolean).map(decoded);
  return { path: parts, chosen: Object.fromEntries(new URLSearchParams(query)) };
}

export function written({ path, chosen }: Address): string {
  const query = new URLSearchParams(Object.entries(chosen).sort(([a], [b]) => (a < b ? -1 : 1))).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a half-typed link
  }
}

const hash = signal(location.hash);
addEventListener("hashchange", () => (hash.value = location.hash));

export const address = computed(() => parse(hash.value));

export function go(path: string[], chosen: Record<string, string> = {}): void {
  location.hash = written({ path, chosen });
  hash.value = location.hash;
}

// Changes what is chosen on this page; `undefined` forgets it. The way back leads to the page before, not to each choice.
export function choose(changes: Record<string, string | number | undefined>): void {
  const { path, chosen } = address.peek();
  const next: Record<string, string> = { ...chosen };
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) delete next[name];
    else next[name] = String(value);
  }
  history.replaceState(null, "", written({ path, chosen: next }));
  hash.value = location.hash;
}

// A link to what the address holds now, for others: without the key to this studio.
export function permalink(): string {
  const here = new URL(location.href);
  here.searchParams.delete("token");
  here.hash = written(address.value);
  return here.href;
}
