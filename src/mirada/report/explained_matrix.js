// Weights as a matrix, a row for each token that looks, and as a graph of the strongest of them.

const LABEL = 13;  // letters of a token at most

const label_font = (size) => `${size}px system-ui, sans-serif`;
const short = (token) => (token.length > LABEL ? `${token.slice(0, LABEL - 1)}…` : token.trim() === "" ? "␣" : token);

function matrix_view(pick) {
  const canvas = make("canvas", { class: "matrix", tabindex: 0, role: "application" }), readout = told();
  let now = null;
  readout.show("Point at a cell to read its weight.");
  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    const row = Math.floor((event.clientY - box.top - now.top) / now.side);
    const column = Math.floor((event.clientX - box.left - now.left) / now.side);
    return row >= 0 && row < now.rows && column >= 0 && column < now.columns ? [row, column] : null;
  };
  const names = (...cell) => cell.map((at, side) => (now.labels ? `“${now.labels[side][at]}”` : `Token ${at + 1}`));
  canvas.addEventListener("pointermove", (event) => {
    const found = under(event);
    if (!found) return;
    const [from, to] = names(...found);
    readout.show(`${from} looks at ${to}: ${words(now.values[found[0] * now.columns + found[1]])}`);
  });
  canvas.addEventListener("click", (event) => {
    const found = under(event);
    if (found) pick(...found);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    pick(within((now.chosen_row ?? -step) + step, 0, now.rows - 1), null);
  });
  return {
    canvas,
    scale: () => now.scale,
    node: make("div", {}, make("div", { class: "scroll" }, canvas), readout.node),
    show(layer, heads, labels, { token, is_row }) {
      const values = layer.matrix(heads), [rows, columns] = [layer.num_queries, layer.num_keys];
      const room = canvas.parentElement.clientWidth, scale = on_paper(scale_of(values, { from_zero: true, top: 0.998 }));
      const context = canvas.getContext("2d"), style = getComputedStyle(canvas);
      context.font = label_font(13);
      const width_of = (token) => context.measureText(short(token)).width;
      const [left, top] = labels ? labels.map((tokens) => 12 + Math.ceil(Math.max(...tokens.map(width_of)))) : [0, 0];
      const side = labels ? within(Math.floor((room - left) / columns), 12, 28) : Math.max(1, (room - 1) / columns);
      now = { values, rows, columns, labels, left, top, side, scale, chosen_row: is_row && token ? token.index : null };
      const width = left + side * columns + 1, height = top + side * rows + 1;
      const ratio = Math.max(width, height) > 2400 ? 1 : window.devicePixelRatio || 1;
      [canvas.width, canvas.height] = [Math.ceil(ratio * width), Math.ceil(ratio * height)];
      [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
      context.scale(ratio, ratio);
      context.fillStyle = style.getPropertyValue("--paper");
      context.fillRect(0, 0, width, height);
      draw_tile(context, { values, start: 0, grid: [rows, columns] }, scale, left, top, side * columns, side * rows);
      if (labels) write_labels(context, labels, now, style.getPropertyValue("--ink"));
      context.strokeStyle = style.getPropertyValue("--accent");
      context.lineWidth = 2;
      if (token && is_row) context.strokeRect(left, top + token.index * side, columns * side, side);
      else if (token) context.strokeRect(left + token.index * side, top, side, rows * side);
      canvas.setAttribute("aria-label", `Matrix of weights, ${rows} tokens that look by ${columns} that are looked at, from `
        + `${words(scale.low)} to ${words(scale.high)}. Arrow keys choose a row.`);
    },
  };
}

function write_labels(context, labels, { left, top, side }, ink) {
  context.fillStyle = ink;
  context.font = label_font(Math.min(13, side));
  context.textBaseline = "middle";
  context.textAlign = "right";
  labels[0].forEach((token, n) => context.fillText(short(token), left - 5, top + (n + 0.5) * side));
  context.textAlign = "left";
  labels[1].forEach((token, n) => {
    context.save();
    context.translate(left + (n + 0.5) * side, top - 5);
    context.rotate(-Math.PI / 2);
    context.fillText(short(token), 0, 0);
    context.restore();
  });
}

// Two columns of tokens, those that look on the left; an edge is the stronger the darker and thicker.
function graph_view(pick) {
  const graph = drawn("svg", { class: "graph", role: "img" });
  const edges = slider("Strongest edges", 1, 2, (count) => change({ edges: count })), said = told();
  const LINE = 21, WIDTH = 560, NAMES = 130;
  return {
    graph,
    node: make("div", {}, make("div", { class: "controls" }, edges.node),
      make("div", { class: "scroll" }, graph), said.node),
    show(layer, heads, labels, { token, is_row }) {
      const values = layer.matrix(heads), [rows, columns] = [layer.num_queries, layer.num_keys];
      const order = Array.from(values.keys()).filter((at) => values[at] > 0).sort((a, b) => values[b] - values[a]);
      const most = Math.min(order.length, 1000), count = within(state.edges || 2 * rows, 1, Math.max(1, most));
      edges.input.max = Math.max(1, most);
      const chosen = order.slice(0, count), least = chosen.length ? values[chosen[chosen.length - 1]] : 0;
      edges.show(count, `${count}, weight ≥ ${words(least)}`);
      const height = LINE * Math.max(rows, columns) + 8, strongest = values[order[0]] || 1;
      graph.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
      graph.setAttribute("width", WIDTH);
      graph.setAttribute("height", height);
      const y = (n) => LINE * (n + 0.5) + 4;
      const is_marked = (row, column) => token && (is_row ? row === token.index : column === token.index);
      const lines = chosen.map((at) => {
        const [row, column] = [Math.floor(at / columns), at % columns], share = values[at] / strongest;
        return drawn("line", {
          class: is_marked(row, column) ? "edge marked" : "edge",
          x1: NAMES + 4, y1: y(row), x2: WIDTH - NAMES - 4, y2: y(column),
          "stroke-width": (0.6 + 3.4 * share).toFixed(2), "stroke-opacity": (0.15 + 0.8 * share).toFixed(2),
        }, drawn("title", {}, `${labels[0][row]} → ${labels[1][column]}: ${words(values[at])}`));
      });
      lines.sort((a, b) => a.classList.contains("marked") - b.classList.contains("marked"));
      const node = (name, n, is_query) => drawn("text", {
        x: is_query ? NAMES : WIDTH - NAMES, y: y(n) + 4, "text-anchor": is_query ? "end" : "start",
        class: token && is_row === is_query && token.index === n ? "node marked" : "node", click: () => pick(n, is_query),
      }, short(name), drawn("title", {}, name));
      const nodes = labels.flatMap((names, side) => names.map((name, n) => node(name, n, side === 0)));
      graph.replaceChildren(...lines, ...nodes);
      const held = chosen.reduce((sum, at) => sum + values[at], 0) / (values.reduce((sum, value) => sum + value, 0) || 1);
      said.show(`${chosen.length} of ${order.length} edges drawn, from ${words(least)} to `
        + `${words(values[order[0]] || 0)}; they hold ${percent(held)} of all weight.`);
      graph.setAttribute("aria-label", `Graph of the ${chosen.length} strongest weights between ${rows} tokens that `
        + `look, left, and ${columns} tokens that are looked at, right.`);
    },
  };
}

// As a file of its own, which has no style sheet to take colours from.
function save_graph(name, graph) {
  const copy = graph.cloneNode(true);
  copy.prepend(drawn("style", {}, ".edge { stroke: #0072b2 } .edge.marked { stroke: #d55e00 } "
    + "text { font: 13px sans-serif; fill: #14181f } .node.marked { font-weight: bold }"));
  save(`${name}.svg`, new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
}
