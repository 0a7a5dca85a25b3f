// The pixels of a picture at the size of the page.
import { useEffect, useState } from "preact/hooks";
import type { Pixels } from "./heat_pixels";

export const LARGE = 480; // px of the longer side, about
export const SMALL = 120;

// Small pictures grow by whole numbers, so that their pixels stay squares of one size.
export function shownSize([height, width]: [number, number], side: number): { height: number; width: number; factor: number } {
  const wanted = side / Math.max(height, width);
  const factor = wanted > 1 ? Math.max(1, Math.round(wanted)) : wanted;
  return { height: Math.max(1, Math.round(height * factor)), width: Math.max(1, Math.round(width * factor)), factor };
}

export async function pixelsOf(address: string, size: [number, number], side: number): Promise<Pixels | null> {
  const { height, width, factor } = shownSize(size, side);
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  if (!context) return null;
  context.imageSmoothingEnabled = factor <= 3;
  context.drawImage(image, 0, 0, width, height);
  return { data: context.getImageData(0, 0, width, height).data as Uint8ClampedArray<ArrayBuffer>, width, height, factor };
}

export function usePixels(address: string | null, size: [number, number], side: number): Pixels | null {
  const [found, setFound] = useState<{ address: string; pixels: Pixels } | null>(null);
  useEffect(() => {
    if (address === null) return;
    let isCurrent = true;
    pixelsOf(address, size, side).then(
      (pixels) => isCurrent && pixels && setFound({ address, pixels }),
      () => undefined, // a picture that cannot be drawn stays empty; its numbers are still told
    );
    return () => {
      isCurrent = false;
    };
  }, [address, size[0], size[1], side]);
  return found && found.address === address ? found.pixels : null;
}

export function paint(canvas: HTMLCanvasElement | null, data: Uint8ClampedArray<ArrayBuffer>, width: number, height: number): CanvasRenderingContext2D | null {
  const context = canvas?.getContext("2d") ?? null;
  if (!canvas || !context) return null;
  [canvas.width, canvas.height] = [width, height];
  context.putImageData(new ImageData(data, width, height), 0, 0);
  return context;
}
