// What the map says at the chosen place.
import type { MapAnswer, MapFile, SeenPlot } from "../api";
import { percent } from "../parts/controls";
import { number, say } from "../words";
import { ChipGrid } from "./map_chip";
import { Interval } from "./map_legend";
import { distance, written } from "./map_places";

export function AtPlace({ answer, map }: { answer: MapAnswer; map: MapFile }) {
  const { prediction, low, high, spread, applicability } = answer.values;
  const band = map.bands.find(({ name }) => name === "prediction");
  return (
    <>
      <h2>{say("map.place", { place: written(answer) })}</h2>
      {isNumber(prediction) && (
        <p class="value">
          <strong>{number(prediction)}</strong> {map.target}
        </p>
      )}
      {isNumber(prediction) && isNumber(low) && isNumber(high) && band && (
        <>
          <p>{say("map.interval", { coverage: percent(answer.coverage), low: number(low), high: number(high) })}</p>
          <Interval band={band} value={prediction} low={low} high={high} />
        </>
      )}
      {isNumber(spread) && <p>{say("map.spread", { spread: number(spread) })}</p>}
      {isNumber(applicability) && (
        <p class={applicability <= 1 ? "verdict" : "warning"}>
          {say(applicability <= 1 ? "map.inside" : "map.outside", { index: number(applicability, 2) })}
        </p>
      )}
      {answer.missing && <p class={answer.missing === "data" ? undefined : "note"}>{say(`map.missing.${answer.missing}`)}</p>}
      {answer.chip && <ChipGrid chip={answer.chip} />}
      {answer.plots.length > 0 && <Plots plots={answer.plots} count={answer.num_plots} />}
    </>
  );
}

const isNumber = (value: number | null | undefined): value is number => typeof value === "number";

export const held = (plots: SeenPlot[]): number => plots.reduce((sum, { weight }) => sum + weight, 0);

function Plots({ plots, count }: { plots: SeenPlot[]; count: number }) {
  return (
    <section>
      <h3>{say("map.plots")}</h3>
      <p class="note">{say("map.plots.held", { shown: plots.length, count: number(count, 6), held: percent(held(plots)) })}</p>
      <div class="scroll">
        <table class="plots">
          <thead>
            <tr>
              <th scope="col">{say("map.plots.name")}</th>
              <th scope="col" class="number">
                {say("map.plots.weight")}
              </th>
              <th scope="col" class="number">
                {say("map.plots.value")}
              </th>
              <th scope="col" class="number">
                {say("map.plots.km")}
              </th>
            </tr>
          </thead>
          <tbody>
            {plots.map((plot, n) => (
              <tr key={n}>
                <th scope="row">{plot.name}</th>
                <td class="number">{percent(plot.weight)}</td>
                <td class="number">{number(plot.value)}</td>
                <td class="number">{distance(plot.km)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
