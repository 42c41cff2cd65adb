// SPDX-License-Identifier: Apache-2.0
// Code blocks of the book: colours for comments, strings and keywords, and a button that copies the commands.
"use strict";

const SCRIPT_COMMENT = /#.*/.source;
const C_COMMENT = /\/\/.*|\/\*[\s\S]*?\*\//.source;
const C_WORDS = "auto|bool|break|case|char|class|const|continue|double|else|float|for|if|int|long|namespace|nullptr|return|" +
    "sizeof|static|struct|switch|template|typename|unsigned|using|void|while|__global__";
const PYTHON_WORDS = "as|assert|class|def|elif|else|except|False|finally|for|from|if|import|in|is|lambda|None|not|or|pass|" +
    "raise|return|True|try|while|with|yield";
const SHELL_WORDS = "case|do|done|else|esac|exec|export|fi|for|if|in|then|until|while";
const RULES = {
    c: [C_COMMENT, C_WORDS],
    cpp: [C_COMMENT, C_WORDS],
    cuda: [C_COMMENT, C_WORDS],
    python: [SCRIPT_COMMENT, PYTHON_WORDS],
    sh: ["(?<!\\S)" + SCRIPT_COMMENT, SHELL_WORDS],
    yaml: ["(?<!\\S)" + SCRIPT_COMMENT, "true|false|null"],
    toml: [SCRIPT_COMMENT, "true|false"],
    json: ["(?!)", "true|false|null"],
};

function span(kind, text) {
    const made = document.createElement("span");
    made.className = kind;
    made.textContent = text;
    return made;
}

function codeColour(code, language) {
    if (language === "console") {
        code.replaceChildren(...code.textContent.split(/^(\$ .*)$/m).map((part) => (part.startsWith("$ ") ? span("prompt", part) : part)));
        return;
    }
    const rule = RULES[language];
    if (!rule) return;
    const pattern = new RegExp(`(${rule[0]})|("(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*')|\\b(${rule[1]})\\b`, "g");
    const text = code.textContent;
    const parts = [];
    let at = 0;
    for (const match of text.matchAll(pattern)) {
        parts.push(text.slice(at, match.index), span(match[1] ? "comment" : match[2] ? "string" : "keyword", match[0]));
        at = match.index + match[0].length;
    }
    code.replaceChildren(...parts, text.slice(at));
}

// What a reader wants to paste: of a console block its commands, without prompts and output.
function codeText(code, language) {
    if (language !== "console") return code.textContent;
    return [...code.textContent.matchAll(/^\$ ((?:.*\\\n)*.*)$/gm)].map((match) => match[1] + "\n").join("");
}

function copyButton(text) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    return button;
}

document.addEventListener("DOMContentLoaded", () => {
    for (const code of document.querySelectorAll("pre > code")) {
        const pre = code.parentElement;
        const language = (pre.lang || code.className).replace("language-", "");
        if (!language) continue;
        const text = codeText(code, language);
        codeColour(code, language);
        const box = document.createElement("div");
        box.className = "code";
        pre.replaceWith(box);
        box.append(pre, copyButton(text));
    }
});
