// SPDX-License-Identifier: Apache-2.0
// Confines an error to the part of the page that threw it: otherwise nothing would be rendered until a reload.
import { Component, type ComponentChildren, type JSX } from "preact";

interface Props {
    what: string; // "this part", "the page"
    of?: unknown; // another value renders again: the data shown by the part
    children: ComponentChildren;
}
interface State {
    error: unknown;
    of: unknown;
}

export class Guard extends Component<Props, State> {
    override state: State = { error: null, of: this.props.of };

    static override getDerivedStateFromError(error: unknown): Partial<State> {
        return { error: error ?? new Error("unknown") };
    }

    static override getDerivedStateFromProps(props: Props, state: State): Partial<State> | null {
        return props.of === state.of ? null : { error: null, of: props.of };
    }

    override componentDidCatch(error: unknown): void {
        console.error(error);
    }

    override render(): ComponentChildren {
        const { error } = this.state;
        if (error === null) return this.props.children;
        return (
            <div class="state broken" role="alert">
                <p class="red">gpufl could not show {this.props.what}. This is a defect of the dashboard.</p>
                <p class="dim">{error instanceof Error ? error.message : String(error)}</p>
                <button type="button" onClick={() => this.setState({ error: null })}>
                    try again
                </button>
            </div>
        );
    }
}

// Calls the function while rendering, so that a surrounding guard catches its errors.
export function Drawn({ draw }: { draw: () => ComponentChildren }): JSX.Element {
    return <>{draw()}</>;
}
