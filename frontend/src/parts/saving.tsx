// What is shown, as files.
import { say } from "../words";
import "./controls"; // brings the words

export function Saving({ png, svg, csv }: { png?: () => void; svg?: () => void; csv?: () => void }) {
  const kinds = { PNG: png, SVG: svg, CSV: csv };
  return (
    <div class="choice" role="group" aria-label={say("parts.save")}>
      <span class="name">{say("parts.save")}</span>
      {Object.entries(kinds).map(
        ([kind, act]) =>
          act && (
            <button key={kind} type="button" onClick={act}>
              {kind}
            </button>
          ),
      )}
    </div>
  );
}
