// Files of what is shown.
export function fileName(...parts: (string | number)[]): string {
  const name = parts.map((part) => String(part).slice(0, 60)).join(" ");
  return name.replace(/[^\p{L}\p{N}.]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "") || "mirada";
}

export function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000); // the browser has begun to read it by then
}

// A text that a spreadsheet would take for a formula gets an apostrophe: names and tokens are other people's.
const quoted = (text: string): string => `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replace(/"/g, '""')}"`;

export function csv(rows: (string | number)[][]): string {
  const cell = (value: string | number) => (typeof value === "number" ? String(Number(value.toPrecision(7))) : quoted(value));
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

export const saveCsv = (name: string, rows: (string | number)[][]): void =>
  save(`${name}.csv`, new Blob([csv(rows)], { type: "text/csv" }));

export const saveSvg = (name: string, svg: string): void => save(`${name}.svg`, new Blob([svg], { type: "image/svg+xml" }));

// A graph of the page as a file of its own, which has no style sheet to take colours from.
export function drawnSvg(svg: SVGElement, style: string): string {
  const copy = svg.cloneNode(true) as SVGElement;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const rules = document.createElementNS("http://www.w3.org/2000/svg", "style");
  rules.textContent = style;
  copy.prepend(rules);
  return new XMLSerializer().serializeToString(copy);
}
