// SPDX-License-Identifier: Apache-2.0
// The activity chart of a run in the list of sessions, requested when its row is visible.
import type { JSX } from "preact";
import * as format from "../format";
import { useSession } from "../query";
import type { SessionEntry } from "../session";
import { Sparkline } from "../ui/charts";
import { isUntimed } from "./list";

export interface Activity {
    from_ns: number;
    to_ns: number;
    busy: number[]; // of each part of the run: 0 to 1, over all GPUs
}

const PARTS = 60;

export function RunPicture({ session }: { session: SessionEntry }): JSX.Element {
    const hasWork = session.kernels > 0;
    const answer = useSession<Activity>(
        hasWork ? session.id : null,
        "activity",
        { bins: PARTS },
        { version: session.revision },
    );
    if (!hasWork) return <span class="dim small">{isUntimed(session) ? "not timed" : "no GPU work"}</span>;
    if (!answer.data) return <span class="dim small">{answer.problem ? format.UNAVAILABLE : ""}</span>;
    const { busy } = answer.data;
    const mean = busy.reduce((sum, value) => sum + value, 0) / Math.max(1, busy.length);
    return (
        <Sparkline
            values={busy}
            min={0}
            max={1}
            height={20}
            label={`the GPUs were busy ${format.percent(mean)} of the run`}
        />
    );
}
