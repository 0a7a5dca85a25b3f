import type { Progress } from "../api";
import { duration } from "../parts/quantities";
import { number, say } from "../words";

export function ProgressCard({ progress }: { progress: Progress }) {
  const { step, steps, samples_per_second, seconds_left, seconds, epoch, train_loss, learning_rate } = progress;
  const facts: [string, string][] = [
    ["left", duration(seconds_left)],
    ["spent", duration(seconds)],
    ["rate", say("runs.progress.per_second", { rate: number(samples_per_second) })],
    ["epoch", number(epoch)],
    ["loss", number(train_loss)],
    ["learning_rate", number(learning_rate, 2)],
  ];
  return (
    <section class="card progress" aria-label={say("runs.progress")}>
      <div class="progress-head">
        <b>{whatTrains(progress.what)}</b>
        <span>{say("runs.progress.step", { step: number(step, 9), steps: number(steps, 9), share: Math.floor((100 * step) / Math.max(steps, 1)) })}</span>
      </div>
      <progress value={step} max={Math.max(steps, 1)} aria-label={say("runs.progress")} />
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{say(`runs.progress.${name}`)}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const KNOWN = ["model", "baseline", "fold"];

// The server may name more than this page knows: a number of a fold, say.
export function whatTrains(what: string): string {
  const known = KNOWN.find((word) => what.startsWith(word));
  return known ? `${say(`runs.progress.${known}`)}${what.slice(known.length)}` : what;
}
