// SPDX-License-Identifier: Apache-2.0
// Requests to the server: keys, errors, the connection state and live events are handled here.
import { signal } from "@preact/signals";
import type { Params } from "./route";

export interface Problem {
    status: number; // 0: no answer
    code: string;
    message: string;
    hint: string; // what to do next; may be ""
}

export class ApiError extends Error implements Problem {
    constructor(
        readonly status: number,
        readonly code: string,
        message: string,
        readonly hint: string,
    ) {
        super(message);
        this.name = "ApiError";
    }
    // Repeating the request may succeed.
    get isTemporary(): boolean {
        return this.status === 0 || this.status === 429 || this.status >= 500;
    }
}

export interface Connection {
    state: "unknown" | "up" | "down";
    since: number; // ms since 1970
    message: string;
}
export const connection = signal<Connection>({ state: "unknown", since: Date.now(), message: "" });
// True after the server required a key that the dashboard does not have.
export const isKeyNeeded = signal(false);

function connectionSet(state: "up" | "down", message = ""): void {
    const now = connection.peek();
    if (now.state !== state) connection.value = { state, since: Date.now(), message };
    else if (now.message !== message) connection.value = { ...now, message };
}

const KEY_NAME = "gpufl.key";

function storageOf(kind: "session" | "local"): Storage | null {
    try {
        return kind === "session" ? window.sessionStorage : window.localStorage;
    } catch {
        return null; // switched off by the user
    }
}

export function keyRead(): string {
    return storageOf("session")?.getItem(KEY_NAME) ?? storageOf("local")?.getItem(KEY_NAME) ?? "";
}

// isKept: also for later visits.
export function keyWrite(key: string, isKept: boolean): void {
    for (const kind of ["session", "local"] as const) storageOf(kind)?.removeItem(KEY_NAME);
    if (key !== "") storageOf(isKept ? "local" : "session")?.setItem(KEY_NAME, key);
    isKeyNeeded.value = false;
    keyChanges.value++;
}
export const keyChanges = signal(0);

export function address(path: string, params: Params = {}): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(params))
        if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
    const text = search.toString();
    return (path.startsWith("/") ? path : `/api/v1/${path}`) + (text === "" ? "" : `?${text}`);
}

const hints: Record<number, string> = {
    0: "Is `gpufl serve` running? This page retries automatically.",
    401: "Give this dashboard a key on the Settings page: `gpufl serve keys create --scope read`.",
    403: "The key does not allow this: `gpufl serve keys create --scope read` creates one for reading.",
    404: "It may have been deleted; the Sessions page lists all sessions.",
    422: "`gpufl report` can read sessions of any size from their files.",
    429: "Too many requests with this key; this page retries automatically.",
};

async function errorOf(response: Response): Promise<ApiError> {
    let code = "";
    let message = `the server answered ${response.status}`;
    try {
        const body = (await response.json()) as { error?: { code?: string; message?: string } };
        code = body.error?.code ?? "";
        message = body.error?.message ?? message;
    } catch {
        // not the server's: a proxy's page
    }
    const hint = hints[response.status] ?? (response.status >= 500 ? "This page retries automatically." : "");
    return new ApiError(response.status, code, message, hint);
}

export interface Ask {
    method?: string;
    body?: string;
    signal?: AbortSignal | undefined;
    headers?: Record<string, string>;
}

// Returns the answer if it is valid; throws ApiError, or AbortError if the signal aborts.
export async function ask(path: string, params: Params = {}, options: Ask = {}): Promise<Response> {
    const headers: Record<string, string> = { ...options.headers };
    const key = keyRead();
    if (key !== "") headers["Authorization"] = `Bearer ${key}`;
    if (options.body !== undefined) headers["Content-Type"] = "application/json";
    let response: Response;
    try {
        response = await fetch(address(path, params), {
            method: options.method ?? "GET",
            headers,
            ...(options.body === undefined ? {} : { body: options.body }),
            ...(options.signal ? { signal: options.signal } : {}),
        });
    } catch (error) {
        if (options.signal?.aborted) throw error;
        connectionSet("down", "the server cannot be reached");
        throw new ApiError(0, "unreachable", "The server cannot be reached.", hints[0] ?? "");
    }
    if (response.ok) {
        connectionSet("up");
        return response;
    }
    const problem = await errorOf(response);
    if (response.status === 502 || response.status === 503 || response.status === 504)
        connectionSet("down", problem.message);
    else connectionSet("up");
    if (response.status === 401) isKeyNeeded.value = true;
    throw problem;
}

async function bodyOf<T>(response: Response, signal: AbortSignal | undefined, read: () => Promise<T>): Promise<T> {
    try {
        return await read();
    } catch (error) {
        if (signal?.aborted) throw error;
        if (error instanceof SyntaxError)
            throw new ApiError(response.status, "damaged", "The server's answer cannot be read.", "");
        connectionSet("down", "the connection was lost");
        throw new ApiError(0, "broken_off", "The connection was lost in the middle of an answer.", hints[0] ?? "");
    }
}

// Integers beyond 2^53 (times) lose their last digits; see getExactJson.
export async function getJson<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
    return (await getJsonWith<T>(path, params, signal))[0];
}

// The same, with the response for its headers.
export async function getJsonWith<T>(path: string, params: Params, signal?: AbortSignal): Promise<[T, Response]> {
    const response = await ask(path, params, { signal });
    return [await bodyOf(response, signal, () => response.json() as Promise<T>), response];
}

// Integers beyond 2^53 become bigint.
export async function getExactJson<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
    const response = await ask(path, params, { signal });
    return bodyOf(response, signal, async () => parseExact(await response.text()) as T);
}

const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const WHOLE = /^-?\d{16,}$/;
// No text from the server begins with it, whatever the names of kernels.
const mark = `${Math.random()} ${Math.random()} `;

export function parseExact(text: string): unknown {
    const marked = text.replace(TOKEN, (token) =>
        WHOLE.test(token) && !Number.isSafeInteger(Number(token)) ? `"${mark}${token}"` : token,
    );
    return JSON.parse(marked, (_key, value: unknown) =>
        typeof value === "string" && value.startsWith(mark) ? BigInt(value.slice(mark.length)) : value,
    );
}

export async function getBytes(path: string, params: Params = {}, signal?: AbortSignal): Promise<ArrayBuffer> {
    const response = await ask(path, params, { signal });
    return bodyOf(response, signal, () => response.arrayBuffer());
}

export function send(method: "PATCH" | "PUT" | "POST" | "DELETE", path: string, body?: unknown): Promise<Response> {
    return ask(path, {}, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
}
