// A page that fails says so in a sentence, and the frame around it stays.
import { Component, type ComponentChildren } from "preact";
import { Refused } from "../api";
import { say } from "../words";

export class Guarded extends Component<{ children: ComponentChildren }, { error: unknown }> {
  override state = { error: null as unknown };

  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override componentDidCatch(error: unknown) {
    if (!(error instanceof Refused)) console.error(error);
  }

  override render() {
    if (this.state.error === null) return this.props.children;
    return <Failure error={this.state.error} again={() => this.setState({ error: null })} />;
  }
}

// What the server refuses it explains itself; any other error is ours, and only loading anew may help.
export function Failure({ error, again }: { error: unknown; again?: () => void }) {
  const isRefused = error instanceof Refused;
  return (
    <div class="error" role="alert">
      <p>{isRefused ? error.message : say("shell.broken", { error: error instanceof Error ? error.message : String(error) })}</p>
      {again && (
        <button type="button" onClick={isRefused ? again : () => location.reload()}>
          {say("shell.again")}
        </button>
      )}
    </div>
  );
}
