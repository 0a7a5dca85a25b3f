import { useEffect, useMemo, useState } from "preact/hooks";
import { api, Refused, type Choices, type NewTraining as Wish } from "../api";
import { go } from "../address";
import { Failure } from "../parts/guarded";
import { allFields, read, sectionsOf, settingsOf, type Draft, type Section } from "../parts/schema";
import { SchemaForm } from "../parts/schema_form";
import { say } from "../words";

export function NewTraining({ chosen }: { chosen: Record<string, string> }) {
  const [choices, setChoices] = useState<Choices | null>(null);
  const [error, setError] = useState<unknown>(null);
  const ask = () => {
    setError(null);
    api.choices().then(setChoices, setError);
  };
  useEffect(ask, []);
  return (
    <>
      <p class="way">
        <a href="#/runs">← {say("runs.back")}</a>
      </p>
      <h1>{say("new.title")}</h1>
      {error !== null && <Failure error={error} again={ask} />}
      {!choices && error === null && <p role="status">{say("shell.loading")}</p>}
      {choices && <TrainingForm choices={choices} chosen={chosen} />}
    </>
  );
}

// These have a place of their own at the top of the form; the folder of runs is the studio's.
const APART = ["data.source", "system.name", "system.size", "train.minutes", "preset", "runs"];

export function withoutThose(section: Section, paths: string[]): Section {
  return {
    ...section,
    fields: section.fields.filter((field) => !paths.includes(field.path)),
    sections: section.sections.map((inner) => withoutThose(inner, paths)).filter((inner) => inner.fields.length || inner.sections.length),
  };
}

export function TrainingForm({ choices, chosen }: { choices: Choices; chosen: Record<string, string> }) {
  const [source, setSource] = useState(chosen.source ?? "");
  const [system, setSystem] = useState(chosen.system ?? "");
  const [size, setSize] = useState("");
  const [preset, setPreset] = useState(chosen.preset ?? "");
  const [minutes, setMinutes] = useState(chosen.minutes ?? "");
  const [draft, setDraft] = useState<Draft>({});
  const [isAsking, setAsking] = useState(false);
  const [isTried, setTried] = useState(false);
  const [error, setError] = useState<unknown>(null);

  const section = useMemo(() => withoutThose(sectionsOf(choices.schema), APART), [choices]);
  const fields = useMemo(() => allFields(section), [section]);
  const { settings, problems } = settingsOf(fields, draft);
  const time = minutes.trim() === "" ? null : read({ kind: "number", isWhole: false, low: { value: 0, isOpen: true } }, minutes);
  const card = choices.systems.find(({ name }) => name === system);
  const sentence = error instanceof Refused ? error.message : "";
  const blamed = fields.map(({ path }) => path).filter((path) => new RegExp(`(^|[^\\w.])${path.replaceAll(".", "\\.")}(?![\\w.]*\\w)`).test(sentence) && path.includes("."));
  const changed = Object.keys(draft).length;

  const start = async (event: Event) => {
    event.preventDefault();
    setTried(true);
    setError(null);
    if (source.trim() === "" || Object.keys(problems).length > 0 || (time && !("value" in time))) return;
    const wish: Wish = { source: source.trim() };
    if (system) wish.system = size ? `${system}:${size}` : system;
    if (preset) wish.preset = preset;
    const all = { ...settings, ...(time ? { "train.minutes": time.value } : {}) };
    if (Object.keys(all).length) wish.settings = all;
    setAsking(true);
    try {
      go(["runs", (await api.train(wish)).name]);
    } catch (refused) {
      setError(refused);
      setAsking(false);
    }
  };

  return (
    <form class="new-training" onSubmit={start} noValidate>
      <section class="card quick">
        <div class="question">
          <label for="new-source">{say("new.source")}</label>
          <input
            id="new-source"
            list="new-samples"
            value={source}
            autocomplete="off"
            spellcheck={false}
            aria-describedby="new-source-about"
            aria-invalid={isTried && source.trim() === "" ? "true" : undefined}
            onInput={(event) => setSource(event.currentTarget.value)}
          />
          <datalist id="new-samples">
            {choices.samples.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <div id="new-source-about" class="note">
            {isTried && source.trim() === "" ? <b class="problem">{say("new.source.missing")}</b> : say("new.source.about")}
          </div>
          <div class="samples">
            <span class="note">{say("new.samples")}</span>
            {choices.samples.map((name) => (
              <button type="button" key={name} aria-pressed={source === name} onClick={() => setSource(name)}>
                {name}
              </button>
            ))}
          </div>
        </div>
        <div class="question">
          <label for="new-system">{say("new.system")}</label>
          <div class="row">
            <select id="new-system" value={system} onChange={(event) => (setSystem(event.currentTarget.value), setSize(""))}>
              <option value="">{say("new.as_fits")}</option>
              {choices.systems.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
            {card && card.sizes.length > 0 && (
              <select aria-label={say("new.size")} value={size} onChange={(event) => setSize(event.currentTarget.value)}>
                <option value="">{say("new.size.usual")}</option>
                {card.sizes.map((name) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </select>
            )}
          </div>
          <div class="note">{card ? card.summary : say("new.system.about")}</div>
        </div>
        <div class="question">
          <label for="new-preset">{say("new.preset")}</label>
          <select id="new-preset" value={preset} onChange={(event) => setPreset(event.currentTarget.value)}>
            <option value="">{say("new.as_fits")}</option>
            {choices.presets.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
          <div class="note">{choices.presets.find(({ name }) => name === preset)?.summary ?? say("new.preset.about")}</div>
        </div>
        <div class="question">
          <label for="new-minutes">{say("new.minutes")}</label>
          <input
            id="new-minutes"
            class="short"
            inputMode="decimal"
            value={minutes}
            autocomplete="off"
            aria-describedby="new-minutes-about"
            aria-invalid={time && !("value" in time) ? "true" : undefined}
            onInput={(event) => setMinutes(event.currentTarget.value)}
          />
          <div id="new-minutes-about" class="note">
            {time && !("value" in time) ? <b class="problem">{say(time.problem, time.given)}</b> : say("new.minutes.about")}
          </div>
        </div>
      </section>
      {error !== null && <Failure error={error} />}
      <div class="controls">
        <button class="main" disabled={isAsking}>
          {say(isAsking ? "new.starting" : "new.start")}
        </button>
        {isTried && Object.keys(problems).length > 0 && (
          <span role="alert" class="problem">
            {say("new.mend", { paths: Object.keys(problems).join(", ") })}
          </span>
        )}
      </div>
      <details class="card all-settings" open={blamed.length > 0 || undefined}>
        <summary>
          <b>{say("new.all")}</b> {changed > 0 && <span class="tag">{say("schema.changed", { count: changed })}</span>}
        </summary>
        <p class="note">{say("new.all.about")}</p>
        {changed > 0 && (
          <p>
            <button type="button" onClick={() => setDraft({})}>
              {say("new.all.reset")}
            </button>
          </p>
        )}
        <SchemaForm section={section} draft={draft} problems={problems} blamed={blamed} onChange={setDraft} />
      </details>
    </form>
  );
}
