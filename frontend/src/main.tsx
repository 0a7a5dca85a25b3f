import { render } from "preact";
import { Studio } from "./studio";
import "./style.css";

render(<Studio />, document.getElementById("app")!);
