// SPDX-License-Identifier: Apache-2.0
// Settings: this browser's key and colours, the server's keys, retention, named configurations, and the server's
// version.
import type { JSX } from "preact";
import { keyRead, keyWrite } from "../api";
import * as format from "../format";
import { useAnswer } from "../query";
import { themeChoice, themeSet, type Choice } from "../theme";
import { Answered, Command, KeyForm } from "../ui/states";
import { Table, type Column } from "../ui/table";
import { Facts } from "../ui/tooltip";

interface ServerInfo {
    version: string;
    store: string | null;
    uptime_s: number;
    schema_version: number | null;
    sessions: number | null;
    rows: number | null;
    bytes: number | null;
    free_bytes: number | null;
    retention_days: number | null;
    retention_bytes: number | null;
    sessions_retired: number;
    keys: number;
    active_keys: number;
    is_key_needed: boolean;
}
interface Key {
    id: number;
    prefix: string;
    name: string | null;
    scope: string;
    created_ns: number;
    expires_ns: number | null;
    revoked_ns: number | null;
    last_used_ns: number | null;
    rate_per_s: number | null;
    quota_bytes_per_day: number | null;
}
interface Config {
    name: string;
    revision: number;
    updated_ns?: number | null;
}

function keyState(key: Key, nowMs: number): "active" | "revoked" | "expired" {
    if (key.revoked_ns !== null) return "revoked";
    return key.expires_ns !== null && key.expires_ns / 1e6 <= nowMs ? "expired" : "active";
}

const keyColumns: Column<Key>[] = [
    { id: "name", title: "name", isKept: true, value: (row) => row.name, text: (row) => row.name ?? "–" },
    {
        id: "prefix",
        title: "begins with",
        width: 104,
        value: (row) => row.prefix,
        cell: (row) => <code>{row.prefix}</code>,
    },
    { id: "scope", title: "may", width: 72, isKept: true, value: (row) => row.scope },
    { id: "state", title: "state", width: 80, isKept: true, value: (row) => keyState(row, Date.now()) },
    {
        id: "last_used_ns",
        title: "last used",
        width: 104,
        value: (row) => row.last_used_ns,
        text: (row) => format.ago(row.last_used_ns, Date.now(), "never"),
        isRight: false,
    },
    {
        id: "created_ns",
        title: "created",
        width: 160,
        value: (row) => row.created_ns,
        text: (row) => format.instant(row.created_ns),
        isRight: false,
    },
    {
        id: "expires_ns",
        title: "expires",
        width: 160,
        value: (row) => row.expires_ns,
        text: (row) => format.instant(row.expires_ns, "never"),
        isRight: false,
    },
    {
        id: "quota_bytes_per_day",
        title: "a day at most",
        width: 112,
        value: (row) => row.quota_bytes_per_day,
        text: (row) => format.bytes(row.quota_bytes_per_day, "no limit"),
    },
];
const configColumns: Column<Config>[] = [
    { id: "name", title: "name", isKept: true, value: (row) => row.name },
    { id: "revision", title: "revision", width: 96, isKept: true, value: (row) => row.revision },
];

function Keys(): JSX.Element {
    const answer = useAnswer<{ keys: Key[] }>("keys");
    return (
        <section class="section" aria-label="keys">
            <h2>Keys</h2>
            {answer.problem && (answer.problem.status === 401 || answer.problem.status === 403) ? (
                <p class="dim">The list of keys needs a key with scope admin.</p>
            ) : (
                <Answered
                    answer={answer}
                    what="keys"
                    isEmpty={(data) => data.keys.length === 0}
                    empty={
                        <p class="dim">
                            There is no key: every user of this machine has full access, and other machines have none.
                        </p>
                    }
                >
                    {(data) => (
                        <Table
                            id="k"
                            label="keys"
                            rows={data.keys}
                            columns={keyColumns}
                            rowKey={(row) => row.id}
                            sort={{ id: "created_ns", isDescending: true }}
                            heightMax={320}
                        />
                    )}
                </Answered>
            )}
            <p>
                A key is made, changed and revoked on the server's machine, where its text is shown once. Add{" "}
                <code>--data DIR</code> where the server was started with it:
            </p>
            <Command text="gpufl serve keys create --scope read --name dashboard" />
        </section>
    );
}

function ThisBrowser(): JSX.Element {
    const key = keyRead();
    return (
        <section class="section" aria-label="this browser">
            <h2>This browser</h2>
            <div class="row">
                <label>
                    Colours{" "}
                    <select
                        value={themeChoice.value}
                        onChange={(event) => themeSet(event.currentTarget.value as Choice)}
                    >
                        <option value="system">system</option>
                        <option value="dark">dark</option>
                        <option value="light">light</option>
                    </select>
                </label>
            </div>
            {key === "" ? (
                <p class="dim">No key is used.</p>
            ) : (
                <p>
                    The key that begins with <code>{key.slice(0, 8)}</code> is used.{" "}
                    <button type="button" onClick={() => keyWrite("", false)}>
                        forget it
                    </button>
                </p>
            )}
            <KeyForm />
        </section>
    );
}

function About({ info }: { info: ServerInfo }): JSX.Element {
    return (
        <>
            <section class="section" aria-label="retention">
                <h2>Retention</h2>
                <p>
                    {info.retention_days === null
                        ? "Sessions are kept for ever"
                        : `Sessions are deleted ${format.plural(info.retention_days, "day")} after their last line arrived`}
                    {info.retention_bytes === null
                        ? ""
                        : `, and the oldest complete ones when all sessions exceed ${format.bytes(info.retention_bytes)}`}
                    . {format.plural(info.sessions_retired, "session")} deleted since the start. A session can have its
                    own retention.
                </p>
                <Command text="gpufl serve --retention-days 30 --retention-bytes 500000000000" />
            </section>
            <section class="section" aria-label="about">
                <h2>About</h2>
                <Facts
                    facts={[
                        ["gpufl", info.version],
                        ["uptime", format.time(info.uptime_s * 1e9)],
                        [
                            "store",
                            `${info.store ?? format.UNAVAILABLE}, schema ${info.schema_version ?? format.UNAVAILABLE}`,
                        ],
                        ["sessions", format.count(info.sessions)],
                        ["rows", format.count(info.rows)],
                        ["size on disk", format.bytes(info.bytes)],
                        ["free for reuse", format.bytes(info.free_bytes)],
                        [
                            "keys",
                            `${format.count(info.active_keys)} active of ${format.count(info.keys)}; ${info.is_key_needed ? "a key is required" : "no key is required on this machine"}`,
                        ],
                        ["interface", <a href="/api/v1/openapi.json">/api/v1/openapi.json</a>],
                    ]}
                />
            </section>
        </>
    );
}

export default function SettingsPage(): JSX.Element {
    const server = useAnswer<ServerInfo>("server", {}, { everyMs: 10_000 });
    const configs = useAnswer<{ configs: Config[] }>("configs");
    return (
        <div class="page">
            <div class="page-head">
                <h1>Settings</h1>
            </div>
            <ThisBrowser />
            <Keys />
            <section class="section" aria-label="configurations">
                <h2>Named configurations</h2>
                <Answered
                    answer={configs}
                    what="configurations"
                    isEmpty={(data) => data.configs.length === 0}
                    empty={
                        <p class="dim">There is none. Agents and programs can fetch their options from the server by name.</p>
                    }
                >
                    {(data) => (
                        <Table
                            id="n"
                            label="configurations"
                            rows={data.configs}
                            columns={configColumns}
                            rowKey={(row) => row.name}
                            heightMax={240}
                        />
                    )}
                </Answered>
            </section>
            <Answered answer={server} what="the server">
                {(info) => <About info={info} />}
            </Answered>
        </div>
    );
}
