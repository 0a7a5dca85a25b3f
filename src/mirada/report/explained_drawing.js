// Colours of numbers, heat on a picture, and files of both.

const tables = { heat: bytes(facts.colours.heat), signed: bytes(facts.colours.signed) };
const dark = matchMedia("(prefers-color-scheme: dark)");
const LARGE = 480, SMALL = 132;  // px of a picture's longer side on the page, about

// Colours from low to high; numbers on both sides of zero get two hues, with zero in the middle.
function scale_of(values, { from_zero = false, top = 1 } = {}) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low < 0) {
    const most = Math.max(-low, high);
    return { low: -most, high: most, table: "signed", is_cut: false };
  }
  let is_cut = false;
  if (top < 1 && values.length) {
    const step = Math.max(1, Math.floor(values.length / 50000));
    const some = values.filter((_, n) => n % step === 0).sort();
    const share = some[Math.floor(top * (some.length - 1))];
    if (share > 0 && share < high) [high, is_cut] = [share, true];
  }
  if (from_zero || high <= low) low = 0;
  return { low, high: high > low ? high : low + 1, table: "heat", is_cut };
}

// On a page of text, little is the colour of the paper; on a picture, little is dark.
const on_paper = (scale) => ({ ...scale, is_flipped: scale.table === "heat" && !dark.matches });

function colour_at(scale, value) {
  const share = within((value - scale.low) / (scale.high - scale.low), 0, 1);
  return 3 * Math.round(255 * (scale.is_flipped ? 1 - share : share));
}

function css_colour(scale, value) {
  const table = tables[scale.table], at = colour_at(scale, value);
  const [red, green, blue] = table.subarray(at, at + 3);
  const is_light = 0.299 * red + 0.587 * green + 0.114 * blue > 140;
  return { background: `rgb(${red}, ${green}, ${blue})`, color: is_light ? "#14181f" : "#ffffff" };
}

// The pixels of a picture at the size of the page.
class Picture {
  constructor(item, side) {
    const [height, width] = item.size, factor = side / Math.max(height, width);
    this.factor = factor > 1 ? Math.max(1, Math.round(factor)) : factor;
    this.height = Math.max(1, Math.round(height * this.factor));
    this.width = Math.max(1, Math.round(width * this.factor));
    this.uri = item.picture;
  }

  async load() {
    this.colour = await this.pixels(this.uri);
    this.grey = new Uint8ClampedArray(this.colour.length / 4);
    for (let n = 0; n < this.grey.length; n++) {
      this.grey[n] = 0.299 * this.colour[4 * n] + 0.587 * this.colour[4 * n + 1] + 0.114 * this.colour[4 * n + 2];
    }
  }

  async pixels(uri) {
    const image = new Image();
    image.src = uri;
    await image.decode();
    const canvas = make("canvas", { width: this.width, height: this.height }), context = canvas.getContext("2d");
    context.imageSmoothingEnabled = this.factor <= 3;
    context.drawImage(image, 0, 0, this.width, this.height);
    return context.getImageData(0, 0, this.width, this.height).data;
  }

  // Per pixel, where it lies on a grid: in units of cells from the upper left corner.
  along(length, side) {
    return Float32Array.from({ length }, (_, n) => (n + 0.5) / this.factor / side);
  }

  paint(canvas, field, scale, { opacity, smooth, mark = null }) {
    const table = tables[scale.table];
    const out = new ImageData(this.width, this.height);
    const down = this.along(this.height, field.cell[0]), across = this.along(this.width, field.cell[1]);
    for (let y = 0, at = 0; y < this.height; y++) {
      for (let x = 0; x < this.width; x++, at++) {
        const value = smooth ? between(field, down[y] - 0.5, across[x] - 0.5) : nearest(field, down[y], across[x]);
        const colour = value === null ? 0 : colour_at(scale, value), share = value === null ? 0 : opacity;
        for (let c = 0; c < 3; c++) out.data[4 * at + c] = (1 - share) * this.grey[at] + share * table[colour + c];
        out.data[4 * at + 3] = 255;
      }
    }
    [canvas.width, canvas.height] = [this.width, this.height];
    const context = canvas.getContext("2d");
    context.putImageData(out, 0, 0);
    if (mark) this.outline(context, mark, field.marked_cell || field.cell);
  }

  outline(context, { row, column }, cell) {
    const [y, x, height, width] = [row * cell[0], column * cell[1], ...cell].map((side) => side * this.factor);
    for (const [colour, thick] of [["#000000", 5], ["#ffffff", 2.5]]) {
      context.strokeStyle = colour;
      context.lineWidth = thick;
      context.strokeRect(x + 1, y + 1, width - 2, height - 2);
    }
  }

  // The picture with what stands in for its hidden cells; `other` is its pixels, or null for flat grey.
  paint_hidden(canvas, map, is_hidden, other) {
    const out = new ImageData(new Uint8ClampedArray(this.colour), this.width, this.height);
    const down = this.along(this.height, map.cell[0]), across = this.along(this.width, map.cell[1]);
    for (let y = 0, at = 0; y < this.height; y++) {
      for (let x = 0; x < this.width; x++, at++) {
        const row = Math.floor(down[y]), column = Math.floor(across[x]);
        if (row >= map.grid[0] || column >= map.grid[1] || !is_hidden[row * map.grid[1] + column]) continue;
        for (let c = 0; c < 3; c++) out.data[4 * at + c] = other ? other[4 * at + c] : 128;
      }
    }
    [canvas.width, canvas.height] = [this.width, this.height];
    canvas.getContext("2d").putImageData(out, 0, 0);
  }
}

// A field is a grid of numbers on the picture: { values, start, grid, cell }. Beyond it there is nothing to show.
function nearest({ values, start, grid }, row, column) {
  const [y, x] = [Math.floor(row), Math.floor(column)];
  return y < grid[0] && x < grid[1] ? values[start + y * grid[1] + x] : null;
}

function between({ values, start, grid }, row, column) {
  if (row >= grid[0] || column >= grid[1]) return null;
  const y = within(row, 0, grid[0] - 1), x = within(column, 0, grid[1] - 1);
  const top = Math.floor(y), left = Math.floor(x), down = y - top, right = x - left;
  const at = (r, c) => values[start + Math.min(r, grid[0] - 1) * grid[1] + Math.min(c, grid[1] - 1)];
  return (1 - down) * ((1 - right) * at(top, left) + right * at(top, left + 1))
    + down * ((1 - right) * at(top + 1, left) + right * at(top + 1, left + 1));
}

// A tile of numbers, scaled to a box: square cells when there are few, averaged when there are many.
function draw_tile(context, { values, start, grid }, scale, x, y, width, height) {
  const image = new ImageData(grid[1], grid[0]), table = tables[scale.table];
  for (let n = 0; n < grid[0] * grid[1]; n++) {
    const at = colour_at(scale, values[start + n]);
    image.data.set([table[at], table[at + 1], table[at + 2], 255], 4 * n);
  }
  const tile = make("canvas", { width: grid[1], height: grid[0] });
  tile.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = grid[1] > width;
  context.drawImage(tile, x, y, width, height);
}

function draw_ramp(context, scale, x, y, width, height) {
  const values = Float32Array.from({ length: 256 }, (_, n) => scale.low + (scale.high - scale.low) * n / 255);
  draw_tile(context, { values, start: 0, grid: [1, 256] }, scale, x, y, width, height);
}

function scale_numbers({ low, high, is_cut }) {
  return [words(low), words((low + high) / 2), (is_cut ? "≥ " : "") + words(high)];
}

function scale_bar() {
  const ramp = make("canvas", { width: 256, height: 1, "aria-hidden": "true" });
  const numbers = make("span", { class: "ticks" }), label = make("span", { class: "unit" });
  return {
    node: make("div", { class: "ramp" }, ramp, numbers, label),
    show(scale, unit) {
      draw_ramp(ramp.getContext("2d"), scale, 0, 0, 256, 1);
      numbers.replaceChildren(...scale_numbers(scale).map((text) => make("span", {}, text)));
      label.textContent = unit;
    },
  };
}

function file_name(name, ...parts) {
  return [name.slice(0, 60), ...parts].join(" ").replace(/[^\p{L}\p{N}.]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "") || "explanation";
}

function save(name, blob) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function save_csv(name, rows) {
  const quoted = (text) => `"${text.replace(/"/g, '""')}"`;
  const cell = (value) => (typeof value === "number" ? String(Number(value.toPrecision(7))) : quoted(value));
  save(`${name}.csv`, new Blob([rows.map((row) => row.map(cell).join(",")).join("\n") + "\n"], { type: "text/csv" }));
}

// What a canvas shows, with its scale and a line of words below: a picture can be sent without this page.
function save_picture(name, canvas, scale, lines) {
  const width = Math.max(canvas.width, 420), size = 15, height = canvas.height + 58 + 20 * lines.length;
  const page = make("canvas", { width: width + 24, height: height + 12 }), context = page.getContext("2d");
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, page.width, page.height);
  context.drawImage(canvas, 12, 12);
  draw_ramp(context, scale, 12, canvas.height + 24, width, 10);
  context.fillStyle = "#14181f";
  context.font = `${size}px system-ui, sans-serif`;
  scale_numbers(scale).forEach((text, n) => {
    context.textAlign = ["left", "center", "right"][n];
    context.fillText(text, 12 + n * width / 2, canvas.height + 50);
  });
  context.textAlign = "left";
  lines.forEach((line, n) => context.fillText(line, 12, canvas.height + 72 + 20 * n, width));
  page.toBlob((blob) => save(`${name}.png`, blob));
}
