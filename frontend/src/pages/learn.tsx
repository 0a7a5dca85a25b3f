// The attention core to play with: choose its four parts, and see who may look at whom, who does, and what it costs.
import { useEffect, useMemo, useState } from "preact/hooks";
import { api, floats } from "../api";
import { useAnswer } from "../parts/ask";
import { Choice, Wait } from "../parts/controls";
import { number, say, teach } from "../words";
import { learn } from "../words/learn";
import { learnParts } from "../words/learn_parts";
import type { PageProps } from "../studio";
import { exact, reasonIn, type Cost, type Lesson } from "./learn_answers";
import { Chart } from "./learn_chart";
import { chosenOf, costQuery, mechanismOf, pick, type LearnChoice } from "./learn_choice";
import { Parts, Tokens } from "./learn_controls";
import { Demos } from "./learn_demos";
import { Equation } from "./learn_equation";
import { MaskGraph, MaskMatrix } from "./learn_mask";
import { Weights } from "./learn_weights";
import "./learn.css";

teach(learn);
teach(learnParts);

const PAUSE = 150; // milliseconds: who types is not asked about at each letter

function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), PAUSE);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

export function Learn({ chosen }: PageProps) {
  const choice = chosenOf(chosen);
  const asked = useSettled(JSON.stringify(mechanismOf(choice)));
  const lesson = useAnswer(asked, () => api.learn<Lesson>("attend", JSON.parse(asked)));
  return (
    <div class="learn">
      <h1>{say("learn.title")}</h1>
      <p>{say("learn.intro")}</p>
      <section class="card" aria-labelledby="learn-parts">
        <h2 id="learn-parts">{say("learn.parts")}</h2>
        <Tokens choice={choice} />
        <Parts choice={choice} />
        <Equation choice={choice} />
      </section>
      <Wait {...lesson} isAsking={lesson.isAsking && !lesson.value} />
      {lesson.value && <Shown lesson={lesson.value} choice={choice} />}
      <Demos chosen={chosen} />
    </div>
  );
}

function Shown({ lesson, choice }: { lesson: Lesson; choice: LearnChoice }) {
  const mask = useMemo(() => floats(lesson.mask), [lesson.mask]);
  const weights = useMemo(() => floats(lesson.weights), [lesson.weights]);
  const count = lesson.tokens.length;
  const row = Math.min(Math.max(0, Math.floor(choice.row)), count - 1);
  const choose = (index: number) => pick({ row: index });
  const shared = { mask, tokens: lesson.tokens, size: lesson.size, row, pick: choose };
  return (
    <>
      <section class="card" aria-labelledby="learn-mask">
        <h2 id="learn-mask">{say("learn.mask")}</h2>
        <p>{say("learn.mask.about", { pairs: lesson.num_pairs, all: count ** 2, share: number((100 * lesson.num_pairs) / count ** 2) })}</p>
        <div class="side-by-side">
          <MaskMatrix {...shared} />
          <MaskGraph {...shared} />
        </div>
      </section>
      <section class="card" aria-labelledby="learn-weights">
        <h2 id="learn-weights">{say("learn.weights")}</h2>
        <p class="warning">{say("learn.untrained")}</p>
        {choice.heads === "re-attention" && <p class="note">{say("learn.weights.mixed")}</p>}
        <Weights mask={mask} weights={weights} tokens={lesson.tokens} numHeads={lesson.num_heads} head={choice.head} row={row} />
      </section>
      <div class="side-by-side">
        <Kernels lesson={lesson} />
        <Costs choice={choice} count={count} lesson={lesson} />
      </div>
    </>
  );
}

function Kernels({ lesson }: { lesson: Lesson }) {
  return (
    <section class="card" aria-labelledby="learn-kernel">
      <h2 id="learn-kernel">{say("learn.kernel", { kernel: lesson.kernel })}</h2>
      <p>{say("learn.kernel.about")}</p>
      <table>
        <tbody>
          {lesson.kernels.map(({ name, reason }) => (
            <tr key={name} class={reason === null ? "taken" : undefined}>
              <th scope="row">{name}</th>
              <td>{reason === null ? say("learn.kernel.taken") : reasonIn(reason)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Costs({ choice, count, lesson }: { choice: LearnChoice; count: number; lesson: Lesson }) {
  const query = useSettled(costQuery(choice, count));
  const cost = useAnswer(query, () => api.learn<Cost>(`cost?${query}`));
  const asked = useSettled(JSON.stringify(mechanismOf(choice)));
  const counted = useAnswer(asked, () => api.learn<{ flops: number }>("count", JSON.parse(asked)), { isFresh: true });
  const what = choice.cost === "flops" ? "flops" : "pairs";
  return (
    <section class="card" aria-labelledby="learn-cost">
      <h2 id="learn-cost">{say("learn.cost")}</h2>
      <p>{say("learn.cost.about", { formula: exact(lesson.flops_formula), full: exact(lesson.flops_full) })}</p>
      <p>{say("learn.cost.counted", { counted: counted.value ? exact(counted.value.flops) : "…" })}</p>
      <Choice label={say("learn.cost.of")} value={what} options={[["pairs", say("learn.cost.pairs")], ["flops", say("learn.cost.flops")]]} choose={(chosen) => pick({ cost: chosen })} />
      <Wait {...cost} isAsking={cost.isAsking && !cost.value} />
      {cost.value && (
        <Chart
          title={say(`learn.cost.${what}`)}
          across={say("learn.cost.tokens")}
          x={cost.value.lengths}
          series={[
            { label: say("learn.cost.chosen"), y: cost.value[what] },
            { label: say("learn.cost.full"), y: cost.value[`${what}_full`] },
          ]}
          logX
          logY
          marker={count}
          markerSaid={say("learn.cost.here", { count })}
        />
      )}
      {choice.kind === "edges" && <p class="note">{say("learn.cost.edges")}</p>}
    </section>
  );
}
