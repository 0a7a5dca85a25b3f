// What is chosen of each of the four parts, and of the tokens.
import { useId } from "preact/hooks";
import { Pick } from "../parts/controls";
import { say } from "../words";
import { ALSO, HEADS, isOnAPlane, KINDS, NUMBERS, pick, POSITIONS, SCORES, type LearnChoice } from "./learn_choice";

const named = (names: string[], of: string): [string, string][] => names.map((name) => [name, say(`learn.${of}.${name}`)]);

// A number is taken over once it is one, and within its limits.
export function NumberField(props: { label: string; value: number; low: number; high: number; step?: number; choose: (value: number) => void }) {
  const id = useId();
  return (
    <span class="field">
      <label for={id}>{props.label}</label>
      <input
        id={id}
        type="number"
        min={props.low}
        max={props.high}
        step={props.step ?? 1}
        value={props.value}
        onInput={(event) => {
          const { value } = event.currentTarget;
          const given = Number(value);
          if (value !== "" && given >= props.low && given <= props.high) props.choose(given);
        }}
      />
    </span>
  );
}

function TextField(props: { label: string; value: string; choose: (value: string) => void; class?: string }) {
  const id = useId();
  return (
    <span class={`field ${props.class ?? ""}`}>
      <label for={id}>{props.label}</label>
      <input id={id} type="text" value={props.value} maxLength={2000} spellcheck={false} onInput={(event) => props.choose(event.currentTarget.value)} />
    </span>
  );
}

export function Tokens({ choice }: { choice: LearnChoice }) {
  return (
    <div class="controls">
      {choice.length ? (
        <NumberField label={say("learn.length")} value={choice.length} low={1} high={64} choose={(length) => pick({ length })} />
      ) : (
        <TextField class="wide" label={say("learn.text")} value={choice.text} choose={(text) => pick({ text })} />
      )}
      <button type="button" onClick={() => pick({ length: choice.length ? 0 : 16 })}>
        {say(choice.length ? "learn.useText" : "learn.useLength")}
      </button>
      <NumberField label={say("learn.seed")} value={choice.seed} low={0} high={9999} choose={(seed) => pick({ seed })} />
    </div>
  );
}

export function Parts({ choice }: { choice: LearnChoice }) {
  return (
    <div class="four">
      <fieldset>
        <legend>{say("learn.score")}</legend>
        <Pick label={say("learn.kind")} value={choice.score} options={named(SCORES, "score")} choose={(score) => pick({ score })} />
        <p class="note">{say(`learn.about.${choice.score}`)}</p>
      </fieldset>
      <fieldset>
        <legend>{say("learn.neighbours")}</legend>
        <Pick label={say("learn.kind")} value={choice.kind} options={named(KINDS, "neighbours")} choose={(kind) => pick({ kind })} />
        {(NUMBERS[choice.kind] ?? []).map(([name, low, high]) => (
          <NumberField key={name} label={say(`learn.number.${name}`)} value={Number(choice[name])} low={low} high={high} choose={(value) => pick({ [name]: value })} />
        ))}
        {isOnAPlane(choice.kind) && (
          <NumberField label={say("learn.columns")} value={choice.columns} low={0} high={64} choose={(columns) => pick({ columns })} />
        )}
        {choice.kind === "edges" && <TextField class="wide" label={say("learn.edges")} value={choice.edges} choose={(edges) => pick({ edges })} />}
        <Pick label={say("learn.also")} value={choice.also} options={ALSO.map((name) => [name, say(name ? `learn.neighbours.${name}` : "learn.nothing")])} choose={(also) => pick({ also })} />
        {choice.also === "window" && (
          <NumberField label={say("learn.number.reach")} value={choice.also_reach} low={0} high={64} choose={(also_reach) => pick({ also_reach })} />
        )}
        <p class="note">{say(`learn.about.${choice.kind}`)}</p>
      </fieldset>
      <fieldset>
        <legend>{say("learn.position")}</legend>
        <Pick label={say("learn.kind")} value={choice.position} options={named(POSITIONS, "position")} choose={(position) => pick({ position })} />
        <p class="note">{say(`learn.about.${choice.position}`)}</p>
      </fieldset>
      <fieldset>
        <legend>{say("learn.heads")}</legend>
        <Pick label={say("learn.kind")} value={choice.heads} options={named(HEADS, "heads")} choose={(heads) => pick({ heads })} />
        <Pick label={say("learn.numHeads")} value={String(choice.num_heads)} options={["1", "2", "4", "8"].map((count) => [count, count])} choose={(count) => pick({ num_heads: Number(count), head: 1 })} />
        <Pick label={say("learn.dim")} value={String(choice.dim)} options={["8", "16", "32", "64", "128"].map((dim) => [dim, dim])} choose={(dim) => pick({ dim: Number(dim) })} />
        <p class="note">{say(`learn.about.${choice.heads}`)}</p>
      </fieldset>
    </div>
  );
}
