// SPDX-License-Identifier: Apache-2.0
// Live updates from the server: /api/v1/live. EventSource cannot send a key, so the stream is read here.
import { signal } from "@preact/signals";
import { ApiError, ask, connection, keyChanges } from "./api";

export interface LiveState {
    state: "off" | "connecting" | "live" | "lost";
    since: number; // ms since 1970: start of this state
}
export const liveState = signal<LiveState>({ state: "off", since: Date.now() });

export interface LiveSession {
    session_id: string;
    app: string | null;
    host: string | null;
    state: string | null;
    rows_received: number;
    kernels_received: number;
    bytes_received: number;
    changed_ns: number;
}
// A row of the log's device metrics: unknown values are missing.
export interface LiveGpu {
    host: string;
    session_id: string;
    ts_ns: number | null;
    device_id: number;
    [metric: string]: string | number | null;
}
export interface LiveEvents {
    session: LiveSession;
    gpu: LiveGpu;
}

// Parses a stream of text received in chunks of any size. Lines beyond the limit are discarded.
export class EventParser {
    private rest = "";
    private name = "";
    private data: string[] = [];
    constructor(private readonly onEvent: (name: string, data: string) => void) {}

    push(text: string): void {
        const lines = (this.rest + text).split("\n");
        this.rest = lines.pop() ?? "";
        if (this.rest.length > 1 << 20) this.rest = "";
        for (const raw of lines) this.line(raw.endsWith("\r") ? raw.slice(0, -1) : raw);
    }

    private line(line: string): void {
        if (line === "") {
            if (this.data.length > 0) this.onEvent(this.name || "message", this.data.join("\n"));
            this.name = "";
            this.data = [];
            return;
        }
        const colon = line.indexOf(":");
        if (colon === 0) return;
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
        if (field === "event") this.name = value;
        else if (field === "data") this.data.push(value);
    }
}

type Listener = (value: never) => void;
const listeners = { session: new Set<Listener>(), gpu: new Set<Listener>() };
// The latest event of each kind, for later subscribers.
const latest = { session: new Map<string, unknown>(), gpu: new Map<string, unknown>() };
const LATEST_MAX = 4096;
let stop: AbortController | null = null;

const QUIET_MS = 40_000; // the server sends something at least every 15 s
const RETRY_MS = [500, 1000, 2000, 4000, 8000];

function stateSet(state: LiveState["state"]): void {
    if (liveState.peek().state !== state) liveState.value = { state, since: Date.now() };
}

function deliver(name: string, text: string): void {
    if (name !== "session" && name !== "gpu") return;
    let value: unknown;
    try {
        value = JSON.parse(text);
    } catch {
        return;
    }
    const { session_id, device_id } = value as Partial<LiveGpu>;
    const seen = latest[name];
    const key = name === "session" ? `${session_id}` : `${session_id}/${device_id}`;
    seen.delete(key);
    for (const oldest of seen.keys()) {
        if (seen.size < LATEST_MAX) break;
        seen.delete(oldest);
    }
    seen.set(key, value);
    for (const listener of listeners[name]) listener(value as never);
}

async function readStream(control: AbortController): Promise<void> {
    const silence = new AbortController();
    let timer = 0;
    const heard = (): void => {
        window.clearTimeout(timer);
        timer = window.setTimeout(() => silence.abort(), QUIET_MS);
    };
    try {
        heard();
        const response = await ask("live", {}, { signal: AbortSignal.any([control.signal, silence.signal]) });
        stateSet("live");
        const parser = new EventParser(deliver);
        const decoder = new TextDecoder();
        const reader = response.body?.getReader();
        for (;;) {
            const part = await reader?.read();
            if (!part || part.done) return;
            heard();
            parser.push(decoder.decode(part.value, { stream: true }));
        }
    } finally {
        window.clearTimeout(timer);
    }
}

async function run(control: AbortController): Promise<void> {
    for (let attempt = 0; !control.signal.aborted; attempt++) {
        try {
            await readStream(control);
            attempt = -1;
        } catch (error) {
            if (error instanceof ApiError && !error.isTemporary) {
                stateSet("lost");
                return; // a key is missing: keyChanges starts again
            }
        }
        if (control.signal.aborted) break;
        stateSet("lost");
        await pause(RETRY_MS[Math.min(Math.max(attempt, 0), RETRY_MS.length - 1)] ?? 1000, control.signal);
    }
}

// Ends early when the signal aborts or another request reached the server.
function pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
        const wasUp = connection.peek().state === "up";
        const done = (): void => {
            window.clearTimeout(timer);
            unsubscribe();
            resolve();
        };
        const timer = window.setTimeout(done, ms);
        const unsubscribe = connection.subscribe((now) => {
            if (!wasUp && now.state === "up") queueMicrotask(done);
        });
        signal.addEventListener("abort", done, { once: true });
    });
}

function restart(): void {
    stop?.abort();
    stop = null;
    latest.session.clear();
    latest.gpu.clear();
    if (listeners.session.size + listeners.gpu.size === 0) {
        stateSet("off");
        return;
    }
    stop = new AbortController();
    stateSet("connecting");
    void run(stop);
}

let isWatchingKeys = false;

// Begins with the current state of everything, for this listener only. Returns the function that unsubscribes.
export function liveSubscribe<Name extends keyof LiveEvents>(
    name: Name,
    listener: (value: LiveEvents[Name]) => void,
): () => void {
    if (!isWatchingKeys) {
        isWatchingKeys = true;
        let isFirst = true;
        keyChanges.subscribe(() => {
            if (!isFirst) restart();
            isFirst = false;
        });
    }
    const isFirstListener = listeners.session.size + listeners.gpu.size === 0;
    listeners[name].add(listener as Listener);
    for (const value of latest[name].values()) listener(value as LiveEvents[Name]);
    if (isFirstListener || stop === null) restart();
    return () => {
        listeners[name].delete(listener as Listener);
        if (listeners.session.size + listeners.gpu.size === 0) restart();
    };
}
