import type { PageProps } from "../studio";
import { say } from "../words";

export function MapPage(_: PageProps) {
  return <h1>{say("shell.map")}</h1>;
}
