import type { PageProps } from "../studio";
import { say } from "../words";

export function Runs(_: PageProps) {
  return <h1>{say("shell.runs")}</h1>;
}
