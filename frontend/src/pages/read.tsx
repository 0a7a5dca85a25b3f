import type { PageProps } from "../studio";
import { say } from "../words";

export function Read(_: PageProps) {
  return <h1>{say("shell.read")}</h1>;
}
