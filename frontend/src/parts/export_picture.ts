// A picture with its heat, scale and words as a file that can be sent without the page: SVG with every number, or PNG.
import { cssColour, type Scale } from "./colours";
import { part, type Field } from "./field";
import { save } from "./files";
import { rampPixels, scaleNumbers } from "./ramp";

export interface Shown {
  picture: string; // data: URL
  size: [number, number];
  field: Field;
  scale: Scale;
  opacity: number; // 0 to 1
  mark: { row: number; column: number; cell: [number, number] } | null;
  unit: string;
  lines: string[]; // words below
}

const WIDTH = 480;
const MARGIN = 12;

// Names are other people's: they must not become markup.
export function escaped(text: string): string {
  const safe = text.replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "�");
  return safe.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}

const written = (value: number): string => String(Number(value.toPrecision(6)));

// Cells as squares (an SVG has no way to smooth between them), each with its row, column and number.
export function heatSvg(shown: Shown): string {
  const { size, field, scale, mark } = shown;
  const factor = WIDTH / size[1];
  const height = size[0] * factor;
  const box = (row: number, column: number, cell: [number, number]) => {
    const [y, x] = [row * cell[0] * factor, column * cell[1] * factor];
    const [tall, wide] = [Math.min(cell[0] * factor, height - y), Math.min(cell[1] * factor, WIDTH - x)];
    return tall > 0 && wide > 0 ? `x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${wide.toFixed(2)}" height="${tall.toFixed(2)}"` : null;
  };
  const cells = Array.from(part(field), (value, n) => {
    const [row, column] = [Math.floor(n / field.grid[1]), n % field.grid[1]];
    const where = box(row, column, field.cell) ?? 'width="0" height="0"';
    const told = `data-row="${row + 1}" data-column="${column + 1}" data-value="${written(value)}"`;
    return `<rect ${where} fill="${cssColour(scale, value).background}" ${told}><title>${row + 1}, ${column + 1}: ${written(value)}</title></rect>`;
  });
  const frame = mark && box(mark.row, mark.column, mark.cell);
  const ramp = Array.from({ length: 32 }, (_, n) => {
    const value = scale.low + ((scale.high - scale.low) * (n + 0.5)) / 32;
    return `<rect x="${(n * WIDTH) / 32}" y="0" width="${WIDTH / 32 + 0.5}" height="10" fill="${cssColour(scale, value).background}"/>`;
  });
  const ticks = scaleNumbers(scale).map(
    (text, n) => `<text x="${(n * WIDTH) / 2}" y="26" text-anchor="${["start", "middle", "end"][n]}">${escaped(text)}</text>`,
  );
  const lines = [shown.unit, ...shown.lines].flatMap((line) => wrapped(line, 74));
  const words = lines.map((line, n) => `<text x="0" y="${48 + 19 * n}">${escaped(line)}</text>`);
  const tall = height + 70 + 19 * lines.length;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH + 2 * MARGIN} ${tall.toFixed(1)}" width="${WIDTH + 2 * MARGIN}" height="${tall.toFixed(1)}" font-family="sans-serif" font-size="13">`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    `<g transform="translate(${MARGIN} ${MARGIN})">`,
    `<image href="${escaped(shown.picture)}" width="${WIDTH}" height="${height.toFixed(2)}" preserveAspectRatio="none"/>`,
    `<g class="heat" opacity="${shown.opacity}">${cells.join("")}</g>`,
    frame ? `<rect ${frame} fill="none" stroke="#000000" stroke-width="4"/><rect ${frame} fill="none" stroke="#ffffff" stroke-width="2"/>` : "",
    `<g transform="translate(0 ${(height + 12).toFixed(1)})" fill="#14181f">${ramp.join("")}${ticks.join("")}${words.join("")}</g>`,
    `</g></svg>`,
  ].join("\n");
}

export function wrapped(text: string, letters: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines[lines.length - 1] ? `${lines[lines.length - 1]} ${word}` : word;
    if (longer.length <= letters || !lines[lines.length - 1]) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

// What a canvas shows, as it is on the page.
export function savePng(name: string, canvas: HTMLCanvasElement, scale: Scale, unit: string, lines: string[]): void {
  const page = document.createElement("canvas");
  const context = page.getContext("2d");
  if (!context) return;
  const width = Math.max(canvas.width, 420);
  const words = [unit, ...lines].flatMap((line) => wrapped(line, Math.floor(width / 7.2)));
  [page.width, page.height] = [width + 2 * MARGIN, canvas.height + 74 + 20 * words.length];
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, page.width, page.height);
  context.drawImage(canvas, MARGIN, MARGIN);
  const ramp = document.createElement("canvas");
  [ramp.width, ramp.height] = [256, 1];
  ramp.getContext("2d")!.putImageData(new ImageData(rampPixels(scale), 256, 1), 0, 0);
  context.drawImage(ramp, MARGIN, canvas.height + 24, width, 10);
  context.fillStyle = "#14181f";
  context.font = "14px system-ui, sans-serif";
  scaleNumbers(scale).forEach((text, n) => {
    context.textAlign = (["left", "center", "right"] as const)[n];
    context.fillText(text, MARGIN + (n * width) / 2, canvas.height + 50);
  });
  context.textAlign = "left";
  words.forEach((line, n) => context.fillText(line, MARGIN, canvas.height + 74 + 20 * n, width));
  page.toBlob((content) => content && save(`${name}.png`, content));
}
