// A button that copies a text, and says so. Where the browser does not allow it, the text is shown to be copied by hand.
import { useEffect, useState } from "preact/hooks";
import { say } from "../words";
import "./controls"; // brings the words

export function Copy({ text, label }: { text: () => string; label: string }) {
  const [state, setState] = useState<"" | "copied" | "failed">("");
  useEffect(() => {
    if (state !== "copied") return;
    const timer = setTimeout(() => setState(""), 2500);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setState("copied");
    } catch {
      setState("failed");
    }
  };
  return (
    <span class="choice">
      <button type="button" onClick={copy}>
        {label}
      </button>
      <span role="status" class="note">
        {state === "copied" && say("parts.copied")}
      </span>
      {state === "failed" && <input readOnly aria-label={label} value={text()} onFocus={(event) => event.currentTarget.select()} />}
    </span>
  );
}
