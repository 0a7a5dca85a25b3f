const TITLE = 90;  // letters of a name above a card

const titled = (name) => (name.length > TITLE ? `${name.slice(0, TITLE - 1)}…` : name);

// Pieces that the cards are made of. Each has a node, and `show` brings it up to date.

function card(id, title, ...children) {
  return make("section", { id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, title), ...children);
}

function choice(label, options, choose) {
  const buttons = options.map(([value, text]) => make("button", { type: "button", click: () => choose(value) }, text));
  return {
    node: make("div", { class: "choice", role: "group", "aria-label": label },
      make("span", { class: "name" }, label), ...buttons),
    show(chosen) {
      buttons.forEach((button, n) => button.setAttribute("aria-pressed", String(options[n][0] === chosen)));
    },
  };
}

function slider(label, low, high, choose) {
  const input = make("input", { type: "range", min: low, max: high, step: 1, "aria-label": label });
  input.addEventListener("input", () => choose(Number(input.value)));
  const said = make("output", {});
  return {
    node: make("label", { class: "slider" }, make("span", { class: "name" }, label), input, said),
    input,
    show(value, text) {
      input.value = value;
      input.setAttribute("aria-valuetext", text);
      said.textContent = text;
    },
  };
}

function exports_of(...named) {
  return make("div", { class: "choice exports", role: "group", "aria-label": "Save" },
    ...named.map(([text, act]) => make("button", { type: "button", click: act }, text)));
}

function told(class_name = "readout") {
  const node = make("p", { class: class_name, "aria-live": "polite" });
  return { node, show(text) { if (node.textContent !== text) node.textContent = text; } };
}

// Answers as bars, the explained one marked.
function answers_table(item) {
  const rows = item.answers.map(([name, share]) => {
    const cell = make("td", { class: "bar" }, percent(share));
    cell.style.setProperty("--share", `${within(100 * share, 0, 100)}%`);
    const is_target = name === item.target;
    return make("tr", is_target ? { class: "target" } : {},
      make("th", { scope: "row" }, name, is_target ? make("span", { class: "what" }, " ← explained") : ""), cell);
  });
  if (!rows.length) return make("p", { class: "note" }, `Explained: ${item.target}`);
  const missing = item.answers.some(([name]) => name === item.target) ? "" : ` Explained: ${item.target}.`;
  return make("table", { class: "answers" }, make("caption", {}, `What the model answers, by probability.${missing}`),
    make("tbody", {}, ...rows));
}

// Layer and heads of a model, with sliders.
function layer_controls(layers) {
  const most = Math.max(...layers.map((layer) => layer.num_heads));
  const layer_slider = slider("Layer", 1, layers.length, (layer) => change({ layer }));
  const head_slider = slider("Head", 1, most, (head) => change({ heads: String(head) }));
  const fusion = choice("All heads", [["mean", "mean"], ["max", "max"], ["min", "min"]], (heads) => change({ heads }));
  return {
    node: make("div", { class: "controls" }, ...(layers.length > 1 ? [layer_slider.node] : []),
      ...(most > 1 ? [head_slider.node, fusion.node] : [])),
    show(layer) {
      const chosen = layer.chosen(state.heads), is_one = chosen.length === 1 && layer.num_heads > 1;
      layer_slider.show(layer.number + 1, `${layer.number + 1} of ${layers.length}`);
      head_slider.input.max = layer.num_heads;
      head_slider.show(is_one ? chosen[0] + 1 : 1, is_one ? `${chosen[0] + 1} of ${layer.num_heads}` : "all");
      head_slider.node.classList.toggle("idle", !is_one);
      fusion.show(is_one ? null : state.heads);
    },
    move(layer, layers_on, heads_on) {  // by keys
      const number = within(layer.number + 1 + layers_on, 1, layers.length);
      const chosen = layer.chosen(state.heads), now = chosen.length === 1 ? chosen[0] + 1 : heads_on > 0 ? 0 : 1;
      const heads = heads_on ? String(within(now + heads_on, 1, layers[number - 1].num_heads)) : state.heads;
      change({ layer: number, heads });
    },
  };
}

// Tiles in one scale of colours, or each in its own.
function common_check() {
  const box = make("input", { type: "checkbox", change: () => change({ common: Number(box.checked) }) });
  const note = make("span", { class: "note" });
  return {
    node: make("p", {}, make("label", { class: "check" }, box, " one scale for all tiles "), note),
    show() {
      box.checked = Boolean(state.common);
      note.textContent = state.common ? "" : "Each tile has its own scale: tiles cannot be compared.";
    },
  };
}

// All layers and heads as small tiles: rows are layers, columns heads. `tile` gives a field, or null; what it depends on
// is a string, so that tiles are drawn again only when they change.
function heads_table(layers, controls, tile, depends_on, from_paper) {
  const canvas = make("canvas", { tabindex: 0, role: "application", class: "heads" });
  const bar = scale_bar(), most = Math.max(...layers.map((layer) => layer.num_heads));
  const common = common_check();
  const MARGIN = 26, GAP = 3, plain = make("canvas");
  const at = (n) => MARGIN + n * (side + GAP);
  let side = 0, drawn_for = null;
  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect(), inside = (at) => Math.floor((at - MARGIN) / (side + GAP));
    const layer = inside(event.clientY - box.top), head = inside(event.clientX - box.left);
    if (layers[layer] && head >= 0 && head < layers[layer].num_heads) change({ layer: layer + 1, heads: String(head + 1) });
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    controls.move(layer_of(layers), ...step);
  });
  const draw_tiles = (width, ratio) => {
    side = within(Math.floor((width - MARGIN) / most) - GAP, 4, 64);
    [plain.width, plain.height] = [ratio * width, ratio * at(layers.length)];
    const tiles = layers.map((layer) => layer.chosen("mean").map((head) => tile(layer, String(head + 1))));
    const scale = from_paper(scale_of(joined(tiles.flat().filter((field) => field)), { from_zero: true, top: 0.995 }));
    const context = plain.getContext("2d"), skip = Math.ceil(16 / (side + GAP));
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = context.strokeStyle = getComputedStyle(canvas).getPropertyValue("--faint");
    for (let n = 0; n < most; n += skip) context.fillText(n + 1, at(n) + side / 2, MARGIN / 2);
    for (let n = 0; n < layers.length; n += skip) context.fillText(n + 1, MARGIN / 2, at(n) + side / 2);
    tiles.forEach((row, l) => row.forEach((field, h) => {
      const own = field && !state.common ? from_paper(scale_of(part(field), { from_zero: true })) : scale;
      if (field) draw_tile(context, field, own, at(h), at(l), side, side);
      else context.strokeRect(at(h) + 0.5, at(l) + 0.5, side - 1, side - 1);
    }));
    bar.show(scale, "weight, one scale for all tiles");
  };
  return {
    node: make("figure", { class: "heads" },
      make("figcaption", {}, "Every layer (down) and head (across); choose one to enlarge it."),
      canvas, bar.node, common.node),
    show(chosen_layer) {
      const width = Math.max(canvas.clientWidth, MARGIN + 7 * most), ratio = window.devicePixelRatio || 1;
      const key = [width, ratio, state.common, dark.matches, depends_on()].join(" ");
      if (key !== drawn_for) draw_tiles(width, ratio);
      drawn_for = key;
      [canvas.width, canvas.height] = [plain.width, plain.height];
      canvas.style.height = `${canvas.height / ratio}px`;
      const context = canvas.getContext("2d");
      context.drawImage(plain, 0, 0);
      context.scale(ratio, ratio);
      context.strokeStyle = getComputedStyle(canvas).getPropertyValue("--accent");
      context.lineWidth = 2.5;
      for (const head of chosen_layer.chosen(state.heads)) {
        context.strokeRect(at(head) - 1, at(chosen_layer.number) - 1, side + 2, side + 2);
      }
      canvas.setAttribute("aria-label", `Table of ${layers.length} layers by ${most} heads; chosen: layer `
        + `${chosen_layer.number + 1}, ${heads_in_words(chosen_layer, state.heads)}. Arrow keys choose.`);
      bar.node.hidden = !state.common;
      common.show();
    },
  };
}

function part({ values, start, grid }) {
  return values.subarray(start, start + grid[0] * grid[1]);
}

function joined(fields) {
  const parts = fields.map(part), out = new Float32Array(parts.reduce((sum, values) => sum + values.length, 0));
  let at = 0;
  for (const values of parts) {
    out.set(values, at);
    at += values.length;
  }
  return out;
}
