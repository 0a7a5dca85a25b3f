// What the model says of the image, which class is explained, and how heat is drawn.
import { permalink } from "../address";
import type { Look, RunSummary } from "../api";
import { Answers, Choice, Pick, Slider } from "../parts/controls";
import { Copy } from "../parts/copy";
import { say } from "../words";
import { changeLook, type LookChoice } from "./look_choice";

interface Props {
  look: Look;
  second: Look | null;
  choice: LookChoice;
  others: RunSummary[];
  isOwn: boolean;
}

export function Answer({ look, second, choice, others, isOwn }: Props) {
  const isTiny = Math.max(...look.size) <= 64;
  const explain = (target: string) => changeLook({ target, step: -1 });
  const seconds = others.map(({ name, system }): [string, string] => [name, `${name} · ${system}`]);
  if (choice.second && !others.some(({ name }) => name === choice.second)) seconds.unshift([choice.second, choice.second]);
  return (
    <section class="card" aria-labelledby="look-answer">
      <h2 id="look-answer">{look.name}</h2>
      <div class={second ? "answer two" : "answer"}>
        <figure class="input-picture">
          <img src={look.picture} alt={say("look.picture", { name: look.name })} class={isTiny ? "pixelated" : undefined} />
        </figure>
        <Answers answers={look.answers} target={look.target} caption={second ? say("look.answers.of", { run: look.run }) : say("look.answers")} explain={explain} />
        {second && <Answers answers={second.answers} target={second.target} caption={say("look.answers.of", { run: second.run })} />}
      </div>
      <div class="controls">
        {look.classes.length > 0 && (
          <Pick label={say("look.target")} value={look.target} options={look.classes.map((name) => [name, name])} choose={explain} />
        )}
        {seconds.length > 0 && (
          <Pick
            label={say("look.second")}
            value={choice.second}
            options={[["", say("look.second.none")], ...seconds]}
            choose={(name) => changeLook({ second: name })}
          />
        )}
        <Slider label={say("look.opacity")} low={0} high={100} value={choice.opacity} said={`${choice.opacity} %`} choose={(opacity) => changeLook({ opacity })} />
        <Choice
          label={say("look.cells")}
          options={[
            [0, say("look.cells.square")],
            [1, say("look.cells.smooth")],
          ]}
          value={Number(choice.smooth)}
          choose={(value) => changeLook({ smooth: value === 1 })}
        />
      </div>
      {choice.smooth && <p class="note">{say("look.smooth")}</p>}
      {look.notes.map((note) => (
        <p key={note} class="note">
          {note}
        </p>
      ))}
      <div class="controls">
        <Copy text={permalink} label={say("look.link")} />
        {isOwn && <span class="note">{say("look.link.own")}</span>}
      </div>
      <details>
        <summary>{say("look.command")}</summary>
        <pre>{look.command}</pre>
        <Copy text={() => look.command} label={say("look.command.copy")} />
      </details>
    </section>
  );
}
