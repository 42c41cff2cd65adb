// SPDX-License-Identifier: Apache-2.0
// Every page by its name in the URL. A page is loaded when it is first shown.
import type { ComponentType } from "preact";

export interface Page {
    name: string;
    title: string;
    short: string; // for the folded side list
    isOfSession: boolean;
    isListed: boolean; // in the side list; other pages are reached by links
    load: () => Promise<{ default: ComponentType }>;
    keys?: string; // "g f"
}

export const pages: readonly Page[] = [
    { name: "fleet", title: "Fleet", short: "F", isOfSession: false, isListed: true, keys: "g f", load: () => import("./fleet/page") },
    { name: "sessions", title: "Sessions", short: "S", isOfSession: false, isListed: true, keys: "g s", load: () => import("./sessions/page") },
    { name: "compare", title: "Compare", short: "=", isOfSession: false, isListed: true, keys: "g d", load: () => import("./compare/page") },
    { name: "settings", title: "Settings", short: "⋯", isOfSession: false, isListed: true, load: () => import("./settings/page") },
    { name: "overview", title: "Overview", short: "O", isOfSession: true, isListed: true, keys: "g o", load: () => import("./overview/page") },
    { name: "timeline", title: "Timeline", short: "T", isOfSession: true, isListed: true, keys: "g t", load: () => import("./timeline/page") },
    { name: "kernels", title: "Kernels", short: "K", isOfSession: true, isListed: true, keys: "g k", load: () => import("./kernels/page") },
    { name: "kernel", title: "Kernel", short: "K", isOfSession: true, isListed: false, load: () => import("./kernels/kernel-page") },
    { name: "code", title: "Code", short: "C", isOfSession: true, isListed: true, keys: "g c", load: () => import("./code/page") },
    { name: "scopes", title: "Scopes", short: "P", isOfSession: true, isListed: true, keys: "g p", load: () => import("./scopes/page") },
    { name: "memory", title: "Memory & sync", short: "M", isOfSession: true, isListed: true, keys: "g m", load: () => import("./memory/page") },
];

export function pageOf(name: string, isOfSession: boolean): Page | undefined {
    return pages.find((page) => page.name === name && page.isOfSession === isOfSession);
}
