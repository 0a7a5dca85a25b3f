"use strict";
// The numbers of the page, its elements, and what is chosen on it.

const facts = JSON.parse(document.getElementById("facts").textContent);
const element = (id) => document.getElementById(id);

function bytes(text) {
  const letters = atob(text), found = new Uint8Array(letters.length);
  for (let n = 0; n < letters.length; n++) found[n] = letters.charCodeAt(n);
  return found;
}

function floats(text) {
  return text === null ? null : new Float32Array(bytes(text).buffer);
}

// Children that are strings become text, never markup: names and tokens are other people's.
function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(element("blank").namespaceURI, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function words(number) {
  if (number === 0) return "0";
  const size = Math.abs(number), plain = size >= 1e-3 && size < 1e5;
  return (plain ? String(Number(number.toPrecision(3))) : number.toExponential(1)).replace(/-/g, "−");
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const within = (value, low, high) => Math.min(high, Math.max(low, value));

// What is chosen. `at` is a token: "" for whoever gives the answer, "mean", "e0" for the first extra one, "y,x" for the
// patch at these pixels, or a number of a token in a text. `heads` is a number from 1, "mean", "max" or "min".
const UNCHOSEN = {
  item: 1, method: "", at: "", way: "row", layer: 0, heads: "mean", view: "", smooth: 0, opacity: 50, common: 1,
  edges: 0, curve: "deletion", step: -1,
};
const CHOICES = { way: ["row", "column"], curve: ["deletion", "insertion"], smooth: [0, 1], common: [0, 1] };
const state = { ...UNCHOSEN };

function remember() {
  const told = new URLSearchParams(location.hash.slice(1));
  Object.assign(state, UNCHOSEN);
  for (const [name, usual] of Object.entries(UNCHOSEN)) {
    if (!told.has(name)) continue;
    const value = typeof usual === "number" ? Number(told.get(name)) : told.get(name);
    const allowed = CHOICES[name] ? CHOICES[name].includes(value) : typeof usual !== "number" || Number.isInteger(value);
    if (allowed) state[name] = value;
  }
  state.item = within(state.item, 1, facts.items.length);
  state.opacity = within(state.opacity, 0, 100);
}

function permalink() {
  const chosen = Object.entries(state).filter(([name, value]) => value !== UNCHOSEN[name]);
  return "#" + new URLSearchParams(chosen.map(([name, value]) => [name, String(value)])).toString().replace(/%2C/g, ",");
}

function change(changes) {
  const is_new_item = "item" in changes && changes.item !== state.item;
  if (is_new_item) Object.assign(state, { at: "", view: "", edges: 0, step: -1 });
  Object.assign(state, changes);
  try {
    history[is_new_item ? "pushState" : "replaceState"](null, "", permalink());
  } catch {
    // A page inside a frame may not have an address of its own: it works, without links.
  }
  schedule();
}

let is_scheduled = false;
function schedule() {
  if (is_scheduled) return;
  is_scheduled = true;
  requestAnimationFrame(() => {
    is_scheduled = false;
    render();
  });
}
