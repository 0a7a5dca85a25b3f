// Where a place looks around itself: a grid of pixels with their weights.
import { useState } from "preact/hooks";
import { floats, type MapAnswer } from "../api";
import { cssColour, scaleOf } from "../parts/colours";
import { percent, Told } from "../parts/controls";
import { Ramp } from "../parts/ramp";
import { say } from "../words";

type Chip = NonNullable<MapAnswer["chip"]>;

// "2 up, 1 right" of the middle.
export function whereIs(cell: number, [rows, columns]: [number, number]): string {
  const down = Math.floor(cell / columns) - Math.floor(rows / 2);
  const right = (cell % columns) - Math.floor(columns / 2);
  const parts = [
    down < 0 ? say("map.up", { n: -down }) : down > 0 ? say("map.down", { n: down }) : "",
    right < 0 ? say("map.left", { n: -right }) : right > 0 ? say("map.right", { n: right }) : "",
  ].filter(Boolean);
  return parts.length ? parts.join(", ") : say("map.middle");
}

export function strongest(values: Float32Array): number {
  let best = 0;
  values.forEach((value, n) => {
    if (value > values[best] || Number.isNaN(values[best])) best = n;
  });
  return best;
}

export function ChipGrid({ chip }: { chip: Chip }) {
  const [pointed, setPointed] = useState<number | null>(null);
  const values = floats(chip.attention);
  const [rows, columns] = chip.size;
  const known = values.filter((value) => !Number.isNaN(value));
  const scale = scaleOf(known);
  const most = strongest(values);
  const told = (cell: number) =>
    Number.isNaN(values[cell])
      ? say("map.chip.none", { where: whereIs(cell, chip.size) })
      : say("map.chip.pixel", { where: whereIs(cell, chip.size), weight: percent(values[cell]) });
  const mostSaid = say("map.chip.most", { where: whereIs(most, chip.size), weight: percent(values[most]) });
  const even = say("map.chip.even", { even: percent(1 / known.length) });
  return (
    <section>
      <h3>{say("map.chip")}</h3>
      <div
        class="chip"
        role="img"
        aria-label={say("map.chip.label", { rows, columns, most: mostSaid, even })}
        style={{ gridTemplateColumns: `repeat(${columns}, 1fr)` }}
        onPointerLeave={() => setPointed(null)}
      >
        {Array.from(values, (value, cell) => (
          <span
            key={cell}
            class={Number.isNaN(value) ? "cell nothing" : cell === (rows * columns - 1) / 2 ? "cell middle" : "cell"}
            style={Number.isNaN(value) ? undefined : { background: cssColour(scale, value).background }}
            title={told(cell)}
            onPointerEnter={() => setPointed(cell)}
          />
        ))}
      </div>
      <Ramp scale={scale} unit="" />
      <Told>{pointed === null ? `${mostSaid} ${even}` : told(pointed)}</Told>
      <p class="note">{say(`map.chip.${chip.kind}`, { rows, columns })}</p>
    </section>
  );
}
