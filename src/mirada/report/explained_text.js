// A text: tokens by relevance, and who looks at whom as tokens, matrix and graph.

function text_page(item) {
  const maps = item.maps.map((map) => ({
    ...map, values: floats(map.values), of_target: floats(map.of_target), strip: map.strip && new Strip(map.strip),
  }));
  const layers = item.layers.map((layer, number) => new Weights(layer, number));
  const cards = [
    ...(maps.length ? [token_card(item, maps)] : []),
    ...(layers.length ? [looking_card(item, layers)] : []),
  ];
  const passage = (tokens, what) => make("p", { class: "note" }, `${what}${tokens.length} tokens`);
  const sizes = item.source
    ? [passage(item.source, "Source: "), passage(item.tokens, "Target: ")] : [passage(item.tokens, "")];
  return {
    node: make("div", {}, card("answer", titled(item.name), answers_table(item), ...sizes), ...cards.map((shown) => shown.node)),
    load: async () => {},
    render() { for (const shown of cards) shown.render(); },
  };
}

// Tokens one after the other. One of them can be reached by Tab, the others from it by arrow keys.
function token_line(label, tokens, pick, point) {
  const spans = tokens.map((token, n) => make("button", {
    type: "button", tabindex: n ? -1 : 0, class: "token",
    click: () => pick(n), pointerenter: () => point(n), focus: () => point(n),
  }, token.trim() === "" ? "␣" : token));
  const node = make("div", { class: "tokens", role: "toolbar", "aria-label": label }, ...spans);
  node.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key], now = spans.indexOf(document.activeElement);
    if (!step || now < 0) return;
    event.preventDefault();
    spans[within(now + step, 0, spans.length - 1)].focus();
  });
  return {
    node,
    show({ values = null, scale = null, chosen = null, is_hidden = null }) {
      spans.forEach((span, n) => {
        const colours = values ? css_colour(scale, values[n]) : { background: "", color: "" };
        span.style.background = colours.background;
        span.style.color = colours.color;
        span.classList.toggle("out", Boolean(is_hidden && is_hidden[n]));
        span.classList.toggle("chosen", n === chosen);
        span.tabIndex = n === (chosen ?? 0) ? 0 : -1;
        span.title = values ? words(values[n]) : "";
        span.setAttribute("aria-label", values ? `${tokens[n]}, ${words(values[n])}` : tokens[n]);
      });
    },
  };
}

function token_card(item, maps) {
  const read_tokens = item.source || item.tokens, bar = scale_bar(), readout = told();
  const method = choice("Method", maps.map((map) => [map.method, map.title]), (value) => change({ method: value }));
  const is_not = make("p", { class: "is-not" }), cost = make("p", { class: "note" });
  const say = (tokens, values) => (n) => {
    const numbers = values(map_of(maps));
    readout.show(numbers ? `“${tokens[n]}”: relevance ${words(numbers[n])}` : "");
  };
  const say_read = say(read_tokens, (map) => map.values), say_target = say(item.tokens, (map) => map.of_target);
  const line = token_line("Tokens by relevance", read_tokens, say_read, say_read);
  const target_line = item.source && maps.some((map) => map.of_target)
    ? token_line("Tokens of the target by relevance", item.tokens, say_target, say_target) : null;
  const at_step = token_line("The text at this step", read_tokens, say_read, say_read);
  const strip = strip_view("tokens", at_step.node);
  const all_values = (map) => (map.of_target ? Float32Array.from([...map.values, ...map.of_target]) : map.values);
  const name = () => file_name(item.name, map_of(maps).method);
  const saved = exports_of(
    ["PNG", () => {
      const map = map_of(maps), scale = { ...scale_of(all_values(map)), is_flipped: true };
      const lines = [`${map.title}, for ${item.target}`, map.is_not];
      save_picture(name(), paragraph(read_tokens, map.values, scale), scale, lines);
    }],
    ["CSV", () => {
      const map = map_of(maps), rows = [...map.values].map((value, n) => [read_tokens[n], value]);
      const target_rows = map.of_target ? [...map.of_target].map((value, n) => [item.tokens[n], value]) : [];
      save_csv(name(), [["token", "relevance"], ...rows, ...target_rows]);
    }],
  );
  const node = card("relevance", `What mattered for: ${item.target}`, method.node, is_not, line.node,
    ...(target_line ? [make("p", { class: "note" }, "Tokens of the target before it:"), target_line.node] : []),
    bar.node, readout.node, saved, cost, strip.node);
  return {
    node,
    render() {
      const map = map_of(maps), scale = on_paper(scale_of(all_values(map)));
      method.show(map.method);
      is_not.textContent = map.is_not;
      cost.textContent = map.cost && `Cost: ${map.cost}`;
      line.show({ values: map.values, scale });
      if (target_line) target_line.show(map.of_target ? { values: map.of_target, scale } : {});
      bar.show(scale, "relevance");
      readout.show("Point at a token, or move to it by Tab and arrow keys, to read its number.");
      strip.show(map.strip, item.target);
      if (map.strip) at_step.show({ is_hidden: map.strip.hidden(map.values, map.strip.step()) });
    },
  };
}

// Coloured tokens on a canvas, line after line.
function paragraph(tokens, values, scale) {
  const WIDTH = 760, LINE = 30, font = "18px system-ui, sans-serif";
  const canvas = make("canvas"), context = canvas.getContext("2d");
  context.font = font;
  let [x, y] = [0, 0];
  const placed = tokens.map((token, n) => {
    const text = token.trim() === "" ? "␣" : token, width = context.measureText(text).width + 10;
    if (x + width > WIDTH && x) [x, y] = [0, y + LINE];
    const at = { text, x, y, width, colours: css_colour(scale, values[n]) };
    x += width + 3;
    return at;
  });
  [canvas.width, canvas.height] = [WIDTH, y + LINE];
  context.font = font;
  context.textBaseline = "middle";
  for (const at of placed) {
    context.fillStyle = at.colours.background;
    context.fillRect(at.x, at.y + 2, at.width, LINE - 4);
    context.fillStyle = at.colours.color;
    context.fillText(at.text, at.x + 5, at.y + LINE / 2);
  }
  return canvas;
}

function is_causal(layer) {
  if (layer.num_queries === 1 || layer.num_queries !== layer.num_keys) return false;
  return layer.row("mean", 0).subarray(1).every((weight) => weight === 0);
}

function looking_card(item, layers) {
  const controls = layer_controls(layers), readout = told(), caption = make("h3", {});
  const token_bar = scale_bar(), bar = scale_bar();
  const way = choice("Show", [["row", "where it looks"], ["column", "who looks at it"]], (value) => change({ way: value }));
  const view = choice("As", [["", "matrix"], ["graph", "graph"]], (value) => change({ view: value }));
  const kinds = {
    self: item.source ? "source looks at source" : "the text looks at itself",
    target: "target looks at target",
    cross: "target looks at source: the alignment",
  };
  const matrix = matrix_view((row, column) => {
    const is_column = state.way === "column" && column !== null;
    change(is_column ? { at: String(column) } : { at: String(row), way: "row" });
  });
  const graph = graph_view((n, is_query) => change({ at: String(n), way: is_query ? "row" : "column" }));
  const lines = make("div", {});
  const tile = (layer, heads) => ({ values: layer.matrix(heads), start: 0, grid: [layer.num_queries, layer.num_keys] });
  const table = heads_table(layers, controls, tile, () => "", on_paper);
  const look = () => {
    const layer = layer_of(layers), is_row = state.way === "row", count = is_row ? layer.num_queries : layer.num_keys;
    const given = Number(state.at), is_given = state.at !== "" && Number.isInteger(given) && given >= 0;
    const index = within(is_given ? given : is_causal(layer) ? count - 1 : 0, 0, count - 1);
    const values = is_row ? layer.row(state.heads, index) : layer.column(state.heads, index);
    return { layer, is_row, token: { index }, values };
  };
  const say = (n) => {
    const { layer, is_row, token, values } = look(), [from, to] = is_row ? layer.labels : [...layer.labels].reverse();
    if (n >= values.length) return;
    const verb = is_row ? "looks at" : "is looked at by";
    readout.show(`“${from[token.index]}” ${verb} “${to[n]}”: ${words(values[n])}`);
  };
  // One line of tokens where they look at themselves, else two; made anew only when another kind of layer is chosen.
  let shown = null;
  const lines_of = (layer) => {
    const [from, to] = layer.labels, is_one = from.length === to.length && from.every((label, n) => label === to[n]);
    const key = JSON.stringify(layer.labels);
    if (shown && shown.key === key) return shown;
    const pick = (way) => (n) => change({ at: String(n), ...(is_one ? {} : { way }) });
    const keys = token_line(is_one ? "Tokens" : "Tokens that are looked at", to, pick("column"), say);
    const queries = is_one ? keys : token_line("Tokens that look", from, pick("row"), say);
    const titled = (text, line) => [make("p", { class: "note" }, text), line.node];
    lines.replaceChildren(...(is_one ? [keys.node] : [...titled("Look:", queries), ...titled("Are looked at:", keys)]));
    return (shown = { key, keys, queries, is_one });
  };
  const name = () => {
    const layer = layer_of(layers);
    return file_name(item.name, `layer ${layer.number + 1}`, heads_in_words(layer, state.heads));
  };
  const saved = exports_of(
    ["PNG", () => {
      change({ view: "" });
      render();
      save_picture(name(), matrix.canvas, matrix.scale(), [`${item.name}: ${caption.textContent}`]);
    }],
    ["CSV", () => {
      const layer = layer_of(layers), values = layer.matrix(state.heads);
      const row = (n) => values.subarray(n * layer.num_keys, (n + 1) * layer.num_keys);
      save_csv(name(), [["", ...layer.labels[1]], ...layer.labels[0].map((label, n) => [label, ...row(n)])]);
    }],
    ["Graph as SVG", () => {
      change({ view: "graph" });
      render();
      save_graph(name(), graph.graph);
    }],
  );
  const node = card("attention", "Attention, layer by layer",
    attention_is_not(), controls.node, make("div", { class: "controls" }, way.node, view.node),
    caption, lines, token_bar.node, readout.node,
    make("div", { class: "split wide" }, make("figure", {}, matrix.node, graph.node, bar.node, saved), table.node));
  return {
    node,
    render() {
      const { layer, is_row, token, values } = look(), is_graph = state.view === "graph";
      controls.show(layer);
      way.show(state.way);
      view.show(is_graph ? "graph" : "");
      const chosen = layer.labels[is_row ? 0 : 1][token.index];
      caption.textContent = `Layer ${layer.number + 1} (${layer.name}), ${heads_in_words(layer, state.heads)}; `
        + `${kinds[layer.kind]}. `
        + (is_row ? `Coloured: where “${chosen}” looks` : `Coloured: who looks at “${chosen}”`);
      const { keys, queries, is_one } = lines_of(layer), scale = on_paper(scale_of(values, { from_zero: true }));
      const coloured = { values, scale }, outlined = { chosen: token.index };
      if (is_one) keys.show({ ...coloured, ...outlined });
      else {
        keys.show(is_row ? coloured : outlined);
        queries.show(is_row ? outlined : coloured);
      }
      readout.show("Point at a token to read its weight; choose one by click or Enter.");
      matrix.node.hidden = is_graph;
      graph.node.hidden = !is_graph;
      if (is_graph) graph.show(layer, state.heads, layer.labels, { token, is_row });
      else matrix.show(layer, state.heads, layer.labels, { token, is_row });
      token_bar.show(scale, "weight of the coloured tokens");
      bar.node.hidden = is_graph;
      if (!is_graph) bar.show(matrix.scale(), "weight in the matrix");
      table.show(layer);
    },
  };
}
