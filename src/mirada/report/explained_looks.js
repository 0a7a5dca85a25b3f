// Attention on an image: where every patch looks and who looks at it, in every layer and head.

// Who looks and at whom, as chosen: a row of the weights, or a column, as a field on the picture.
function look_of(layer, heads, item) {
  const is_row = state.way === "row";
  const [asked, seen] = is_row ? [layer.queries, layer.keys] : [layer.keys, layer.queries];
  let token = token_at(state.at, asked);
  if (is_row && layer.num_queries === 1) token = { index: 0, name: layer.asker || "the query of this layer" };
  // Nobody in particular looks at all tokens: the middle of the picture stands in for them.
  if (!is_row && !token) token = token_at(place(0, 0, item.size), asked) || { index: 0 };
  const values = is_row ? layer.row(heads, token && token.index) : layer.column(heads, token.index);
  const field = { values, start: seen.extra, grid: seen.size, cell: seen.cell };
  const name = token && (token.name || token_in_words(token.index, asked));
  return { ...field, seen, token, is_row, name, marked_cell: asked.cell };
}

function token_in_words(index, { size, extra, cell }) {
  const n = index - extra;
  if (n < 0) return `the ${extra_name(index)}`;
  return cell ? `the patch in ${cell_in_words({ row: Math.floor(n / size[1]), column: n % size[1] })}` : `token ${n + 1}`;
}

const shown_values = (look) => (look.cell ? part(look) : look.values);

function look_rows(look) {
  const first = Array.from(look.values.subarray(0, look.start), (value, n) => [extra_name(n), "", "", value]);
  const rest = look.cell ? cells(look).map(([row, column, value]) => ["patch", row + 1, column + 1, value])
    : Array.from(look.values.subarray(look.start), (value, n) => [`token ${n + 1}`, "", "", value]);
  return [["token", "row", "column", "weight"], ...first, ...rest];
}

function attention_card(item, layers, large) {
  const layer = () => layer_of(layers), now = () => look_of(layer(), state.heads, item);
  const is_matrix = () => state.view === "matrix" || !now().cell;
  const controls = layer_controls(layers), bar = scale_bar(), readout = told(), extras = make("p", { class: "note" });
  const read = (hovered) => {
    const look = now(), verb = look.is_row ? "gets" : "gives", found = hovered && token_at(hovered, look.seen);
    const strongest = look.values.reduce((best, value, n) => (value > look.values[best] ? n : best), 0);
    const times = (index) => `${words(look.values[index] * layer().num_keys)} times the average`;
    readout.show(found
      ? `The patch in ${cell_in_words(found)} ${verb} ${words(look.values[found.index])}, ${times(found.index)}`
      : `Strongest: ${token_in_words(strongest, look.seen)} ${verb} ${words(look.values[strongest])}, ${times(strongest)}. `
        + "Point at a patch to read its weight, click to choose it.");
  };
  const keys = (key) => {
    const moves = { PageUp: [-1, 0], PageDown: [1, 0], "+": [0, 1], "-": [0, -1] };
    if (key === " ") change({ way: state.way === "row" ? "column" : "row" });
    else if (moves[key]) controls.move(layer(), ...moves[key]);
    return key === " " || key in moves;
  };
  const lattice = () => (state.way === "row" ? layer().queries : layer().keys);
  const canvas = heat_canvas(item, { lattice, read, keys });
  const way = choice("Show", [["row", "where it looks"], ["column", "who looks at it"]], (value) => change({ way: value }));
  const most_extra = Math.max(...layers.flatMap(({ queries, keys: seen }) => [queries.extra, seen.extra]));
  const extra_tokens = Array.from({ length: most_extra }, (_, n) => [`e${n}`, extra_name(n)]);
  const tokens = choice("Token", [...extra_tokens, ["mean", "all (mean)"]],
    (at) => change(at === "mean" ? { at, way: "row" } : { at }));
  const view = choice("As", [["", "picture"], ["matrix", "matrix"]], (value) => change({ view: value }));
  const matrix = matrix_view((query) => {
    const { size, extra, cell } = layer().queries, n = query - extra;
    change({ way: "row", at: n < 0 ? `e${query}` : cell ? place(Math.floor(n / size[1]), n % size[1], cell) : "mean" });
  });
  const tile = (own, heads) => {
    const look = look_of(own, heads, item);
    return look.cell ? look : null;
  };
  const table = heads_table(layers, controls, tile, () => state.at + state.way, (scale) => scale);
  const caption = make("h3", {}), off_grid = make("p", { class: "warning" },
    "The tokens of this layer do not lie on a grid of the picture: see the matrix.");
  const name = () => file_name(item.name, `layer ${layer().number + 1}`, heads_in_words(layer(), state.heads), state.way);
  const saved = exports_of(
    ["PNG", () => {
      const lines = [`${item.name}: ${caption.textContent}`];
      if (is_matrix()) save_picture(name(), matrix.canvas, matrix.scale(), lines);
      else save_picture(name(), canvas, scale_of(shown_values(now()), { from_zero: true }), lines);
    }],
    ["CSV", () => save_csv(name(), look_rows(now()))],
  );
  return {
    node: card("attention", "Attention, layer by layer", attention_is_not(), controls.node,
      make("div", { class: "controls" }, tokens.node, way.node, view.node),
      make("div", { class: "split" },
        make("figure", {}, caption, off_grid, canvas, matrix.node, bar.node, readout.node, extras, saved), table.node)),
    load: async () => {},
    render() {
      const look = now(), scale = scale_of(shown_values(look), { from_zero: true }), { token } = look;
      const is_placed = token && "row" in token, is_all = !token;
      controls.show(layer());
      way.show(state.way);
      view.show(is_matrix() ? "matrix" : "");
      tokens.show(is_all ? "mean" : is_placed ? null : `e${token.index}`);
      const who = is_all ? "where all tokens look, on average"
        : look.is_row ? `where ${look.name} looks` : `who looks at ${look.name}`;
      caption.textContent = `Layer ${layer().number + 1} (${layer().name}), ${heads_in_words(layer(), state.heads)}: ${who}`;
      off_grid.hidden = Boolean(look.cell);
      canvas.hidden = is_matrix();
      matrix.node.hidden = !is_matrix();
      const mark = is_placed ? token : null;
      if (is_matrix()) matrix.show(layer(), state.heads, null, look);
      else large.paint(canvas, look, scale, { opacity: state.opacity / 100, smooth: state.smooth, mark });
      bar.show(is_matrix() ? matrix.scale() : scale, "weight");
      canvas.setAttribute("aria-label",
        `${caption.textContent}, from ${words(scale.low)} to ${words(scale.high)}. Arrow keys choose a patch.`);
      const first = Array.from(look.values.subarray(0, look.start), (value, n) => `${extra_name(n)} ${words(value)}`);
      extras.textContent = first.length ? `Not on the picture: ${first.join(", ")}.` : "";
      table.show(layer());
      read(null);
    },
  };
}

function attention_is_not() {
  return make("p", { class: "is-not" },
    "Attention is not evidence of what caused the answer: it says which tokens a layer mixed.");
}
