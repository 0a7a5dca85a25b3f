// Runs: what has been trained and what trains now, one of them in detail, several compared, and a new one.
import type { PageProps } from "../studio";
import { teach } from "../words";
import { runs } from "../words/runs";
import "./runs.css";
import { RunPage } from "./runs_detail";
import { RunList } from "./runs_list";
import { NewTraining } from "./runs_new";

teach(runs);

export function Runs({ path, chosen }: PageProps) {
  if (path.length > 0) return <RunPage key={path.join("/")} name={path.join("/")} chosen={chosen} />;
  return chosen.new ? <NewTraining chosen={chosen} /> : <RunList chosen={chosen} />;
}
