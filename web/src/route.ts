// SPDX-License-Identifier: Apache-2.0
// The current location. The URL contains everything that determines a view: /fleet, /sessions, /sessions/{id}/{page},
// /compare, /settings, and the page's parameters.
import { computed, signal } from "@preact/signals";

export interface Route {
    page: string; // "fleet", "sessions", "overview", "timeline", ...
    session: string | null;
    params: Readonly<Record<string, string>>;
}
export type Params = Record<string, string | number | bigint | boolean | null | undefined>;

const SESSION_PAGE_DEFAULT = "overview";

export function parseLocation(path: string, search: string): Route {
    const params: Record<string, string> = {};
    for (const [name, value] of new URLSearchParams(search)) params[name] = value;
    const parts = path.split("/").filter((part) => part !== "");
    const words = parts.map((part) => {
        try {
            return decodeURIComponent(part);
        } catch {
            return part;
        }
    });
    if (words[0] === "sessions" && words[1] !== undefined)
        return { page: words[2] ?? SESSION_PAGE_DEFAULT, session: words[1], params };
    return { page: words[0] ?? "sessions", session: null, params };
}

function queryText(params: Params): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(params))
        if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
    const text = search.toString();
    return text === "" ? "" : `?${text}`;
}

// The URL of a page; session pages need a session.
export function href(page: string, params: Params = {}, session: string | null = null): string {
    const path = session === null ? `/${page}` : `/sessions/${encodeURIComponent(session)}/${page}`;
    return path + queryText(params);
}

const hasWindow = typeof window !== "undefined";
export const route = signal<Route>(
    hasWindow ? parseLocation(window.location.pathname, window.location.search) : parseLocation("/", ""),
);

function follow(): void {
    route.value = parseLocation(window.location.pathname, window.location.search);
}
if (hasWindow) window.addEventListener("popstate", follow);

export function navigateTo(address: string, isReplacing = false): void {
    if (isReplacing) window.history.replaceState(null, "", address);
    else window.history.pushState(null, "", address);
    follow();
}

const topPages = new Set(["fleet", "sessions", "compare", "settings"]);

// Goes to a page; pages of a session stay in the current session unless another one is given.
export function navigate(page: string, params: Params = {}, session: string | null = route.value.session): void {
    navigateTo(href(page, params, topPages.has(page) ? null : session));
}

// Changes parameters of the current URL and keeps the others; null or "" removes one.
export function setParams(changes: Params, isReplacing = true): void {
    const now = route.peek();
    navigateTo(window.location.pathname + queryText({ ...now.params, ...changes }), isReplacing);
}

// A URL parameter as [value, set]; the default is not written to the URL.
export function useParam(name: string, fallback = ""): [string, (value: string) => void] {
    const value = route.value.params[name] ?? fallback;
    return [value, (next) => setParams({ [name]: next === fallback ? null : next })];
}

export const sessionId = computed(() => route.value.session);

// Links behave as links (new tab, copy), but a plain click does not reload the page.
export function onLinkClick(event: MouseEvent): void {
    if (
        event.defaultPrevented ||
        event.button !== 0 ||
        event.metaKey ||
        event.ctrlKey ||
        event.shiftKey ||
        event.altKey
    )
        return;
    const anchor = (event.target as Element | null)?.closest("a");
    const target = anchor?.getAttribute("href");
    if (!anchor || !target || !target.startsWith("/") || target.startsWith("/api/") || anchor.hasAttribute("download"))
        return;
    event.preventDefault();
    navigateTo(target);
}
