// The translation, and which word of the source each of its words looked at.
import { useMemo, useState } from "preact/hooks";
import { floats, type Reading } from "../api";
import { fileName, saveCsv } from "../parts/files";
import { Matrix, matrixScale } from "../parts/matrix";
import { Ramp } from "../parts/ramp";
import { Saving } from "../parts/saving";
import { isDark } from "../theme";
import { number, say } from "../words";

// Names of the rows: what was written at each place. The tokens begin with the start of the sentence, the last row is its end.
export function writtenTokens(tokens: string[], count: number): string[] {
  return Array.from({ length: count }, (_, n) => tokens[n + 1] ?? (n === count - 1 ? say("read.end") : String(n + 1)));
}

export function Translation({ reading }: { reading: Reading }) {
  const translation = reading.translation!;
  const [chosen, setChosen] = useState(0);
  const values = useMemo(() => (translation.alignment ? floats(translation.alignment) : null), [translation]);
  const dark = isDark.value;
  const scale = useMemo(() => values && matrixScale(values, dark), [values, dark]);
  const source = reading.source ?? [];
  const count = values && source.length ? values.length / source.length : 0;
  const labels: [string[], string[]] = [writtenTokens(reading.tokens, Number.isInteger(count) ? count : 0), source];
  return (
    <section class="card" aria-labelledby="read-translation">
      <h2 id="read-translation">{say("read.translation")}</h2>
      <p class="translated">{translation.text}</p>
      <p class="note">{say("read.score", { score: number(translation.score) })}</p>
      {values && scale && labels[0].length > 0 && (
        <>
          <h3>{say("read.alignment")}</h3>
          <Matrix values={values} labels={labels} scale={scale} chosen={{ row: Math.min(chosen, count - 1), column: null }} pick={setChosen} what={say("read.alignment")} />
          <Ramp scale={scale} unit={say("read.unit.matrix")} />
          <Saving
            csv={() =>
              saveCsv(fileName(reading.run, "alignment"), [["", ...source], ...labels[0].map((label, n) => [label, ...values.subarray(n * source.length, (n + 1) * source.length)])])
            }
          />
        </>
      )}
    </section>
  );
}
