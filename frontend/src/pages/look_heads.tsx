// Every layer (down) and head (across) for the chosen token, as small tiles; click or arrow keys enlarge one.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Look } from "../api";
import { scaleOf, tilePixels, type Scale } from "../parts/colours";
import { Check } from "../parts/controls";
import { part, stepOf, within, type Field } from "../parts/field";
import { fused } from "../parts/heads";
import { headsInWords, moved } from "../parts/layers";
import { Ramp } from "../parts/ramp";
import { isDark } from "../theme";
import { say } from "../words";
import { askedIn, type Weights } from "./look_ask";
import { fieldIn } from "./look_attention";
import { changeLook, headsChosen, type LookChoice } from "./look_choice";

const MARGIN = 26;
const GAP = 3;

export function HeadsGrid({ look, weights, layer, choice }: { look: Look; weights: Weights; layer: number; choice: LookChoice }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [room, setRoom] = useState(420);
  const most = Math.max(...look.layers.map(({ shape }) => shape[0]));
  const side = within(Math.floor((room - MARGIN) / most) - GAP, 8, 96);
  const tiles = useMemo(
    () =>
      look.layers.map((info, n) => {
        const rows = weights.layers[n];
        const { seen } = askedIn(info, weights, look.size);
        return Array.from({ length: info.shape[0] }, (_, head) => (rows ? fieldIn(fused(rows, info.shape[0], head + 1), seen) : null));
      }),
    [look.id, weights],
  );
  const scale = useMemo(() => {
    const all = tiles.flat().flatMap((field) => (field ? [part(field)] : []));
    return scaleOf(all.length > 400 ? all.flatMap((values) => [...values.filter((_, n) => n % 8 === 0)]) : all.flatMap((values) => [...values]), { fromZero: true, top: 0.995 });
  }, [tiles]);
  useEffect(() => {
    const parent = canvas.current?.parentElement;
    if (!parent || typeof ResizeObserver === "undefined") return;
    const observer = new ResizeObserver(() => setRoom(parent.clientWidth));
    observer.observe(parent);
    return () => observer.disconnect();
  }, []);
  const heads = headsChosen(choice);
  const dark = isDark.value; // margins are drawn in the colours of the page
  useLayoutEffect(() => draw(canvas.current, tiles, choice.common ? scale : null, side, most), [tiles, choice.common, side, dark]);
  const at = (n: number) => MARGIN + n * (side + GAP);
  const pick = (event: MouseEvent) => {
    const box = canvas.current!.getBoundingClientRect();
    const inside = (place: number) => Math.floor((place - MARGIN) / (side + GAP));
    const [row, head] = [inside(event.clientY - box.top), inside(event.clientX - box.left)];
    if (look.layers[row] && head >= 0 && head < look.layers[row].shape[0]) changeLook({ layer: row + 1, head: String(head + 1) });
  };
  const press = (event: KeyboardEvent) => {
    const step = stepOf(event.key);
    if (!step) return;
    event.preventDefault();
    changeLook(moved(look.layers, layer, heads, step));
  };
  const chosen = typeof heads === "number" ? [Math.min(heads, look.layers[layer].shape[0]) - 1] : Array.from({ length: look.layers[layer].shape[0] }, (_, n) => n);
  return (
    <figure class="heads">
      <figcaption>{say("look.heads")}</figcaption>
      <div class="scroll">
        <div class="heads-box">
          <canvas
            ref={canvas}
            tabIndex={0}
            role="application"
            class="heads"
            aria-label={say("look.heads.label", { layers: look.layers.length, heads: most, layer: layer + 1, chosen: headsInWords(heads, look.layers[layer].shape[0]) })}
            onClick={pick}
            onKeyDown={press}
          />
          {chosen.map((head) => (
            <span key={head} class="chosen-tile" style={{ left: `${at(head) - 2}px`, top: `${at(layer) - 2}px`, width: `${side + 4}px`, height: `${side + 4}px` }} />
          ))}
        </div>
      </div>
      {choice.common && <Ramp scale={scale} unit={say("look.unit.weights")} />}
      <p>
        <Check label={say("look.common")} isOn={choice.common} choose={(common) => changeLook({ common })} />{" "}
        {!choice.common && <span class="note">{say("look.own.scale")}</span>}
      </p>
    </figure>
  );
}

function draw(canvas: HTMLCanvasElement | null, tiles: (Field | null)[][], common: Scale | null, side: number, most: number): void {
  const context = canvas?.getContext("2d");
  if (!canvas || !context) return;
  const at = (n: number) => MARGIN + n * (side + GAP);
  const ratio = devicePixelRatio || 1;
  const [width, height] = [at(most), at(tiles.length)];
  [canvas.width, canvas.height] = [Math.ceil(ratio * width), Math.ceil(ratio * height)];
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  context.scale(ratio, ratio);
  context.font = "12px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = context.strokeStyle = getComputedStyle(canvas).getPropertyValue("--faint");
  const skip = Math.ceil(16 / (side + GAP));
  for (let n = 0; n < most; n += skip) context.fillText(String(n + 1), at(n) + side / 2, MARGIN / 2);
  for (let n = 0; n < tiles.length; n += skip) context.fillText(String(n + 1), MARGIN / 2, at(n) + side / 2);
  const tile = document.createElement("canvas");
  tiles.forEach((row, l) =>
    row.forEach((field, h) => {
      if (!field) return context.strokeRect(at(h) + 0.5, at(l) + 0.5, side - 1, side - 1);
      const [rows, columns] = field.grid;
      [tile.width, tile.height] = [columns, rows];
      const pixels = tilePixels(field.values, common ?? scaleOf(part(field), { fromZero: true }), field.start, rows * columns);
      tile.getContext("2d")!.putImageData(new ImageData(pixels, columns, rows), 0, 0);
      context.imageSmoothingEnabled = columns > side * ratio;
      context.drawImage(tile, at(h), at(l), side, side);
    }),
  );
}
