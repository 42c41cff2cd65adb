// SPDX-License-Identifier: Apache-2.0
// Search and colours of the book. Works from a file as well as from a server; asks no other host.
"use strict";

const THEME = "gpufl.theme"; // the dashboard's, so that a choice holds for both where they share a server
const RESULTS_MAX = 20;

function themeKept() {
    try {
        const kept = localStorage.getItem(THEME);
        if (kept === "light" || kept === "dark") return kept;
    } catch {
        // no storage: the system's choice
    }
    return matchMedia("(prefers-color-scheme: light)").matches ? "light" : "dark";
}

function themeShow(theme) {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.textContent = theme === "light" ? "Dark" : "Light";
}

// Entries that hold every word, best first: words in a title weigh most, then headings, then the text.
function bookSearch(index, query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return [];
    const found = [];
    index.forEach((entry, order) => {
        const [, title, , heading, text] = entry.map((part) => part.toLowerCase());
        let score = 0;
        for (const word of words) {
            const parts = [heading, title, text];
            const weight = parts.reduce((sum, part, at) => sum + (part.includes(word) ? [8, 4, 1][at] : 0), 0);
            if (weight === 0) return;
            score += weight;
        }
        found.push({ entry, score, order });
    });
    found.sort((a, b) => b.score - a.score || a.order - b.order);
    return found.slice(0, RESULTS_MAX).map((one) => one.entry);
}

function excerpt(text, query) {
    const at = Math.max(0, text.toLowerCase().indexOf(query.toLowerCase().split(/\s+/)[0]) - 60);
    return (at > 0 ? "…" : "") + text.slice(at, at + 160) + (at + 160 < text.length ? "…" : "");
}

function resultMake(entry, query, base) {
    const [file, title, anchor, heading, text] = entry;
    const link = document.createElement("a");
    link.href = `${base}/${file}#${anchor}`;
    const where = document.createElement("span");
    where.className = "where";
    where.textContent = heading === title ? title : `${title} › ${heading}`;
    link.append(where, excerpt(text, query));
    return link;
}

function searchStart() {
    const field = document.getElementById("search");
    const list = document.getElementById("found");
    const base = document.documentElement.dataset.base;
    let chosen = -1;

    const choose = (number) => {
        const links = [...list.querySelectorAll("a")];
        chosen = links.length === 0 ? -1 : (number + links.length) % links.length;
        links.forEach((link, at) => link.classList.toggle("is-on", at === chosen));
        links[chosen]?.scrollIntoView({ block: "nearest" });
    };
    const show = () => {
        const query = field.value.trim();
        const entries = bookSearch(window.bookIndex ?? [], query);
        list.hidden = query === "";
        list.replaceChildren(...entries.map((entry) => resultMake(entry, query, base)));
        if (entries.length === 0) {
            const none = document.createElement("p");
            none.textContent = `Nothing holds “${query}”.`;
            list.append(none);
        }
        choose(0);
    };
    field.addEventListener("input", show);
    field.addEventListener("keydown", (event) => {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
            event.preventDefault();
        } else if (event.key === "Enter") list.querySelectorAll("a")[chosen]?.click();
        else if (event.key === "Escape") {
            field.value = "";
            list.hidden = true;
            field.blur();
        }
    });
    list.addEventListener("click", () => (list.hidden = true));
    document.addEventListener("keydown", (event) => {
        if (event.key === "/" && document.activeElement !== field) {
            field.focus();
            event.preventDefault();
        }
    });
}

themeShow(themeKept());
document.addEventListener("DOMContentLoaded", () => {
    themeShow(themeKept());
    document.getElementById("theme").addEventListener("click", () => {
        const theme = document.documentElement.dataset.theme === "light" ? "dark" : "light";
        try {
            localStorage.setItem(THEME, theme);
        } catch {
            // not kept, then
        }
        themeShow(theme);
    });
    searchStart();
    // The list alone: on a phone it is below the page, which must not scroll there.
    const pages = document.getElementById("pages");
    pages.scrollTop = (pages.querySelector("[aria-current]")?.offsetTop ?? 0) - pages.clientHeight / 2;
});
