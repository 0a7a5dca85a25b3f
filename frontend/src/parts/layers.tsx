// Sliders for the layer and the head.
import type { LayerInfo } from "../api";
import { say } from "../words";
import { Choice, Slider } from "./controls";
import { within } from "./field";
import type { Heads } from "./heads";

// 0 and whatever there is no layer of stand for the last.
export const layerNumber = (layer: number, count: number): number => (layer >= 1 && layer <= count ? layer - 1 : count - 1);

export function headsInWords(heads: Heads, numHeads: number): string {
  if (typeof heads === "number") return say("parts.head.one", { head: Math.min(heads, numHeads) });
  return say("parts.head.all", { how: say(`parts.head.${heads}`), count: numHeads });
}

export function Layers(props: {
  layers: LayerInfo[];
  layer: number; // from 0
  heads: Heads;
  choose: (changes: { layer?: number; head?: string }) => void;
}) {
  const { layers, layer, heads, choose } = props;
  const most = layers[layer].shape[0];
  const head = typeof heads === "number" ? Math.min(heads, most) : null;
  return (
    <div class="controls">
      <Slider
        label={say("parts.layer")}
        low={1}
        high={layers.length}
        value={layer + 1}
        said={say("parts.of", { number: layer + 1, count: layers.length })}
        choose={(number) => choose({ layer: number })}
      />
      <Slider
        label={say("parts.head")}
        low={1}
        high={most}
        value={head ?? 1}
        isIdle={head === null}
        said={head === null ? say("parts.all") : say("parts.of", { number: head, count: most })}
        choose={(number) => choose({ head: String(number) })}
      />
      <Choice
        label={say("parts.heads")}
        options={(["mean", "max", "min"] as const).map((how) => [how, say(`parts.head.${how}`)])}
        value={typeof heads === "number" ? null : heads}
        choose={(how) => choose({ head: how })}
      />
    </div>
  );
}

// One step by keys, to another layer or head.
export function moved(layers: LayerInfo[], layer: number, heads: Heads, by: [layers: number, heads: number]): { layer: number; head: string } {
  const next = within(layer + by[0], 0, layers.length - 1);
  const now = typeof heads === "number" ? heads : by[1] > 0 ? 0 : 1;
  return { layer: next + 1, head: by[1] ? String(within(now + by[1], 1, layers[next].shape[0])) : String(heads) };
}
