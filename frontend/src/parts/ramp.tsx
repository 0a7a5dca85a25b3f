// The colours of a scale, with its numbers: no colour on a page goes without.
import { useEffect, useRef } from "preact/hooks";
import { number } from "../words";
import { tilePixels, type Scale } from "./colours";
import "./parts.css";

export const scaleNumbers = ({ low, high, isCut }: Scale): [string, string, string] => [
  number(low),
  number((low + high) / 2),
  (isCut ? "≥ " : "") + number(high),
];

export const rampPixels = (scale: Scale): Uint8ClampedArray<ArrayBuffer> =>
  tilePixels(Float32Array.from({ length: 256 }, (_, n) => scale.low + ((scale.high - scale.low) * n) / 255), scale);

export function Ramp({ scale, unit }: { scale: Scale; unit: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    canvas.current?.getContext("2d")?.putImageData(new ImageData(rampPixels(scale), 256, 1), 0, 0);
  }, [scale.low, scale.high, scale.table, scale.isFlipped]);
  return (
    <div class="ramp">
      <canvas ref={canvas} width={256} height={1} aria-hidden="true" />
      <span class="ticks">
        {scaleNumbers(scale).map((text, n) => (
          <span key={n}>{text}</span>
        ))}
      </span>
      <span class="unit">{unit}</span>
    </div>
  );
}
