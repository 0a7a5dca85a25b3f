// What mattered in the text, token by token.
import { useMemo, useState } from "preact/hooks";
import { floats, type Reading } from "../api";
import { onPaper, scaleOf } from "../parts/colours";
import { Choice, Told } from "../parts/controls";
import { fileName, saveCsv } from "../parts/files";
import { Ramp } from "../parts/ramp";
import { Saving } from "../parts/saving";
import { Tokens, visible } from "../parts/tokens";
import { isDark } from "../theme";
import { number, say } from "../words";
import { said } from "./look_methods";
import { changeRead, type ReadChoice } from "./read_choice";

export function TokenRelevance({ reading, choice }: { reading: Reading; choice: ReadChoice }) {
  const [pointed, setPointed] = useState<{ token: string; value: number } | null>(null);
  const map = reading.maps.find((other) => other.method === choice.method) ?? reading.maps[0];
  const values = useMemo(() => floats(map.values), [map]);
  const ofTarget = useMemo(() => (map.of_target === null ? null : floats(map.of_target)), [map]);
  const dark = isDark.value;
  const scale = useMemo(() => onPaper(scaleOf([...values, ...(ofTarget ?? [])]), dark), [values, ofTarget, dark]);
  const tokens = reading.source ?? reading.tokens;
  const point = (of: string[], numbers: Float32Array) => (n: number) => setPointed({ token: visible(of[n]), value: numbers[n] });
  // In a translation a token was written at the place before it; elsewhere one asks what comes at a place.
  const explain = (n: number) => changeRead({ at: reading.source ? Math.max(0, n - 1) : n, target: "" });
  const table = () => [...Array.from(values, (value, n) => [tokens[n], value]), ...(ofTarget ? Array.from(ofTarget, (value, n) => [reading.tokens[n], value]) : [])];
  const canExplain = reading.task !== "single-label";
  return (
    <section class="card" aria-labelledby="read-relevance">
      <h2 id="read-relevance">{say("look.mattered", { target: reading.target })}</h2>
      <Choice label={say("look.method")} options={reading.maps.map((other) => [other.method, said(other).title])} value={map.method} choose={(method) => changeRead({ method })} />
      <p class="is-not">{said(map).is_not}</p>
      <Tokens
        label={say("read.tokens")}
        tokens={tokens}
        values={values}
        scale={scale}
        point={point(tokens, values)}
        pick={canExplain && !reading.source ? explain : undefined}
        chosen={canExplain && !reading.source && choice.at >= 0 ? choice.at : null}
      />
      {reading.source && (
        <>
          <p class="note">{say("read.tokens.target")}</p>
          <Tokens
            label={say("read.tokens.target")}
            tokens={reading.tokens}
            values={ofTarget}
            scale={scale}
            point={ofTarget ? point(reading.tokens, ofTarget) : undefined}
            pick={explain}
            chosen={Math.max(0, choice.at) + 1 < reading.tokens.length ? Math.max(0, choice.at) + 1 : null}
          />
        </>
      )}
      <Ramp scale={scale} unit={say("look.unit.relevance")} />
      <Told>{pointed ? say("read.relevance", { token: pointed.token, value: number(pointed.value) }) : say("read.hint")}</Told>
      {canExplain && <p class="note">{say(`read.explain.${reading.source ? "translate" : reading.task === "fill" ? "fill" : "generate"}`)}</p>}
      <Saving csv={() => saveCsv(fileName(reading.run, map.method), [["token", "relevance"], ...table()])} />
    </section>
  );
}
