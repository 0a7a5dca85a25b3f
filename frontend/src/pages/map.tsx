// The maps of a run: what it predicts everywhere, how sure it is, and what it looked at.
import { choose, go } from "../address";
import { api } from "../api";
import { useAnswer } from "../parts/ask";
import { Pick, Wait } from "../parts/controls";
import type { PageProps } from "../studio";
import { say, teach } from "../words";
import { map as words } from "../words/map";
import { OneMap } from "./map_one";
import "./map.css";

teach(words);

export function MapPage({ path, chosen }: PageProps) {
  const [run] = path;
  const runs = useAnswer("runs", () => api.runs());
  const open = (runs.value?.runs ?? []).filter(({ pages }) => pages.includes("map")).map(({ name }) => name);
  const folder = runs.value?.folder ?? "runs";
  const names = run && !open.includes(run) ? [run, ...open] : open;
  const maps = useAnswer(run ?? null, (signal) => api.maps(run, signal), { isFresh: true });
  const map = maps.value?.find(({ file }) => file === chosen.file) ?? maps.value?.[0];
  const options = (some: string[], isOpen: boolean): [string, string][] => [
    ...(isOpen ? [] : [["", say("map.choose")] as [string, string]]),
    ...some.map((name): [string, string] => [name, name]),
  ];
  return (
    <>
      <h1>{say("map.title")}</h1>
      {names.length > 0 && (
        <div class="controls">
          <Pick label={say("map.run")} value={run ?? ""} options={options(names, Boolean(run))} choose={(name) => name && go(["map", name])} />
          {map && (
            <Pick
              label={say("map.file")}
              value={map.file}
              options={options(maps.value!.map(({ file }) => file), true)}
              choose={(file) => choose({ file, lat: undefined, lon: undefined, zoom: undefined, at: undefined, band: undefined })}
            />
          )}
        </div>
      )}
      <Wait isAsking={(runs.isAsking && !runs.value) || maps.isAsking} error={runs.error ?? maps.error} again={runs.error ? runs.again : maps.again} />
      {runs.value && !names.length && <Command what={say("map.noRuns")} command="mirada train plots.csv --rasters climate.tif --target richness" />}
      {!run && names.length > 0 && <p>{say("map.start")}</p>}
      {run && maps.value?.length === 0 && (
        <Command what={say("map.noMaps")} command={`mirada map ${folder}/${run} climate.tif -o ${folder}/${run}/maps/map.tif`} />
      )}
      {map && chosen.file && map.file !== chosen.file && <p class="warning">{say("map.gone", { file: chosen.file })}</p>}
      {map && <OneMap key={`${run} ${map.file}`} run={run} map={map} chosen={chosen} />}
    </>
  );
}

function Command({ what, command }: { what: string; command: string }) {
  return (
    <div class="card">
      <p>{what}</p>
      <pre class="scroll">
        <code>{command}</code>
      </pre>
    </div>
  );
}
