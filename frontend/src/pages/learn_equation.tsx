// The equation of what is chosen, as text in which _{…} is below and ^{…} above the line.
import { say } from "../words";
import type { LearnChoice } from "./learn_choice";

const SCORE: Record<string, string> = {
  "scaled dot": "q_{i}·k_{j} / √K",
  dot: "q_{i}·k_{j}",
  "divided by width": "q_{i}·k_{j} / K",
  bilinear: "q_{i}^{⊤} W k_{j}",
  additive: "v^{⊤} tanh(W_{q} q_{i} + W_{k} k_{j})",
  "graph additive": "LeakyReLU(a_{q}·q_{i} + a_{k}·k_{j})",
  "learned temperature": "q_{i}·k_{j} · e^{t}",
  distance: "−e^{t} ‖q_{i} − k_{j}‖",
  "soft capped": "c tanh(q_{i}·k_{j} / (c √K)), c = 1",
  "random features": "log φ(q_{i})^{⊤}φ(k_{j})",
};

function rule(kind: string, choice: LearnChoice, reach: number): string {
  const { stride: l, block, num_summary: c, radius, size, shift } = choice;
  switch (kind) {
    case "causal":
      return "j ≤ i";
    case "window":
      return `|i − j| ≤ ${reach}`;
    case "strided":
      return `j ≤ i, i − j ≤ ${l} ∨ (i − j) mod ${l} = 0`;
    case "fixed":
      return `j ≤ i, ⌊j/${block}⌋ = ⌊i/${block}⌋ ∨ j mod ${block} ≥ ${block - c}`;
    case "not self":
      return "j ≠ i";
    case "grid":
      return `max(|Δrow|, |Δcol|) ≤ ${radius}`;
    case "windows":
      return shift ? `⌊(p_{j} − ${shift})/${size}⌋ = ⌊(p_{i} − ${shift})/${size}⌋` : `⌊p_{j}/${size}⌋ = ⌊p_{i}/${size}⌋`;
    case "edges":
      return "(i, j) ∈ E";
    default:
      return "";
  }
}

// One line for each step from tokens to the result.
export function equation(choice: LearnChoice): string[] {
  const { position, heads } = choice;
  const tokens: Record<string, string> = {
    sinusoidal: "x_{i} ← x_{i} + PE(i)",
    learned: "x_{i} ← x_{i} + P_{i}",
    appended: "x_{i} ← [x_{i} ‖ PE(i)]",
    rotary: "q_{i} ← R_{i} q_{i},  k_{j} ← R_{j} k_{j}",
  };
  const bias: Record<string, string> = { relative: " + q_{i}·a_{j−i} / √K", "bias table": " + T[i − j]" };
  const isShared = heads === "collaborative";
  const score = isShared && choice.score === "scaled dot" ? "(q_{i} ∘ m_{h})·k_{j} / √(K̃/H)" : SCORE[choice.score] ?? choice.score;
  const rules = [rule(choice.kind, choice, choice.reach), choice.also ? rule(choice.also, choice, choice.also_reach) : ""].filter(Boolean);
  const weights = heads === "re-attention" ? "α ← Norm(Θ^{⊤}α)" : "";
  const values = position === "relative" ? "(v_{j} + b_{j−i})" : "v_{j}";
  const join: Record<string, string> = {
    averaged: "out = mean(head_{1} … head_{H})",
  };
  return [
    tokens[position] ?? "",
    `s_{ij} = ${score}${bias[position] ?? ""}`,
    rules.length ? `N_{i} = {j : ${rules.join(", ")}}` : `N_{i} = {${say("learn.equation.all")} j}`,
    "α_{ij} = exp(s_{ij}) / Σ_{l ∈ N_{i}} exp(s_{il})",
    weights,
    `h_{i} = Σ_{j ∈ N_{i}} α_{ij} ${values}`,
    join[heads] ?? "out = Concat(head_{1} … head_{H}) W^{O}",
  ].filter(Boolean);
}

interface Piece {
  text: string;
  level: "line" | "sub" | "sup";
}

// An index inside an index stays on the level of the outer one.
export function pieces(line: string): Piece[] {
  const found: Piece[] = [];
  let rest = line;
  while (rest) {
    const at = rest.search(/[_^]\{/);
    if (at < 0) break;
    if (at > 0) found.push({ text: rest.slice(0, at), level: "line" });
    let depth = 0;
    let end = at + 1;
    do {
      if (rest[end] === "{") depth++;
      if (rest[end] === "}") depth--;
      end++;
    } while (depth && end < rest.length);
    const inner = rest.slice(at + 2, end - 1).replace(/_\{([^}]*)\}/g, "$1");
    found.push({ text: inner, level: rest[at] === "_" ? "sub" : "sup" });
    rest = rest.slice(end);
  }
  if (rest) found.push({ text: rest, level: "line" });
  return found;
}

// A line in which h_negro and 10^2 may also be written without braces, as in the lectures' own words.
export function Formula({ text }: { text: string }) {
  const braced = text.replace(/([_^])([\p{L}\d]+)/gu, "$1{$2}");
  return (
    <>
      {pieces(braced).map(({ text: part, level }, n) => (level === "sub" ? <sub key={n}>{part}</sub> : level === "sup" ? <sup key={n}>{part}</sup> : part))}
    </>
  );
}

export function Equation({ choice }: { choice: LearnChoice }) {
  return (
    <div class="equation" role="group" aria-label={say("learn.equation")}>
      {equation(choice).map((line) => (
        <div key={line}>
          <Formula text={line} />
        </div>
      ))}
    </div>
  );
}
