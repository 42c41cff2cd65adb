// SPDX-License-Identifier: Apache-2.0
// A server's answer as the state of a component: requested again when the request changes, retried automatically while
// the server is unreachable, and kept on the screen meanwhile.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, connection, getJson, getJsonWith, keyChanges, type Problem } from "./api";
import type { Params } from "./route";

export interface Answer<T> {
    data: T | null; // the latest valid answer to this request
    problem: Problem | null; // why there is no newer answer
    isLoading: boolean;
    reload: () => void;
}

export type Fetch<T> = (path: string, params: Params, signal: AbortSignal) => Promise<T>;

export interface AnswerOptions<T> {
    everyMs?: number | ((data: T) => number); // repeat the request this long after an answer; 0: only when something changes
    fetch?: Fetch<T>; // getJson when absent
    version?: number | string; // another value repeats the request and keeps the old answer until the new one arrives
}

const RETRY_MS = [1000, 2000, 4000, 8000, 10_000];
const SOON_MS = 100;

export function problemOf(error: unknown): Problem {
    if (error instanceof ApiError) return error;
    return { status: -1, code: "broken", message: error instanceof Error ? error.message : String(error), hint: "" };
}

// path null: no request.
export function useAnswer<T>(path: string | null, params: Params = {}, options: AnswerOptions<T> = {}): Answer<T> {
    const question =
        path === null ? "" : `${path}?${JSON.stringify(params, (_k, v) => (typeof v === "bigint" ? `${v}` : v))}`;
    const [state, setState] = useState<{
        question: string;
        data: T | null;
        problem: Problem | null;
        isLoading: boolean;
    }>({
        question,
        data: null,
        problem: null,
        isLoading: path !== null,
    });
    const [asked, setAsked] = useState(0);
    const present = { params, fetch: options.fetch ?? (getJson as Fetch<T>), everyMs: options.everyMs ?? 0 };
    const latest = useRef(present);
    latest.current = present;

    const poke = useRef<() => void>(() => {});

    useEffect(() => {
        if (path === null) return;
        const control = new AbortController();
        let timer = 0;
        let failures = 0;
        let isUnderWay = false;
        let isStale = false; // something changed while the request was in progress
        let release = (): void => {};
        const again = (ms: number): void => {
            window.clearTimeout(timer);
            timer = window.setTimeout(() => void load(), ms);
        };
        const settle = (data: T): void => {
            const { everyMs } = latest.current;
            const waitMs = isStale ? SOON_MS : typeof everyMs === "function" ? everyMs(data) : everyMs;
            failures = 0;
            isStale = false;
            setState({ question, data, problem: null, isLoading: false });
            if (waitMs > 0) again(waitMs);
        };
        const fail = (error: unknown): void => {
            const problem = problemOf(error);
            setState((now) => ({
                question,
                data: now.question === question ? now.data : null,
                problem,
                isLoading: false,
            }));
            if (!(error instanceof ApiError) || !error.isTemporary) return;
            again(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)] ?? 1000);
            // The first component that reaches the server notifies the others.
            let isFirst = true;
            release = connection.subscribe((now) => {
                if (!isFirst && now.state === "up") again(0);
                isFirst = false;
            });
        };
        const load = async (): Promise<void> => {
            release();
            release = () => {};
            window.clearTimeout(timer);
            isUnderWay = true;
            setState((now) =>
                now.question === question
                    ? { ...now, isLoading: true }
                    : { question, data: null, problem: null, isLoading: true },
            );
            try {
                const data = await latest.current.fetch(path, latest.current.params, control.signal);
                isUnderWay = false;
                if (!control.signal.aborted) settle(data);
            } catch (error) {
                isUnderWay = false;
                if (!control.signal.aborted) fail(error);
            }
        };
        // A request in progress is not aborted for a newer one: continuous changes must not starve it.
        poke.current = () => {
            if (isUnderWay) isStale = true;
            else void load();
        };
        void load();
        return () => {
            control.abort();
            release();
            window.clearTimeout(timer);
            poke.current = () => {};
        };
    }, [question, asked, keyChanges.value]);

    const version = useRef(options.version);
    useEffect(() => {
        if (version.current === options.version) return;
        version.current = options.version;
        poke.current();
    }, [options.version]);

    const isCurrent = state.question === question;
    return {
        data: isCurrent ? state.data : null,
        problem: isCurrent ? state.problem : null,
        isLoading: path !== null && (!isCurrent || state.isLoading),
        reload: () => setAsked((count) => count + 1),
    };
}

export function sessionPath(session: string, rest = ""): string {
    return `sessions/${encodeURIComponent(session)}${rest === "" ? "" : `/${rest}`}`;
}

// The revision of the session that an answer was computed from; for a growing session it may be older than the latest
// one.
const answeredFrom = new WeakMap<object, number>();
const BEHIND_MS = 500;

async function sessionFetch<T>(path: string, params: Params, signal: AbortSignal): Promise<T> {
    const [data, response] = await getJsonWith<T>(path, params, signal);
    const revision = Number(response.headers.get("X-Session-Revision") ?? NaN);
    if (typeof data === "object" && data !== null && !Number.isNaN(revision)) answeredFrom.set(data, revision);
    return data;
}

// An answer about one session: useSession(id, "kernels", {limit: 20}). With `version`, the catalog's revision, an
// outdated answer is requested again.
export function useSession<T>(
    session: string | null,
    rest: string,
    params: Params = {},
    options: AnswerOptions<T> = {},
): Answer<T> {
    const isBehind = (data: T): boolean =>
        typeof options.version === "number" &&
        typeof data === "object" &&
        data !== null &&
        (answeredFrom.get(data) ?? Infinity) < options.version;
    return useAnswer<T>(session === null ? null : sessionPath(session, rest), params, {
        fetch: sessionFetch,
        everyMs: (data) => (isBehind(data) ? BEHIND_MS : 0),
        ...options,
    });
}
