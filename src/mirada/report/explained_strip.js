// Is the map faithful? The probability while the most relevant tokens go, or come, beside a random order in grey.

const CHART = { width: 420, height: 218, left: 40, right: 8, top: 10, bottom: 42 };

class Strip {
  constructor(told) {
    Object.assign(this, told);
    for (const name of ["fractions", "deletion", "insertion", "random_deletion", "random_insertion"]) {
      this[name] = floats(told[name]);
    }
  }

  // The step that is chosen; at first that nearest to a quarter.
  step() {
    if (state.step >= 0) return Math.min(state.step, this.fractions.length - 1);
    const distances = Array.from(this.fractions, (share) => Math.abs(share - 0.25));
    return distances.indexOf(Math.min(...distances));
  }

  // Which of the tokens are hidden at a step, by falling relevance and equal ones in their order.
  hidden(values, step) {
    const order = Array.from(values.keys()).sort((a, b) => values[b] - values[a] || a - b);
    const count = Math.round(this.fractions[step] * values.length), is_deletion = state.curve === "deletion";
    const is_hidden = new Uint8Array(values.length).fill(is_deletion ? 0 : 1);
    for (const token of order.slice(0, count)) is_hidden[token] = is_deletion ? 1 : 0;
    return is_hidden;
  }
}

function strip_view(nouns, at_step) {
  const chart = drawn("svg", { viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: "img", class: "chart" });
  const scrub = slider("Step", 0, 1, (step) => change({ step }));
  const curve = choice("Order", [["deletion", "delete"], ["insertion", "insert"]], (name) => change({ curve: name }));
  const said = told(), verdict = make("p", { class: "verdict" }), table = make("table", { class: "areas" });
  chart.addEventListener("click", (event) => {
    const box = chart.getBoundingClientRect(), across = (event.clientX - box.left) / box.width * CHART.width;
    const share = (across - CHART.left) / (CHART.width - CHART.left - CHART.right), strip = chart.strip;
    const distances = Array.from(strip.fractions, (fraction) => Math.abs(fraction - share));
    change({ step: distances.indexOf(Math.min(...distances)) });
  });
  const inside = make("div", { class: "strip" }, make("h3", {}, "Does the answer depend on it?"), verdict, chart,
    make("div", { class: "controls" }, curve.node, scrub.node),
    make("div", { class: "step" }, at_step, said.node), table);
  const nothing = make("p", { class: "note" }, "Faithfulness was not measured for this map.");
  return {
    node: make("div", {}, inside, nothing),
    show(strip, target) {
      inside.hidden = !strip;
      nothing.hidden = Boolean(strip);
      if (!strip) return;
      chart.strip = strip;
      const step = strip.step(), name = state.curve, random = `random_${name}`;
      const is_better = strip.beats.length === 2;
      verdict.textContent = strip.verdict;
      verdict.className = is_better ? "verdict" : "warning";
      paint_chart(chart, strip, step, target);
      scrub.input.max = strip.fractions.length - 1;
      scrub.show(step, percent(strip.fractions[step]));
      curve.show(name);
      const did = name === "deletion" ? `deleted (${strip.baseline} in their place)` : `inserted (into ${strip.baseline})`;
      const drawn_as = nouns === "patches" && !strip.picture ? " What is hidden is drawn grey here." : "";
      said.show(`${percent(strip.fractions[step])} of the ${nouns} ${did}, the most relevant first: probability of `
        + `${target} ${words(strip[name][step])}, in random order ${words(strip[random][step])}.${drawn_as}`);
      areas(table, strip);
    },
  };
}

function areas(table, strip) {
  const row = (name, better) => make("tr", {}, make("th", { scope: "row" }, `${name}, ${better} is better`),
    ...[strip[`${name.toLowerCase()}_auc`], strip[`random_${name.toLowerCase()}_auc`]].map((area) =>
      make("td", { class: "number" }, words(area))));
  const head = ["Area under the curve", "this map", "random"].map((text, n) =>
    make("th", { scope: "col", class: n ? "number" : null }, text));
  table.replaceChildren(make("caption", {}, `Share of tokens against probability; baseline: ${strip.baseline}.`),
    make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, row("Deletion", "lower"), row("Insertion", "higher")));
}

function paint_chart(chart, strip, step, target) {
  const { width, height, left, right, top, bottom } = CHART;
  const names = ["random_deletion", "random_insertion", "deletion", "insertion"];
  const most = Math.max(1e-9, ...names.map((name) => Math.max(...strip[name])));
  const high = most > 0.5 ? Math.max(1, most) : most;
  const x = (share) => left + (width - left - right) * share;
  const y = (value) => height - bottom - (height - top - bottom) * value / high;
  const line = (name) => drawn("polyline", {
    class: `curve ${name} ${name.endsWith(state.curve) ? "chosen" : ""}`,
    points: Array.from(strip[name], (value, n) => `${x(strip.fractions[n]).toFixed(1)},${y(value).toFixed(1)}`).join(" "),
  });
  const ticks = [0, 0.5, 1].flatMap((share) => [
    drawn("line", { class: "rule", x1: left, x2: width - right, y1: y(share * high), y2: y(share * high) }),
    drawn("text", { x: left - 6, y: y(share * high) + 4, "text-anchor": "end" }, words(share * high)),
    drawn("text", { x: x(share), y: height - bottom + 16, "text-anchor": ["start", "middle", "end"][2 * share] },
      `${100 * share} %`),
  ]);
  const at = x(strip.fractions[step]);
  const dot = (name) => drawn("circle", { class: `dot ${name}`, cx: at, cy: y(strip[name][step]), r: 4 });
  const label = (name, text, n) => drawn("text", { class: `key ${name}`, x: left + 8 + 98 * n, y: height - 3 }, text);
  chart.replaceChildren(...ticks, ...names.map(line),
    drawn("line", { class: "scrub", x1: at, x2: at, y1: top, y2: height - bottom }),
    dot(`random_${state.curve}`), dot(state.curve),
    label("deletion", "— deletion", 0), label("insertion", "— insertion", 1), label("random", "- - random order", 2));
  chart.setAttribute("aria-label", `Probability of ${target} by share of tokens. `
    + `Deletion area ${words(strip.deletion_auc)}, random ${words(strip.random_deletion_auc)}; `
    + `insertion area ${words(strip.insertion_auc)}, random ${words(strip.random_insertion_auc)}.`);
}
