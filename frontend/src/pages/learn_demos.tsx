// The lectures' examples and errata: cards, of which one is open and computes.
import { choose } from "../address";
import { api } from "../api";
import { useAnswer } from "../parts/ask";
import { Pick, Wait } from "../parts/controls";
import { say } from "../words";
import { exact, said, type Demo, type DemoAnswer, type DemoInput } from "./learn_answers";
import { inputsOf, openDemo } from "./learn_choice";
import { NumberField } from "./learn_controls";
import { Formula } from "./learn_equation";
import { DemoPicture } from "./learn_pictures";

export function Demos({ chosen }: { chosen: Record<string, string> }) {
  const demos = useAnswer("demos", () => api.learn<Demo[]>("demos"));
  return (
    <section aria-labelledby="learn-demos">
      <h2 id="learn-demos">{say("learn.demos")}</h2>
      <p>{say("learn.demos.about")}</p>
      <Wait {...demos} />
      <ul class="demos">
        {(demos.value ?? []).map((demo) => (
          <DemoCard key={demo.name} demo={demo} chosen={chosen} />
        ))}
      </ul>
    </section>
  );
}

export function DemoCard({ demo, chosen }: { demo: Demo; chosen: Record<string, string> }) {
  const isOpen = chosen.demo === demo.name;
  return (
    <li class={isOpen ? "card demo open" : "card demo"}>
      <h3>
        <button type="button" class="plain" aria-expanded={isOpen} aria-controls={`demo-${demo.name}`} onClick={() => openDemo(isOpen ? "" : demo.name, chosen)}>
          <Formula text={said(demo.title)} />
        </button>
      </h3>
      <p class="items">
        {demo.items.map((item) => (
          <span key={item}>{item}</span>
        ))}
      </p>
      <p class="given">
        <span class="name">{say("learn.given")}</span> <q lang="es">
          <Formula text={demo.given} />
        </q>
      </p>
      <div id={`demo-${demo.name}`} hidden={!isOpen}>
        {isOpen && <OpenDemo demo={demo} inputs={inputsOf(chosen)} />}
      </div>
    </li>
  );
}

// Only what differs from the lecture's own numbers is in the address.
export function valuesOf(inputs: DemoInput[], given: Record<string, string>): Record<string, number | string> {
  return Object.fromEntries(
    inputs.map(({ name, value, choices }) => {
      if (given[name] === undefined) return [name, value];
      return [name, choices.length ? given[name] : Number(given[name])];
    }),
  );
}

function OpenDemo({ demo, inputs }: { demo: Demo; inputs: Record<string, string> }) {
  const values = valuesOf(demo.inputs, inputs);
  const key = JSON.stringify([demo.name, values]);
  const answer = useAnswer(key, () => api.learn<DemoAnswer>(`demos/${encodeURIComponent(demo.name)}`, values));
  const set = (input: DemoInput, value: number | string) => choose({ [`in.${input.name}`]: value === input.value ? undefined : value });
  return (
    <>
      <p>
        <strong>{say("learn.right")}</strong> <Formula text={said(demo.right)} />
      </p>
      <div class="controls">
        {demo.inputs.map((input) =>
          input.choices.length ? (
            <Pick key={input.name} label={said(input.label)} value={String(values[input.name])} options={input.choices.map((name) => [name, say(`learn.position.${name}`)])} choose={(value) => set(input, value)} />
          ) : (
            <NumberField key={input.name} label={said(input.label)} value={Number(values[input.name])} low={input.low} high={input.high} step={input.step} choose={(value) => set(input, value)} />
          ),
        )}
      </div>
      <Wait {...answer} isAsking={answer.isAsking && !answer.value} />
      {answer.value && <Shown demo={demo} answer={answer.value} />}
    </>
  );
}

function Shown({ demo, answer }: { demo: Demo; answer: DemoAnswer }) {
  return (
    <>
      <table class="numbers">
        <caption>{say("learn.numbers")}</caption>
        <tbody>
          {answer.numbers.map(({ label, value, mark }) => (
            <tr key={label.en} class={mark}>
              <th scope="row">
                <Formula text={said(label)} />
              </th>
              <td class="number">{exact(value)}</td>
              <td class="mark">{mark && say(`learn.mark.${mark}`)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div class="pictures">
        {answer.pictures.map((picture) => (
          <DemoPicture key={picture.title.en} picture={picture} />
        ))}
      </div>
      <p class="verdict">
        <strong>{say("learn.see")}</strong> <Formula text={said(demo.see)} />
      </p>
    </>
  );
}
