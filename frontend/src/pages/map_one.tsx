// One map: which band, how opaque, where; the chosen place and what is said of it. All of it lives in the address.
import { useState } from "preact/hooks";
import { choose } from "../address";
import { api, type MapFile } from "../api";
import { useAnswer } from "../parts/ask";
import { Choice, Slider, Wait } from "../parts/controls";
import { language, say } from "../words";
import { AtPlace } from "./map_answer";
import { bandName, Legend } from "./map_legend";
import { inAddress, parsed, placed, turned, type Place } from "./map_places";
import { MapView, type View } from "./map_view";

export function viewOf(chosen: Record<string, string>): View | null {
  const place = placed(`${chosen.lat ?? ""},${chosen.lon ?? ""}`);
  const zoom = Number(chosen.zoom);
  return place && chosen.lat && chosen.lon && chosen.zoom && Number.isFinite(zoom) && zoom >= 0 && zoom <= 22 ? { ...place, zoom } : null;
}

export function opacityOf(text: string | undefined): number {
  const share = Number(text ?? 100);
  return Number.isFinite(share) ? Math.min(100, Math.max(0, Math.round(share))) : 100;
}

export function OneMap({ run, map, chosen }: { run: string; map: MapFile; chosen: Record<string, string> }) {
  const [hasFailed, setFailed] = useState(false);
  const band = map.bands.find(({ name }) => name === chosen.band) ?? map.bands[0];
  const opacity = opacityOf(chosen.opacity);
  const at = placed(chosen.at);
  const asked = useAnswer(
    at && `${run} ${map.file} ${chosen.at}`,
    (signal) => api.mapAt(run, map.file, at!.longitude, at!.latitude, signal),
  );
  const answer = at ? asked.value : null;
  const ask = ({ latitude, longitude }: Place) => choose({ at: `${inAddress(latitude)},${inAddress(longitude)}` });
  const about = `map.about.${band.name}`;
  return (
    <div class="map-page">
      <div class="map-side">
        <div class="controls">
          <Choice
            label={say("map.layer")}
            options={map.bands.map(({ name }) => [name, bandName(name)])}
            value={band.name}
            choose={(name) => choose({ band: name === map.bands[0].name ? undefined : name })}
          />
        </div>
        <MapView
          key={`${map.file} ${language.value}`}
          map={map}
          tiles={api.mapTiles(run, map.file, band.name)}
          opacity={opacity / 100}
          view={viewOf(chosen)}
          at={at}
          answer={asked.isAsking ? null : answer}
          move={({ latitude, longitude, zoom }) => choose({ lat: inAddress(latitude), lon: inAddress(longitude), zoom })}
          ask={ask}
          fail={() => setFailed(true)}
        />
        {hasFailed && (
          <p class="error" role="alert">
            {say("map.tileError")}
          </p>
        )}
        <div class="map-below">
          <Legend band={band} target={map.target} />
          <div class="controls">
            <Slider
              label={say("map.opacity")}
              low={0}
              high={100}
              value={opacity}
              said={`${opacity} %`}
              choose={(share) => choose({ opacity: share === 100 ? undefined : share })}
            />
            <button type="button" onClick={() => choose({ lat: undefined, lon: undefined, zoom: undefined })}>
              {say("map.whole")}
            </button>
          </div>
        </div>
        {say(about) !== about && <p class="note">{say(about)}</p>}
      </div>
      <div class="card map-told" aria-live="polite" aria-busy={asked.isAsking}>
        <PlaceForm key={chosen.at ?? ""} at={at} ask={ask} />
        <Wait isAsking={asked.isAsking && !answer} error={asked.error} again={asked.again} />
        {answer && <AtPlace answer={answer} map={map} />}
        {!at && (
          <>
            <h2>{say("map.nobody")}</h2>
            <p>{say("map.nobody.more")}</p>
          </>
        )}
      </div>
    </div>
  );
}

function PlaceForm({ at, ask }: { at: Place | null; ask: (place: Place) => void }) {
  const [isBad, setBad] = useState(false);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const latitude = parsed(String(form.get("latitude")), "latitude");
    const longitude = parsed(String(form.get("longitude")), "longitude");
    setBad(latitude === null || longitude === null);
    if (latitude !== null && longitude !== null) ask({ latitude, longitude });
  };
  const field = (axis: "latitude" | "longitude", value: number | undefined) => (
    <label>
      <span class="name">{say(`map.${axis}`)}</span>
      <input name={axis} inputMode="text" autocomplete="off" size={9} defaultValue={value === undefined ? "" : inAddress(value)} aria-invalid={isBad} />
    </label>
  );
  return (
    <form class="place-form" onSubmit={submit}>
      <p class="note">{say("map.hint")}</p>
      {field("latitude", at?.latitude)}
      {field("longitude", at ? turned(at.longitude) : undefined)}
      <button type="submit">{say("map.ask")}</button>
      {isBad && (
        <p class="error" role="alert">
          {say("map.badPlace")}
        </p>
      )}
    </form>
  );
}
