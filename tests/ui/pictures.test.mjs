// SPDX-License-Identifier: Apache-2.0
// Pages look as they did when somebody looked at them.
import assert from "node:assert/strict";
import { pageTest, pictureCheck, useServer } from "./harness.mjs";

const server = useServer(["h200", "trace", "gpus"]);

const places = [
    ["sessions", () => "/sessions"],
    ["overview", () => `/sessions/${server.ids.h200}`],
    ["scopes", () => `/sessions/${server.ids.h200}/scopes?scope=step`],
    ["memory", () => `/sessions/${server.ids.trace}/memory`],
    ["fleet", () => "/fleet"],
    ["settings", () => "/settings"],
];
const looks = [
    ["dark", 1440, 900],
    ["light", 1440, 900],
    ["dark", 390, 844],
];

for (const [name, path] of places)
    for (const [theme, width, height] of looks)
        pageTest(
            server,
            `${name} looks as it did, ${theme}, ${width} px wide`,
            { theme, width, height },
            async (page) => {
                await page.open(path());
                await page.locator("main h1").waitFor();
                await page.settled();
                await pictureCheck(page, `${name}-${theme}-${width}`);
            },
        );

pageTest(server, "a page in other colours is another picture", { theme: "light" }, async (page) => {
    if (process.env.GPUFL_KEEP_PICTURES) return;
    await page.open("/settings");
    await page.locator("main h1").waitFor();
    await page.settled();
    await assert.rejects(pictureCheck(page, "settings-dark-1440"), /the picture differs/);
});
