// A form for any configuration: sections that open, a control for every kind of setting. Only what was changed is told.
import { useState } from "preact/hooks";
import { say } from "../words";
import { allFields, typed, type Draft, type Field, type Read, type Section } from "./schema";
import "./schema_form.css";

type Problems = Record<string, Exclude<Read, { value: unknown }>>;

interface Props {
  section: Section;
  draft: Draft;
  problems: Problems;
  blamed: string[]; // paths that the server has named
  onChange: (draft: Draft) => void;
}

export function SchemaForm(props: Props) {
  const [wanted, setWanted] = useState("");
  const matches = ({ path, description }: Field) =>
    `${path} ${description}`.toLowerCase().includes(wanted.trim().toLowerCase());
  const isEmpty = !allFields(props.section).some(matches);
  return (
    <div class="schema-form">
      <label class="field">
        <span>{say("schema.find")}</span>
        <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
      </label>
      {isEmpty && <p role="status">{say("schema.nothing")}</p>}
      <Fields {...props} matches={matches} />
      {props.section.sections.map((section) => (
        <Part key={section.path} {...props} section={section} matches={matches} isFound={wanted.trim() !== ""} />
      ))}
    </div>
  );
}

interface PartProps extends Props {
  matches: (field: Field) => boolean;
  isFound?: boolean;
}

function Part(props: PartProps) {
  const { section, draft, problems, blamed, matches, isFound } = props;
  const paths = allFields(section).map((field) => field.path);
  if (!allFields(section).some(matches)) return null;
  const changed = paths.filter((path) => draft[path] !== undefined).length;
  const needsLook = paths.some((path) => problems[path] || blamed.includes(path));
  return (
    <details open={isFound || needsLook || undefined}>
      <summary>
        <b>{section.path}</b> {changed > 0 && <span class="tag">{say("schema.changed", { count: changed })}</span>}{" "}
        <span class="note">{section.description}</span>
      </summary>
      <Fields {...props} />
      {section.sections.map((inner) => (
        <Part key={inner.path} {...props} section={inner} />
      ))}
    </details>
  );
}

function Fields({ section, draft, problems, blamed, onChange, matches }: PartProps) {
  const set = (path: string, words: string | null | undefined) => {
    const next = { ...draft };
    if (words === undefined || words === "") delete next[path];
    else next[path] = words;
    onChange(next);
  };
  return (
    <div class="settings">
      {section.fields.filter(matches).map((field) => (
        <Setting
          key={field.path}
          field={field}
          words={draft[field.path]}
          problem={problems[field.path]}
          isBlamed={blamed.includes(field.path)}
          onChange={(words) => set(field.path, words)}
        />
      ))}
    </div>
  );
}

interface SettingProps {
  field: Field;
  words: string | null | undefined;
  problem: Problems[string] | undefined;
  isBlamed: boolean;
  onChange: (words: string | null | undefined) => void;
}

function Setting({ field, words, problem, isBlamed, onChange }: SettingProps) {
  const { path, description, canBeNone } = field;
  const id = `setting-${path}`;
  const name = path.slice(path.lastIndexOf(".") + 1);
  const told = { "aria-describedby": `${id}-about`, "aria-invalid": problem || isBlamed ? ("true" as const) : undefined };
  return (
    <div class={`setting ${words === undefined ? "" : "is-changed"}`}>
      <label for={id}>{name}</label>
      <div class="control">
        <Control id={id} field={field} words={words} told={told} onChange={onChange} />
        {canBeNone && !hasOptions(field) && (
          <label class="none">
            <input
              type="checkbox"
              checked={words === null}
              aria-label={say("schema.none.of", { name })}
              onChange={(event) => onChange(event.currentTarget.checked ? null : undefined)}
            />
            {say("schema.none")}
          </label>
        )}
      </div>
      <p id={`${id}-about`} class="note">
        {description}
        {problem && <span class="problem"> {say(problem.problem, problem.given)}</span>}
      </p>
    </div>
  );
}

const hasOptions = ({ shape }: Field): boolean => shape.kind === "choice" || shape.kind === "switch";
const NONE = "\0none"; // no option is called so

function Control({ id, field, words, told, onChange }: Pick<SettingProps, "field" | "words" | "onChange"> & { id: string; told: object }) {
  const { shape, usual, canBeNone } = field;
  if (shape.kind === "choice" || shape.kind === "switch") {
    const options = shape.kind === "switch" ? ["true", "false"] : shape.options;
    const word = (option: string) => (shape.kind === "switch" ? say(`schema.${option}`) : option);
    const usually = usual === null || usual === undefined ? say("schema.usual.none") : say("schema.usual", { usual: word(typed(usual)) });
    return (
      <select
        id={id}
        {...told}
        value={words === null ? NONE : (words ?? "")}
        onChange={({ currentTarget: { value } }) => onChange(value === NONE ? null : value)}
      >
        <option value="">{usually}</option>
        {options.map((option) => (
          <option key={option} value={option}>
            {word(option)}
          </option>
        ))}
        {canBeNone && <option value={NONE}>{say("schema.none")}</option>}
      </select>
    );
  }
  const shared = { id, ...told, disabled: words === null, value: words ?? "", placeholder: typed(usual) || example(field) };
  if (shape.kind === "free") return <textarea rows={2} spellcheck={false} {...shared} onInput={(event) => onChange(event.currentTarget.value)} />;
  return (
    <input
      type="text"
      inputMode={shape.kind === "number" ? (shape.isWhole ? "numeric" : "decimal") : undefined}
      autocomplete="off"
      spellcheck={false}
      {...shared}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}

const example = ({ shape }: Field): string => (shape.kind === "list" ? "a, b" : shape.kind === "free" ? '{"name": 1}' : "");
