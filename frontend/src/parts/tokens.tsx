// Tokens one after the other, coloured. One of them is reached by Tab, the others from it by arrow keys.
import { useRef } from "preact/hooks";
import { number } from "../words";
import { cssColour, type Scale } from "./colours";
import { within } from "./field";
import "./parts.css";

export const visible = (token: string): string => (token.trim() === "" ? "␣" : token);

interface Props {
  label: string;
  tokens: string[];
  values?: Float32Array | null;
  scale?: Scale | null;
  chosen?: number | null;
  pick?: (index: number) => void;
  point?: (index: number) => void; // over it, or at it by keys
}

export function Tokens({ label, tokens, values, scale, chosen, pick, point }: Props) {
  const line = useRef<HTMLDivElement>(null);
  const press = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const buttons = Array.from(line.current?.querySelectorAll("button") ?? []);
    const now = buttons.indexOf(document.activeElement as HTMLButtonElement);
    if (!step || now < 0) return;
    event.preventDefault();
    buttons[within(now + step, 0, buttons.length - 1)].focus();
  };
  return (
    <div class="tokens" role="toolbar" aria-label={label} ref={line} onKeyDown={press}>
      {tokens.map((token, n) => (
        <button
          key={n}
          type="button"
          tabIndex={n === (chosen ?? 0) ? 0 : -1}
          class={n === chosen ? "token chosen" : "token"}
          aria-pressed={pick ? n === chosen : undefined}
          aria-label={values ? `${visible(token)}, ${number(values[n])}` : visible(token)}
          title={values ? number(values[n]) : undefined}
          style={values && scale ? cssColour(scale, values[n]) : {}}
          onClick={() => (pick ?? point)?.(n)}
          onPointerEnter={() => point?.(n)}
          onFocus={() => point?.(n)}
        >
          {visible(token)}
        </button>
      ))}
    </div>
  );
}
