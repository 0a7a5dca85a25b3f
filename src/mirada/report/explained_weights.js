// The weights of a layer: weight = low + step · code, with a low and a step for each row of each head.

class Weights {
  constructor(told, number) {
    Object.assign(this, told, { number });
    [this.num_heads, this.num_queries, this.num_keys] = told.shape;
    this.fused = new Map();
  }

  numbers() {  // decoded when first asked for
    if (!this.decoded) {
      this.decoded = { codes: bytes(this.codes), step: floats(this.step), low: floats(this.low) };
    }
    return this.decoded;
  }

  // 0-based heads of a choice; all of them for "mean", "max" and "min".
  chosen(heads) {
    const number = Number(heads);
    if (Number.isInteger(number) && number >= 1) return [Math.min(number, this.num_heads) - 1];
    return Array.from({ length: this.num_heads }, (_, head) => head);
  }

  matrix(heads) {  // (num_queries · num_keys) in raster order
    if (this.fused.has(heads)) return this.fused.get(heads);
    const { codes, step, low } = this.numbers(), size = this.num_queries * this.num_keys, chosen = this.chosen(heads);
    const out = new Float32Array(size).fill(heads === "max" ? -Infinity : heads === "min" ? Infinity : 0);
    for (const head of chosen) {
      for (let n = 0, at = 0; n < this.num_queries; n++) {
        const row = head * this.num_queries + n, by = step[row], from = low ? low[row] : 0;
        for (let start = row * this.num_keys, m = 0; m < this.num_keys; m++, at++) {
          const weight = from + by * codes[start + m];
          if (heads === "max") out[at] = Math.max(out[at], weight);
          else if (heads === "min") out[at] = Math.min(out[at], weight);
          else out[at] += weight / chosen.length;
        }
      }
    }
    if (chosen.length > 1) this.fused.set(heads, out);  // single heads are quick to decode again
    return out;
  }

  row(heads, query) {  // where `query` looks; the mean over all queries for null
    if (query === null) {
      const all = this.matrix(heads), out = new Float32Array(this.num_keys);
      all.forEach((weight, at) => { out[at % this.num_keys] += weight / this.num_queries; });
      return out;
    }
    if (this.chosen(heads).length > 1) {
      return this.matrix(heads).slice(query * this.num_keys, (query + 1) * this.num_keys);
    }
    const { codes, step, low } = this.numbers(), row = this.chosen(heads)[0] * this.num_queries + query;
    const from = low ? low[row] : 0;
    return Float32Array.from({ length: this.num_keys }, (_, m) => from + step[row] * codes[row * this.num_keys + m]);
  }

  column(heads, key) {  // who looks at `key`
    if (this.chosen(heads).length > 1) {
      const all = this.matrix(heads);
      return Float32Array.from({ length: this.num_queries }, (_, n) => all[n * this.num_keys + key]);
    }
    const { codes, step, low } = this.numbers(), first = this.chosen(heads)[0] * this.num_queries;
    return Float32Array.from({ length: this.num_queries }, (_, n) =>
      (low ? low[first + n] : 0) + step[first + n] * codes[(first + n) * this.num_keys + key]);
  }
}

function heads_in_words(layer, heads) {
  const chosen = layer.chosen(heads);
  return chosen.length === 1 ? `head ${chosen[0] + 1}` : `${heads} of ${layer.num_heads} heads`;
}

const extra_name = (number) => (number ? `extra ${number}` : "class token");

// The layer that is chosen: 0 and whatever there is no layer of stand for the last.
function layer_of(layers) {
  return layers[state.layer >= 1 && state.layer <= layers.length ? state.layer - 1 : layers.length - 1];
}

function map_of(maps) {
  return maps.find((map) => map.method === state.method) || maps[0];
}
