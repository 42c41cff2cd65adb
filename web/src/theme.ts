// SPDX-License-Identifier: Apache-2.0
// Light or dark: the system's setting until the user chooses one.
import { computed, effect, signal } from "@preact/signals";

export type Choice = "system" | "light" | "dark";
const NAME = "gpufl.theme";

function choiceRead(): Choice {
    try {
        const kept = window.localStorage.getItem(NAME);
        return kept === "light" || kept === "dark" ? kept : "system";
    } catch {
        return "system";
    }
}

const hasWindow = typeof window !== "undefined";
const media = hasWindow ? window.matchMedia("(prefers-color-scheme: light)") : null;
const isSystemLight = signal(media?.matches ?? false);
media?.addEventListener("change", () => (isSystemLight.value = media.matches));

export const themeChoice = signal<Choice>(hasWindow ? choiceRead() : "system");
export const isDark = computed(() =>
    themeChoice.value === "system" ? !isSystemLight.value : themeChoice.value === "dark",
);

export function themeSet(choice: Choice): void {
    themeChoice.value = choice;
    try {
        if (choice === "system") window.localStorage.removeItem(NAME);
        else window.localStorage.setItem(NAME, choice);
    } catch {
        // not kept, then
    }
}

if (hasWindow) effect(() => void (document.documentElement.dataset["theme"] = isDark.value ? "dark" : "light"));
