// Asks the server again and again: often while something trains, seldom otherwise, never while nobody looks.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

const OFTEN = 2_000;
const SELDOM = 15_000;

export interface Polled<T> {
  answer: T | null; // the last one, also after an error
  error: unknown; // of the last question
  again: () => void;
}

export function usePolled<T>(ask: () => Promise<T>, key: string, isLive: (answer: T) => boolean): Polled<T> {
  const [state, setState] = useState<{ key: string; answer: T | null; error: unknown }>({ key, answer: null, error: null });
  const latest = useRef({ ask, isLive });
  latest.current = { ask, isLive };
  const wake = useRef(() => {});

  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;
    let question = 0; // only the answer to the last question counts
    const now = async () => {
      clearTimeout(timer);
      if (document.hidden) return;
      const mine = ++question;
      let pause = SELDOM;
      try {
        const answer = await latest.current.ask();
        if (isOver || mine !== question) return;
        if (latest.current.isLive(answer)) pause = OFTEN;
        setState({ key, answer, error: null });
      } catch (error) {
        if (isOver || mine !== question) return;
        setState((before) => ({ key, answer: before.key === key ? before.answer : null, error }));
      }
      timer = setTimeout(now, pause);
    };
    wake.current = () => void now();
    document.addEventListener("visibilitychange", wake.current);
    const heard = wake.current;
    void now();
    return () => {
      isOver = true;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", heard);
    };
  }, [key]);

  const again = useCallback(() => wake.current(), []);
  return state.key === key ? { answer: state.answer, error: state.error, again } : { answer: null, error: null, again };
}
