// SPDX-License-Identifier: Apache-2.0
// A server that wants a key: the page asks for it, keeps it, and never shows it.
import assert from "node:assert/strict";
import { eventually, pageTest, tableRows, useServer } from "./harness.mjs";

const server = useServer(["trace"]);

pageTest(server, "a page without a key asks for one and goes on with it", { isNoisy: true }, async (page) => {
    const key = await server.keyMake("admin");
    server.key = key;
    await page.open("/sessions");
    await page.getByRole("alert").first().waitFor();
    await page.getByLabel("API key").fill(key);
    await page.getByRole("button", { name: "use this key" }).click();
    await eventually(async () => (await tableRows(page, "sessions")).length === 1);
    await page.locator(".live.is-live").first().waitFor();
    await page.reload();
    await eventually(async () => (await tableRows(page, "sessions")).length === 1);
    await page.open("/settings");
    await eventually(async () => (await tableRows(page, "keys")).length === 1);
    assert.ok(!(await page.content()).includes(key), "the key is nowhere on the page");
    await page.getByRole("button", { name: "forget it" }).click();
    await page.getByText("The list of keys needs a key with scope admin.").waitFor();
});
