// SPDX-License-Identifier: Apache-2.0
// Scopes as an icicle chart, with wall or GPU time as width.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { scopeColour } from "../colour";
import * as format from "../format";
import { href, navigateTo, setParams, useParam } from "../route";
import { Icicle } from "../ui/icicle";
import { Empty } from "../ui/states";
import { Facts } from "../ui/tooltip";
import { measureOf, nodesOf, rowsOf, type ScopeRow, type Scopes } from "./tree";

export function ScopeTip({ scope }: { scope: ScopeRow }): JSX.Element {
    return (
        <>
            <b>{format.middleCut(scope.path, 200)}</b>
            <Facts
                facts={[
                    [
                        "calls",
                        format.count(scope.calls) +
                            (scope.open_calls > 0 ? ` (${format.count(scope.open_calls)} still open)` : ""),
                    ],
                    ["wall time", `${format.time(scope.wall_ns)}, self ${format.time(scope.self_ns)}`],
                    [
                        "GPU time",
                        `${format.time(scope.gpu_ns)}, self ${format.time(scope.gpu_self_ns)}` +
                            (scope.gpu_inferred_ns ? ` (${format.time(scope.gpu_inferred_ns)} inferred)` : ""),
                    ],
                    [
                        "kernels",
                        `${format.count(scope.kernels + scope.untimed_launches)}, ` +
                            `self ${format.count(scope.kernels_self + scope.untimed_launches_self)}` +
                            (scope.untimed_launches > 0
                                ? ` (${format.count(scope.untimed_launches)} counted, not timed)`
                                : ""),
                    ],
                    ["waiting for the GPU", format.time(scope.sync_ns)],
                ]}
            />
        </>
    );
}

// isLink: a click opens the page of scopes; otherwise it zooms, which is part of the URL.
export function ScopeIcicle({
    session,
    scopes,
    isLink = false,
}: {
    session: string;
    scopes: Scopes;
    isLink?: boolean;
}): JSX.Element {
    const [wanted] = useParam("by", "wall");
    const measure = measureOf(scopes, wanted);
    const [zoom] = useParam("scope");
    const rows = useMemo(() => rowsOf(scopes.scopes), [scopes]);
    const nodes = useMemo(() => nodesOf(rows, measure), [rows, measure]);
    if (nodes.length === 0)
        return (
            <Empty title="The program has no scopes. gpufl_scope_begin and gpufl_scope_end mark one, and under gpufl trace NVTX ranges are scopes too." />
        );
    return (
        <Icicle
            nodes={nodes}
            zoom={isLink || zoom === "" ? null : zoom}
            onZoom={(key) => (isLink ? navigateTo(href("scopes", { scope: key }, session)) : setParams({ scope: key }))}
            colour={(node) => scopeColour(node.name)}
            tooltip={(node) => <ScopeTip scope={node.scope} />}
            label={`scopes by ${measure === "gpu" ? "GPU" : "wall"} time`}
        />
    );
}
