// Which image: one's own, or one of the held-out set.
import { useEffect, useState } from "preact/hooks";
import { api, type HeldOut } from "../api";
import { useAnswer } from "../parts/ask";
import { Choice, Wait } from "../parts/controls";
import { Drop } from "../parts/drop";
import { say } from "../words";
import { changeLook, type LookChoice } from "./look_choice";

const PAGE = 12;
const SEARCHED = 120; // held-out images that are looked through for right or wrong answers

export function Input({ run, choice, own, take }: { run: string; choice: LookChoice; own: string | null; take: (file: File) => void }) {
  const [start, count] = choice.only ? [0, SEARCHED] : [choice.start, PAGE];
  const { value, error, isAsking, again } = useAnswer(JSON.stringify([run, start, count]), (signal) => api.heldOut(run, start, count, signal));
  const all = (value?.items ?? []).filter((item) => !choice.only || item.is_right === (choice.only === "right"));
  const items = choice.only ? all.slice(choice.start, choice.start + PAGE) : all;
  const total = choice.only ? all.length : (value?.total ?? 0);
  const last = Math.min(choice.start + PAGE, total);
  return (
    <section class="card input" aria-labelledby="look-input">
      <div>
        <h2 id="look-input">{say("look.input")}</h2>
        <Drop take={take} />
        {own !== null && <p class="note">{say("look.own", { name: own })}</p>}
      </div>
      <div>
        <h3>{say("look.held")}</h3>
        <div class="controls">
          <Choice
            label={say("look.only")}
            options={[
              ["", say("look.only.all")],
              ["right", say("look.only.right")],
              ["wrong", say("look.only.wrong")],
            ]}
            value={choice.only}
            choose={(only) => changeLook({ only, start: 0 })}
          />
          <span class="choice">
            <button type="button" disabled={choice.start === 0} onClick={() => changeLook({ start: Math.max(0, choice.start - PAGE) })}>
              ← {say("look.back")}
            </button>
            <span class="note">{total ? say("look.page", { first: choice.start + 1, last, total }) : ""}</span>
            <button type="button" disabled={last >= total} onClick={() => changeLook({ start: choice.start + PAGE })}>
              {say("look.on")} →
            </button>
          </span>
        </div>
        <Wait isAsking={isAsking && !value} error={error} again={again} />
        {value && !items.length && <p class="note">{say(choice.only ? "look.noneSuch" : "look.noHeld")}</p>}
        <div class={isAsking ? "thumbs old" : "thumbs"} role="group" aria-label={say("look.held")}>
          {items.map((item) => (
            <Thumb key={item.index} run={run} item={item} isChosen={own === null && choice.image === "" && item.index === choice.held} />
          ))}
        </div>
        {choice.only !== "" && (value?.total ?? 0) > SEARCHED && <p class="note">{say("look.searched", { count: SEARCHED, total: value!.total })}</p>}
      </div>
    </section>
  );
}

function Thumb({ run, item, isChosen }: { run: string; item: HeldOut; isChosen: boolean }) {
  const pick = () => changeLook({ held: item.index, image: "", target: "", at: "", step: -1 });
  const verdict = item.is_right === null ? "" : item.is_right ? "right" : "wrong";
  const words = item.answer === null ? (item.truth ?? item.name) : item.is_right === false ? `${item.answer} ≠ ${item.truth}` : item.answer;
  return (
    <button type="button" class="thumb" aria-pressed={isChosen} title={item.name} onClick={pick}>
      <Small address={api.heldOutPicture(run, item.index)} />
      <span class={verdict}>
        {verdict && <span aria-hidden="true">{item.is_right ? "✓ " : "✗ "}</span>}
        {words}
      </span>
      {verdict && <span class="unseen">{say(`look.is.${verdict}`)}</span>}
    </button>
  );
}

// Pictures of few pixels are shown with square ones.
function Small({ address }: { address: string }) {
  const [isTiny, setIsTiny] = useState(false);
  useEffect(() => setIsTiny(false), [address]);
  return <img src={address} alt="" loading="lazy" class={isTiny ? "pixelated" : undefined} onLoad={(event) => setIsTiny(event.currentTarget.naturalWidth <= 64)} />;
}
