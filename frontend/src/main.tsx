import "./style.css"; // before the styles of the pages, which may change it
import { render } from "preact";
import { Studio } from "./studio";

render(<Studio />, document.getElementById("app")!);
