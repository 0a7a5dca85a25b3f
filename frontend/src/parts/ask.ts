// Asks the server, and forgets the answer when another question has come meanwhile.
import { useEffect, useRef, useState } from "preact/hooks";

export interface Answer<T> {
  value: T | null;
  error: string | null;
  isAsking: boolean;
}

export const sentence = (error: unknown): string => (error instanceof Error ? error.message : String(error));

// Asks again when `key` changes; null asks nothing. The last answer stays until the next one is there, unless
// `isFresh`: then nothing old is shown.
export function useAnswer<T>(
  key: string | null,
  ask: (signal: AbortSignal) => Promise<T>,
  { isFresh = false } = {},
): Answer<T> & { again: () => void } {
  const [answer, setAnswer] = useState<Answer<T> & { key: string | null }>({ value: null, error: null, isAsking: false, key: null });
  const [turn, setTurn] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (key === null) {
      setAnswer({ value: null, error: null, isAsking: false, key });
      return;
    }
    const stopper = new AbortController();
    setAnswer((old) => ({ value: isFresh && old.key !== key ? null : old.value, error: null, isAsking: true, key }));
    latest.current(stopper.signal).then(
      (value) => stopper.signal.aborted || setAnswer({ value, error: null, isAsking: false, key }),
      (error) => stopper.signal.aborted || setAnswer({ value: null, error: sentence(error), isAsking: false, key }),
    );
    return () => stopper.abort();
  }, [key, turn]);
  // Between the change of the key and the effect, an old answer is not the answer.
  const isOld = answer.key !== key;
  return {
    value: isOld && isFresh ? null : answer.value,
    error: isOld ? null : answer.error,
    isAsking: key !== null && (isOld || answer.isAsking),
    again: () => setTurn((count) => count + 1),
  };
}
