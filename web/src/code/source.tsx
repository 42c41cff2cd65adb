// SPDX-License-Identifier: Apache-2.0
// The source pane: a file's lines with the sums of their instructions, or the PTX.
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import * as format from "../format";
import { useSession } from "../query";
import { useParam } from "../route";
import { Answered, Loading } from "../ui/states";
import { type CodeFunction, functionPath, type Ptx, type Source } from "./answers";
import { Heat, StallBar } from "./gutter";
import { Rows } from "./rows";
import { type CodeView, fileName, type FileUse, type LineUse } from "./view";

export interface SourceProps {
    session: string;
    code: CodeFunction;
    view: CodeView;
    lit: ReadonlySet<number>; // lines of the shown file
    at: number | null; // a line to scroll into view
    file: FileUse | null;
    onFile: (file: string) => void;
    onPoint: (line: LineUse | null) => void;
    onChoose: (line: LineUse) => void;
}

interface ShownLine {
    number: number;
    text: string | null;
    use: LineUse | undefined;
}

function shownLines(file: FileUse, lines: readonly string[] | null): ShownLine[] {
    if (lines) return lines.map((text, index) => ({ number: index + 1, text, use: file.lines.get(index + 1) }));
    return [...file.lines.values()]
        .sort((a, b) => a.line - b.line)
        .map((use) => ({ number: use.line, text: use.source, use }));
}

function FileLines(props: SourceProps & { file: FileUse }): JSX.Element {
    const { file, view } = props;
    const source = useSession<Source>(props.session, "source", { file: file.file });
    const isMissing = source.data !== null && source.data.lines === null;
    const rows = useMemo(() => shownLines(file, source.data?.lines ?? null), [file, source.data]);
    const most = useMemo(() => Math.max(0, ...[...file.lines.values()].map((line) => line.samples)), [file]);
    const executedMost = view.executedMost;
    if (!source.data) return source.problem ? <p class="red">{source.problem.message}</p> : <Loading what="source" />;
    const at = props.at === null ? -1 : rows.findIndex((row) => row.number === props.at);
    return (
        <>
            {isMissing ? (
                <div class="notice is-calm small">
                    The session holds no text of <code>{file.file}</code>: these are the lines that instructions name.
                    It is recorded where the file can be read while the program runs.
                </div>
            ) : null}
            <Rows
                count={rows.length}
                label={`source of ${fileName(file.file)}`}
                at={at < 0 ? null : at}
                onPoint={(row) => props.onPoint(row === null ? null : (rows[row]?.use ?? null))}
                onChoose={(row) => {
                    const use = rows[row]?.use;
                    if (use) props.onChoose(use);
                }}
            >
                {(index) => {
                    const row = rows[index] as ShownLine;
                    const use = row.use;
                    const classes = ["code-row", use ? "" : "is-quiet", props.lit.has(row.number) ? "is-lit" : ""];
                    return (
                        <div
                            key={row.number}
                            class={classes.filter(Boolean).join(" ")}
                            data-row={index}
                            data-line={row.number}
                        >
                            {view.hasSamples ? (
                                <Heat
                                    value={use?.samples ?? 0}
                                    most={most}
                                    whole={props.code.samples}
                                    title="samples"
                                />
                            ) : null}
                            {view.hasSamples ? (
                                <StallBar stalls={use?.stalls ?? {}} samples={use?.samples ?? 0} most={most} />
                            ) : null}
                            {view.hasCounters && executedMost ? (
                                <span class="c-count">{use?.executed ? format.countShort(use.executed) : ""}</span>
                            ) : null}
                            <span class="c-number">{row.number}</span>
                            <span class="c-text">{row.text ?? <span class="dim">text not recorded</span>}</span>
                        </div>
                    );
                }}
            </Rows>
        </>
    );
}

// The lines of the function itself; the module may contain others.
export function ptxEntry(lines: readonly string[], symbol: string | null): number {
    if (symbol === null) return -1;
    return lines.findIndex((line) => /\.(entry|func)\b/.test(line) && line.includes(`${symbol}(`));
}

function PtxLines({ session, code }: { session: string; code: CodeFunction }): JSX.Element {
    const ptx = useSession<Ptx>(session, `${functionPath(code)}/ptx`, { cubin_crc: code.cubin_crc });
    const lines = useMemo(() => (ptx.data?.ptx ?? "").replace(/\n+$/, "").split("\n"), [ptx.data]);
    return (
        <Answered
            answer={ptx}
            what="PTX"
            isEmpty={(data) => data.ptx === null}
            empty={<p class="dim">{ptx.data?.problem ?? "unavailable"}</p>}
        >
            {() => (
                <Rows count={lines.length} label="PTX" at={Math.max(0, ptxEntry(lines, code.symbol))}>
                    {(index) => (
                        <div key={index} class="code-row">
                            <span class="c-number">{index + 1}</span>
                            <span class="c-text">{lines[index]}</span>
                        </div>
                    )}
                </Rows>
            )}
        </Answered>
    );
}

export function SourcePane(props: SourceProps): JSX.Element {
    const [asked, setPane] = useParam("pane", "source");
    const pane = props.code.language === "SASS" ? asked : "source"; // AMD code contains no PTX
    const lineOption = props.code.language === "ISA" ? "hipcc -gline-tables-only" : "nvcc -lineinfo";
    const { files } = props.view;
    return (
        <div class="code-pane">
            <div class="code-tabs">
                <button
                    type="button"
                    class={pane === "source" ? "is-on" : ""}
                    aria-pressed={pane === "source"}
                    onClick={() => setPane("source")}
                >
                    source
                </button>
                {props.code.language === "SASS" ? (
                    <button
                        type="button"
                        class={pane === "ptx" ? "is-on" : ""}
                        aria-pressed={pane === "ptx"}
                        onClick={() => setPane("ptx")}
                    >
                        PTX
                    </button>
                ) : null}
                {pane === "source" && props.file ? (
                    <select
                        class="grow"
                        aria-label="source file"
                        value={props.file.file}
                        onChange={(event) => props.onFile(event.currentTarget.value)}
                    >
                        {files.map((file) => (
                            <option key={file.file} value={file.file}>
                                {file.file}
                                {file.samples ? ` (${format.share(file.samples, props.code.samples)})` : ""}
                            </option>
                        ))}
                    </select>
                ) : null}
            </div>
            {pane === "ptx" ? (
                <PtxLines session={props.session} code={props.code} />
            ) : props.file ? (
                <FileLines {...props} file={props.file} />
            ) : (
                <p class="dim code-note">
                    No source lines: {props.code.problem ?? `the instructions name none; build with ${lineOption}`}.
                </p>
            )}
        </div>
    );
}
