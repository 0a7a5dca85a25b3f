// An image: its answers, and what mattered in it by every method, with the strip.

function image_page(item) {
  const large = new Picture(item, LARGE), small = new Picture(item, SMALL);
  const maps = item.maps.map((map) => (
    { ...map, values: floats(map.values), start: 0, strip: map.strip && new Strip(map.strip) }));
  const layers = item.layers.map((layer, number) => new Weights(layer, number));
  const cards = [
    ...(maps.length ? [relevance_card(item, maps, large, small)] : []),
    ...(layers.length ? [attention_card(item, layers, large)] : []),
  ];
  const opacity = slider("Heat over picture", 0, 100, (share) => change({ opacity: share }));
  const smooth = choice("Show", [[0, "patches"], [1, "smooth"]], (value) => change({ smooth: value }));
  const sharp = is_pixel_art(item) ? "pixelated" : null;
  const picture = make("img", { src: item.picture, alt: `The input ${item.name}`, class: sharp });
  const answers = make("div", {}, answers_table(item), make("div", { class: "controls" }, opacity.node, smooth.node),
    make("p", { class: "note" }, "Smooth draws values between the patches that the model does not have."));
  const answer = card("answer", titled(item.name), make("div", { class: "answer" }, make("figure", {}, picture), answers));
  return {
    node: make("div", {}, answer, ...cards.map((shown) => shown.node)),
    load: () => Promise.all([large.load(), small.load(), ...cards.map((shown) => shown.load())]),
    render() {
      opacity.show(state.opacity, `${state.opacity} %`);
      smooth.show(state.smooth);
      for (const shown of cards) shown.render();
    },
  };
}

const is_pixel_art = (item) => Math.max(...item.size) <= 64;  // shown with square pixels

// The token that `at` names on a lattice: { index, row, column }, rows and columns only where it has a place; null is
// all of them. Whoever gives the answer is the class token where there is one.
function token_at(at, { size, extra, cell }) {
  if (at === "mean" || (at === "" && !extra)) return null;
  if (at === "" || at[0] === "e") return extra ? { index: within(Number(at.slice(1)) || 0, 0, extra - 1) } : null;
  const [y, x] = at.split(",").map(Number);
  if (!cell || !Number.isFinite(y) || !Number.isFinite(x)) return null;
  const row = within(Math.floor(y / cell[0]), 0, size[0] - 1), column = within(Math.floor(x / cell[1]), 0, size[1] - 1);
  return { index: extra + row * size[1] + column, row, column };
}

// `at` of the middle of a cell.
function place(row, column, cell) {
  return [(row + 0.5) * cell[0], (column + 0.5) * cell[1]].map((at) => Number(at.toFixed(2))).join(",");
}

const is_place = (at) => at.includes(",");
const cell_in_words = ({ row, column }) => `row ${row + 1}, column ${column + 1}`;

function cells({ values, start, grid }) {
  return Array.from(part({ values, start, grid }), (value, n) => [Math.floor(n / grid[1]), n % grid[1], value]);
}

// A canvas with heat on the picture: point to read, click or press arrows to choose a patch of the lattice.
function heat_canvas(item, { lattice, read, keys = () => false }) {
  const canvas = make("canvas", { tabindex: 0, role: "application", class: "heat" });
  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    const y = (event.clientY - box.top) / box.height, x = (event.clientX - box.left) / box.width;
    return `${(y * item.size[0]).toFixed(2)},${(x * item.size[1]).toFixed(2)}`;
  };
  canvas.addEventListener("pointermove", (event) => read(under(event)));
  canvas.addEventListener("pointerleave", () => read(null));
  canvas.addEventListener("click", (event) => {
    const found = token_at(under(event), lattice());
    if (found) change({ at: place(found.row, found.column, lattice().cell) });
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const { size, cell } = lattice();
    if (step && cell) {
      const now = is_place(state.at) ? token_at(state.at, lattice()) : null;
      const [row, column] = now ? [now.row + step[0], now.column + step[1]] : size.map((length) => (length - 1) >> 1);
      change({ at: place(within(row, 0, size[0] - 1), within(column, 0, size[1] - 1), cell) });
    } else if (event.key === "Home") change({ at: "" });
    else if (!keys(event.key)) return;
    event.preventDefault();
  });
  return canvas;
}

function relevance_card(item, maps, large, small) {
  const now = () => map_of(maps), lattice = () => ({ size: now().grid, extra: 0, cell: now().cell });
  const bar = scale_bar(), readout = told(), multiples = small_multiples(maps, small);
  const read = (hovered) => {
    const found = hovered || is_place(state.at) ? token_at(hovered || state.at, lattice()) : null;
    readout.show(found ? `Patch ${cell_in_words(found)}: relevance ${words(now().values[found.index])}`
      : "Point at a patch, or choose one by click or arrow keys, to read its relevance.");
  };
  const canvas = heat_canvas(item, { lattice, read });
  const hidden = make("canvas", { class: "hidden-part", role: "img" }), strip = strip_view("patches", hidden);
  const title = make("h3", {}), is_not = make("p", { class: "is-not" }), cost = make("p", { class: "note" });
  const others = new Map();  // pixels that stand in for hidden ones
  const name = () => file_name(item.name, now().method);
  const saved = exports_of(
    ["PNG", () => {
      const lines = [`${item.name}: ${now().title}, for ${item.target}`, now().is_not];
      save_picture(name(), canvas, scale_of(now().values), lines);
    }],
    ["CSV", () => {
      const rows = cells(now()).map(([row, column, value]) => [row + 1, column + 1, value]);
      save_csv(name(), [["row", "column", "relevance"], ...rows]);
    }],
  );
  return {
    node: card("relevance", `What mattered for: ${item.target}`, ...(maps.length > 1 ? [multiples.node] : []),
      make("div", { class: "split" },
        make("figure", {}, canvas, bar.node, readout.node, saved),
        make("div", {}, title, is_not, cost, strip.node))),
    async load() {
      const pictures = maps.map((map) => map.strip && map.strip.picture).filter((picture) => picture);
      for (const picture of new Set(pictures)) others.set(picture, await large.pixels(picture));
    },
    render() {
      const map = now(), scale = scale_of(map.values);
      const mark = is_place(state.at) ? token_at(state.at, lattice()) : null;
      large.paint(canvas, map, scale, { opacity: state.opacity / 100, smooth: state.smooth, mark });
      canvas.setAttribute("aria-label", `Relevance by ${map.title} on the picture, from ${words(scale.low)} to `
        + `${words(scale.high)}. Arrow keys choose a patch.`);
      bar.show(scale, "relevance");
      multiples.show(map);
      title.textContent = map.title;
      is_not.textContent = map.is_not;
      cost.textContent = map.cost && `Cost: ${map.cost}`;
      strip.show(map.strip, item.target);
      if (map.strip) {
        const is_hidden = map.strip.hidden(map.values, map.strip.step());
        large.paint_hidden(hidden, map, is_hidden, others.get(map.strip.picture) || null);
        const instead = map.strip.picture ? map.strip.baseline : "flat grey";
        hidden.setAttribute("aria-label", `The picture at this step, with ${instead} where patches are hidden`);
      }
      read(null);
    },
  };
}

// All methods side by side. They have units of their own; as shares of their totals they fit one scale.
function small_multiples(maps, small) {
  const shares = maps.map((map) => {
    const total = map.values.reduce((sum, value) => sum + Math.abs(value), 0) || 1;
    return { ...map, values: map.values.map((value) => value / total) };
  });
  const scale = scale_of(joined(shares), { from_zero: true }), bar = scale_bar(), common = common_check();
  const tiles = maps.map(() => make("canvas", { "aria-hidden": "true" }));
  const buttons = maps.map((map, n) =>
    make("button", { type: "button", click: () => change({ method: map.method }) }, tiles[n], make("span", {}, map.title)));
  const group = make("div", { class: "multiples", role: "group", "aria-label": "Method" }, ...buttons);
  return {
    node: make("div", {}, group, bar.node, common.node),
    show(chosen) {
      maps.forEach((map, n) => {
        const own = state.common ? scale : scale_of(shares[n].values);
        small.paint(tiles[n], shares[n], own, { opacity: state.opacity / 100, smooth: state.smooth });
        buttons[n].setAttribute("aria-pressed", String(map === chosen));
      });
      bar.node.hidden = !state.common;
      common.show();
      bar.show(scale, "share of each map's total, one scale for all methods");
    },
  };
}
