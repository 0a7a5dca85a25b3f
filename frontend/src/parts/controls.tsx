// Small controls that the pages share.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { number, say, teach } from "../words";
import { parts } from "../words/parts";
import "./parts.css";

teach(parts);

export function Choice<T extends string | number>(props: {
  label: string;
  options: [value: T, text: string][];
  value: T | null;
  choose: (value: T) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={props.label}>
      <span class="name">{props.label}</span>
      {props.options.map(([value, text]) => (
        <button key={value} type="button" aria-pressed={value === props.value} onClick={() => props.choose(value)}>
          {text}
        </button>
      ))}
    </div>
  );
}

export function Slider(props: {
  label: string;
  low: number;
  high: number;
  value: number;
  said: string; // the value in words
  isIdle?: boolean;
  choose: (value: number) => void;
}) {
  return (
    <label class={props.isIdle ? "slider idle" : "slider"}>
      <span class="name">{props.label}</span>
      <input
        type="range"
        min={props.low}
        max={props.high}
        step={1}
        value={props.value}
        aria-valuetext={props.said}
        disabled={props.high <= props.low}
        onInput={(event) => props.choose(Number(event.currentTarget.value))}
      />
      <output>{props.said}</output>
    </label>
  );
}

export function Check(props: { label: string; isOn: boolean; choose: (isOn: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={props.isOn} onChange={(event) => props.choose(event.currentTarget.checked)} />
      {props.label}
    </label>
  );
}

export function Pick(props: {
  label: string;
  value: string;
  options: [value: string, text: string][];
  choose: (value: string) => void;
}) {
  const id = useId();
  return (
    <span class="field">
      <label for={id}>{props.label}</label>
      <select id={id} value={props.value} onChange={(event) => props.choose(event.currentTarget.value)}>
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </span>
  );
}

// Answers as bars, the explained one marked.
export function Answers(props: {
  answers: [string, number][];
  target: string;
  caption: string;
  explain?: (name: string) => void;
  canExplain?: (name: string) => boolean;
}) {
  const isListed = props.answers.some(([name]) => name === props.target);
  return (
    <table class="answers">
      <caption>
        {props.caption}
        {isListed || !props.target ? "" : ` ${say("parts.explained", { target: props.target })}`}
      </caption>
      <tbody>
        {props.answers.map(([name, share], n) => (
          <tr key={n} class={name === props.target ? "target" : undefined}>
            <th scope="row">
              {props.explain && name !== props.target && (props.canExplain?.(name) ?? true) ? (
                <button type="button" class="plain" title={say("parts.explain", { target: name })} onClick={() => props.explain!(name)}>
                  {name}
                </button>
              ) : (
                name
              )}
            </th>
            <td class="share-bar" style={{ "--share": `${Math.min(100, Math.max(0, 100 * share))}%` }}>
              {percent(share)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

export const percent = (share: number): string => `${number(100 * share)} %`;

export function Told(props: { children: ComponentChildren; class?: string }) {
  return (
    <p class={props.class ?? "readout"} aria-live="polite">
      {props.children}
    </p>
  );
}

export function Wait(props: { isAsking: boolean; error: string | null; again?: () => void; what?: string }) {
  if (props.error) {
    return (
      <p class="error" role="alert">
        {props.error}{" "}
        {props.again && (
          <button type="button" onClick={props.again}>
            {say("shell.again")}
          </button>
        )}
      </p>
    );
  }
  return props.isAsking ? (
    <p role="status" class="note">
      {props.what ?? say("shell.loading")}
    </p>
  ) : null;
}
