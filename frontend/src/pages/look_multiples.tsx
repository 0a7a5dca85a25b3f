// All methods side by side. They have units of their own; as shares of their totals they fit one scale.
import { useMemo } from "preact/hooks";
import { floats, type Look, type MapResult } from "../api";
import { scaleOf } from "../parts/colours";
import { Check } from "../parts/controls";
import { HeatTile } from "../parts/heat";
import { SMALL, usePixels } from "../parts/picture";
import { Ramp } from "../parts/ramp";
import { say } from "../words";
import { changeLook, type LookChoice } from "./look_choice";
import { said } from "./look_methods";

export function sharesOf(values: Float32Array): Float32Array {
  const total = values.reduce((sum, value) => sum + Math.abs(value), 0) || 1;
  return values.map((value) => value / total);
}

export function Multiples({ look, maps, chosen, choice }: { look: Look; maps: MapResult[]; chosen: string; choice: LookChoice }) {
  const pixels = usePixels(look.picture, look.size, SMALL);
  const key = maps.map((map) => map.method).join(" ");
  const fields = useMemo(
    () => new Map(maps.map((map) => [map.method, { values: sharesOf(floats(map.values)), start: 0, grid: map.grid, cell: map.cell }])),
    [look.id, key],
  );
  const scale = useMemo(() => scaleOf([...fields.values()].flatMap((field) => [...field.values]), { fromZero: true }), [fields]);
  const drawn = { opacity: choice.opacity / 100, isSmooth: choice.smooth };
  return (
    <>
      <div class="multiples" role="group" aria-label={say("look.method")}>
        {look.methods.map((method) => {
          const field = fields.get(method.name);
          return (
            <button key={method.name} type="button" aria-pressed={method.name === chosen} onClick={() => changeLook({ method: method.name, step: -1 })}>
              {field ? (
                <HeatTile pixels={pixels} size={look.size} field={field} scale={choice.common ? scale : scaleOf(field.values)} drawn={drawn} />
              ) : (
                <span class="blank" title={method.cost}>
                  {say("look.compute")}
                  <small>{method.cost}</small>
                </span>
              )}
              <span>{said(method).title}</span>
            </button>
          );
        })}
      </div>
      {choice.common && <Ramp scale={scale} unit={say("look.unit.share")} />}
      <p>
        <Check label={say("look.common")} isOn={choice.common} choose={(common) => changeLook({ common })} />{" "}
        {!choice.common && <span class="note">{say("look.own.scale")}</span>}
      </p>
    </>
  );
}
