// SPDX-License-Identifier: Apache-2.0
// axe on every page, in both colours, wide and narrow.
import assert from "node:assert/strict";
import { axeCheck, pageTest, useServer } from "./harness.mjs";

const server = useServer(["h200", "trace", "deep", "monitor", "killed"]);

// Where it is, and what says that it is complete.
const places = [
    ["sessions", () => "/sessions?app=train.py", "Trend"],
    ["fleet", () => "/fleet", "Fleet"],
    ["overview", () => `/sessions/${server.ids.h200}`, "System"],
    ["overview of a broken session", () => `/sessions/${server.ids.killed}`, "Session"],
    ["scopes", () => `/sessions/${server.ids.h200}/scopes?scope=step`, /Kernels inside/],
    ["memory", () => `/sessions/${server.ids.trace}/memory`, "Never freed"],
    ["settings", () => "/settings", "About"],
    ["timeline", () => `/sessions/${server.ids.h200}/timeline`, null],
    ["kernels", () => `/sessions/${server.ids.h200}/kernels`, null],
    ["kernel", () => `/sessions/${server.ids.h200}/kernel?id=19`, null],
    ["code", () => `/sessions/${server.ids.deep}/code`, null],
    ["compare", () => `/compare?a=${server.ids.trace}&b=${server.ids.deep}`, null],
];

for (const [name, path, heading] of places)
    for (const [theme, width] of [
        ["dark", 1440],
        ["light", 1440],
        ["dark", 390],
    ])
        pageTest(
            server,
            `axe finds nothing serious on ${name}, ${theme}, ${width} px wide`,
            { theme, width },
            async (page) => {
                await page.open(path());
                if (heading) await page.getByRole("heading", { name: heading }).first().waitFor();
                await page.settled();
                await axeCheck(page);
            },
        );

pageTest(server, "axe sees a button without a name and text without contrast", {}, async (page) => {
    await page.open("/settings");
    await page.getByRole("heading", { name: "About" }).waitFor();
    await page.evaluate(() => {
        const bad = document.createElement("p");
        bad.textContent = "hardly to be read";
        bad.style.color = "var(--line)";
        document.querySelector("main h1").after(bad, document.createElement("button"));
    });
    await assert.rejects(axeCheck(page), /button-name[^]*color-contrast|color-contrast[^]*button-name/);
});
