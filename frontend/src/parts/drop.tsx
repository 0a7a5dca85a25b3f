// A place to drop, paste or choose an image of one's own.
import { useEffect, useRef, useState } from "preact/hooks";
import { say } from "../words";
import "./controls"; // brings the words

const firstImage = (files: FileList | null | undefined): File | null =>
  Array.from(files ?? []).find((file) => file.type.startsWith("image/") || /\.(tiff?|png|jpe?g|webp|bmp)$/i.test(file.name)) ?? null;

export function Drop({ take }: { take: (file: File) => void }) {
  const input = useRef<HTMLInputElement>(null);
  const [isOver, setIsOver] = useState(false);
  const [wasNone, setWasNone] = useState(false);
  const latest = useRef(take);
  latest.current = take;
  const given = (files: FileList | null | undefined) => {
    if (!files?.length) return;
    const file = firstImage(files);
    setWasNone(!file);
    if (file) latest.current(file);
  };
  useEffect(() => {
    const paste = (event: ClipboardEvent) => {
      if (event.clipboardData?.files.length) given(event.clipboardData.files);
    };
    addEventListener("paste", paste);
    return () => removeEventListener("paste", paste);
  }, []);
  return (
    <div
      class={isOver ? "drop over" : "drop"}
      onDragOver={(event) => (event.preventDefault(), setIsOver(true))}
      onDragLeave={() => setIsOver(false)}
      onDrop={(event) => (event.preventDefault(), setIsOver(false), given(event.dataTransfer?.files))}
    >
      <p>{say("parts.drop")}</p>
      <button type="button" class="main" onClick={() => input.current?.click()}>
        {say("parts.file")}
      </button>
      <input
        ref={input}
        type="file"
        accept="image/*,.tif,.tiff"
        class="unseen"
        aria-label={say("parts.file")}
        tabIndex={-1}
        onChange={(event) => {
          given(event.currentTarget.files);
          event.currentTarget.value = ""; // the same file may be chosen again
        }}
      />
      {wasNone && <p role="alert">{say("parts.noImage")}</p>}
    </div>
  );
}
