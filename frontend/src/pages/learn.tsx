import type { PageProps } from "../studio";
import { say } from "../words";

export function Learn(_: PageProps) {
  return <h1>{say("shell.learn")}</h1>;
}
