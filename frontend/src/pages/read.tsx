// Type a sentence, and see what the model reads in it: relevance, attention, translation, and what comes next.
import { useEffect, useState } from "preact/hooks";
import { go, permalink } from "../address";
import { api, type Reading, type RunSummary } from "../api";
import { useAnswer } from "../parts/ask";
import { Answers, Pick, Wait } from "../parts/controls";
import { Copy } from "../parts/copy";
import type { PageProps } from "../studio";
import { say, teach } from "../words";
import { look } from "../words/look";
import { read as words } from "../words/read";
import { ReadAttention } from "./read_attention";
import { changeRead, readChoice, type ReadChoice } from "./read_choice";
import { NextSteps } from "./read_next";
import { TokenRelevance } from "./read_relevance";
import { Translation } from "./read_translation";
import "./look.css";
import "./read.css";

teach(look); // names of methods
teach(words);

export function Read({ path, chosen }: PageProps) {
  const [run] = path;
  const runs = useAnswer("runs", () => api.runs());
  const open = (runs.value?.runs ?? []).filter((other) => other.pages.includes("read"));
  const known = open.find(({ name }) => name === run);
  return (
    <>
      <h1>{say("read.title")}</h1>
      <Wait isAsking={runs.isAsking && !runs.value} error={runs.error} again={runs.again} />
      {runs.value && !open.length && <p class="warning">{say("read.none")}</p>}
      {open.length > 0 && (
        <div class="controls">
          <Pick
            label={say("look.run")}
            value={run ?? ""}
            options={[...(known ? [] : [[run ?? "", run ?? say("look.choose")] as [string, string]]), ...open.map(named)]}
            choose={(name) => name && go(["read", name], chosen.text ? { text: chosen.text } : {})}
          />
        </div>
      )}
      {run ? <OneRun key={run} run={run} task={known?.task ?? null} choice={readChoice(chosen)} /> : <p>{say("read.start")}</p>}
    </>
  );
}

const WORD = /^[\p{L}\p{N}]+$/u; // other tokens are shown by signs that the model does not know

const named = ({ name, system, task }: RunSummary): [string, string] => [name, `${name} · ${system} · ${task}`];

function OneRun({ run, task, choice }: { run: string; task: string | null; choice: ReadChoice }) {
  const asked = useAnswer(choice.text ? JSON.stringify([run, choice.text, choice.at, choice.target]) : null, (signal) =>
    api.read(run, { text: choice.text, at: choice.at < 0 ? undefined : choice.at, target: choice.target || undefined }, signal),
  );
  const reading = choice.text ? asked.value : null;
  const does = reading?.task ?? task;
  const hasNext = does === "generate" || does === "translate" || does === "fill";
  return (
    <>
      <Sentence run={run} task={does} choice={choice} />
      <Wait isAsking={asked.isAsking} error={asked.error} again={asked.again} what={say("read.asking")} />
      {reading && !asked.error && (
        <div aria-busy={asked.isAsking} class={asked.isAsking ? "old" : undefined}>
          {reading.translation && <Translation reading={reading} />}
          <Told reading={reading} />
          {reading.maps.length > 0 && <TokenRelevance reading={reading} choice={choice} />}
          {reading.layers.length > 0 && <ReadAttention reading={reading} choice={choice} />}
        </div>
      )}
      {hasNext && choice.text && <NextSteps run={run} task={does} choice={choice} />}
    </>
  );
}

function Sentence({ run, task, choice }: { run: string; task: string | null; choice: ReadChoice }) {
  const [text, setText] = useState(choice.text);
  useEffect(() => setText(choice.text), [choice.text, run]);
  const submit = (event?: Event) => {
    event?.preventDefault();
    changeRead({ text: text.trim() === "" ? "" : text, at: -1, target: "", token: -1, written: "", edges: 0 });
  };
  const key = task === "fill" || task === "translate" || task === "generate" ? task : "classify";
  return (
    <form class="card" onSubmit={submit}>
      <label class="sentence">
        <span>{say(`read.sentence.${key}`)}</span>
        <textarea
          rows={3}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit(event);
          }}
        />
      </label>
      <div class="controls">
        <button type="submit" class="main" disabled={text.trim() === ""}>
          {say("read.read")}
        </button>
        <span class="note">{say("read.keys")}</span>
      </div>
    </form>
  );
}

function Told({ reading }: { reading: Reading }) {
  return (
    <section class="card" aria-labelledby="read-answer">
      <h2 id="read-answer">{say(reading.task === "fill" ? "read.answer.fill" : reading.answers.length ? "read.answer" : "read.explained")}</h2>
      {reading.answers.length > 0 ? (
        <Answers
          answers={reading.answers}
          target={reading.target}
          caption={say(reading.task === "single-label" ? "look.answers" : "read.answers.token")}
          explain={(target) => changeRead({ target })}
          canExplain={(name) => reading.task === "single-label" || WORD.test(name)}
        />
      ) : (
        <p>{reading.target}</p>
      )}
      {reading.notes.map((note) => (
        <p key={note} class="note">
          {note}
        </p>
      ))}
      <div class="controls">
        <Copy text={permalink} label={say("look.link")} />
      </div>
      <details>
        <summary>{say("look.command")}</summary>
        <pre>{reading.command}</pre>
        <Copy text={() => reading.command} label={say("look.command.copy")} />
      </details>
    </section>
  );
}
