// What comes next, step by step: choose one of the likely tokens and go on.
import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { useAnswer } from "../parts/ask";
import { percent, Wait } from "../parts/controls";
import { visible } from "../parts/tokens";
import { say } from "../words";
import { changeRead, type ReadChoice } from "./read_choice";

const SHOWN = 10;
const BLANK = /\[MASK\]|_{3,}|<mask>/; // as Python has it

// A translation grows beside its source; a text that is continued or filled in is itself what grows.
export function question(task: string, text: string, written: string): { text: string; written?: string } {
  if (task === "translate") return { text, written: written || undefined };
  return { text: written || text };
}

export function NextSteps({ run, task, choice }: { run: string; task: string; choice: ReadChoice }) {
  const [before, setBefore] = useState<string[]>([]); // what had been written at each step
  useEffect(() => setBefore([]), [run, choice.text]);
  const asked = question(task, choice.text, choice.written);
  const isFull = task === "fill" && !BLANK.test(asked.text);
  const { value, error, isAsking, again } = useAnswer(isFull ? null : JSON.stringify([run, asked]), (signal) =>
    api.next(run, { ...asked, count: SHOWN }, signal),
  );
  const soFar = task === "translate" ? choice.written : asked.text;
  const take = (written: string) => {
    setBefore([...before, choice.written]);
    changeRead({ written });
  };
  const back = () => {
    changeRead({ written: before[before.length - 1] ?? "" });
    setBefore(before.slice(0, -1));
  };
  const most = value?.top.reduce((best, { probability }) => Math.max(best, probability), 0) || 1;
  return (
    <section class="card" aria-labelledby="read-next">
      <h2 id="read-next">{say("read.next")}</h2>
      <p class="note">{say(`read.next.${task}`)}</p>
      {choice.written && <p class="translated">{choice.written}</p>}
      <div class="controls">
        <button type="button" disabled={!choice.written} onClick={back}>
          ← {say("read.next.back")}
        </button>
        <button type="button" disabled={!choice.written} onClick={() => (setBefore([]), changeRead({ written: "" }))}>
          {say("read.next.start")}
        </button>
      </div>
      <Wait isAsking={isAsking && !value} error={error} again={again} />
      {isFull && <p class="verdict">{say("read.next.full")}</p>}
      {value?.is_end && <p class="verdict">{say("read.next.end")}</p>}
      {value && !error && (
        <ol class={isAsking ? "next old" : "next"}>
          {value.top.map((item, n) => (
            <li key={n}>
              <button type="button" disabled={isAsking || item.text === soFar} onClick={() => take(item.text)}>
                <span class="word">{visible(item.token)}</span>{" "}
                <span class="share-bar" style={{ "--share": `${(100 * item.probability) / most}%` }}>
                  {percent(item.probability)}
                </span>
              </button>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
