import type { PageProps } from "../studio";
import { say } from "../words";

export function Look(_: PageProps) {
  return <h1>{say("shell.look")}</h1>;
}
