// Drop an image into one's own model, click a patch, see where it looks.
import { useState } from "preact/hooks";
import { go } from "../address";
import { api, type Look as Seen, type RunSummary } from "../api";
import { useAnswer } from "../parts/ask";
import { Pick, Wait } from "../parts/controls";
import type { PageProps } from "../studio";
import { say, teach } from "../words";
import { look as words } from "../words/look";
import { Answer } from "./look_answer";
import { asFile, lookToo, useMaps } from "./look_ask";
import { Attention } from "./look_attention";
import { changeLook, lookChoice, type LookChoice } from "./look_choice";
import { Input } from "./look_input";
import { Relevance } from "./look_relevance";
import "./look.css";

teach(words);

export interface Opened {
  run: string;
  look: Seen;
}

export function Look({ path, chosen }: PageProps) {
  const [run] = path;
  const runs = useAnswer("runs", () => api.runs());
  const open = (runs.value?.runs ?? []).filter((other) => other.pages.includes("look"));
  return (
    <>
      <h1>{say("look.title")}</h1>
      <Wait isAsking={runs.isAsking && !runs.value} error={runs.error} again={runs.again} />
      {runs.value && !open.length && <p class="warning">{say("look.none")}</p>}
      {open.length > 0 && (
        <div class="controls">
          <Pick
            label={say("look.run")}
            value={run ?? ""}
            options={[...(run ? [] : [["", say("look.choose")] as [string, string]]), ...options(open, run)]}
            choose={(name) => name && go(["look", name])}
          />
        </div>
      )}
      {run ? <OneRun key={run} run={run} others={open.filter((other) => other.name !== run)} choice={lookChoice(chosen)} /> : <p>{say("look.start")}</p>}
    </>
  );
}

function options(open: RunSummary[], run: string | undefined): [string, string][] {
  const found = open.map(({ name, system, size, source }): [string, string] => [name, `${name} · ${size ? `${system}:${size}` : system} · ${source}`]);
  return run && !open.some(({ name }) => name === run) ? [[run, run], ...found] : found;
}

function OneRun({ run, others, choice }: { run: string; others: RunSummary[]; choice: LookChoice }) {
  const [own, setOwn] = useState<{ file: File; number: number } | null>(null);
  const isOwn = choice.image === "own";
  const isLost = isOwn && !own; // a link to an image that never left somebody's computer
  const what = isOwn ? own?.file : choice.held;
  const image = isOwn ? `own ${own?.number}` : choice.held;
  const asked = useAnswer(
    what === undefined ? null : JSON.stringify([run, image, choice.target]),
    (signal) => api.look(run, what!, { target: choice.target || undefined }, signal),
  );
  const first = what === undefined ? null : asked.value;
  const isSecond = choice.second !== "" && choice.second !== run;
  const second = useAnswer(
    isSecond && first && !asked.isAsking ? JSON.stringify([choice.second, run, image, first.target]) : null,
    async (signal) => lookToo(choice.second, isOwn ? own!.file : await asFile(run, choice.held, signal), first!.target, signal),
    { isFresh: true },
  );
  const maps = useMaps(first, choice);
  const secondMaps = useMaps(second.value, choice);
  const take = (file: File) => {
    setOwn((before) => ({ file, number: (before?.number ?? 0) + 1 }));
    changeLook({ image: "own", held: 0, target: "", at: "", step: -1 });
  };
  return (
    <>
      <Input run={run} choice={choice} own={isOwn ? (own?.file.name ?? null) : null} take={take} />
      {isLost && <p class="warning">{say("look.lost")}</p>}
      <Wait isAsking={asked.isAsking} error={asked.error} again={asked.again} what={say("look.asking")} />
      {first && !asked.error && (
        <div aria-busy={asked.isAsking} class={asked.isAsking ? "old" : undefined}>
          <Answer look={first} second={second.value} choice={choice} others={others} isOwn={isOwn} />
          {isSecond && <Wait isAsking={second.isAsking} error={second.error} again={second.again} what={say("look.asking.second", { run: choice.second })} />}
          <Attention first={{ run, look: first }} second={second.value && { run: choice.second, look: second.value }} choice={choice} again={asked.again} />
          <Relevance
            again={asked.again}
            first={{ run, look: first }}
            second={second.value && { run: choice.second, look: second.value }}
            maps={maps}
            secondMaps={secondMaps}
            choice={choice}
          />
        </div>
      )}
    </>
  );
}
