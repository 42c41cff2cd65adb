// SPDX-License-Identifier: Apache-2.0
// The frame around every page: addresses, headers, keyboard, search, colours.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pageTest, useServer } from "./harness.mjs";

const server = useServer(["h200", "trace"]);

test("every page address is the dashboard and every unknown one is not", async () => {
    for (const path of [
        "/",
        "/fleet",
        "/sessions",
        `/sessions/${server.ids.trace}`,
        "/sessions/x/kernels",
        "/compare",
        "/settings",
    ]) {
        const answer = await fetch(server.url + path);
        assert.equal(answer.status, 200, path);
        assert.match(answer.headers.get("content-type"), /text\/html/, path);
        assert.match(await answer.text(), /<div id="app">/, path);
    }
    for (const path of ["/nothing", "/assets/nothing.js", "/sessions/a/b/c"])
        assert.equal((await fetch(server.url + path)).status, 404, path);
});

test("files with a hash in their name are kept for good, the page itself is not, and the policy is strict", async () => {
    const page = await fetch(server.url);
    assert.equal(page.headers.get("cache-control"), "no-cache");
    const policy = page.headers.get("content-security-policy");
    assert.match(policy, /default-src 'none'/);
    assert.ok(!/unsafe/.test(policy), policy);
    const text = await page.text();
    assert.ok(!/<script[^>]*>[^<]/.test(text) && !/<style/.test(text) && !/ style=/.test(text), "nothing inline");
    const asset = /src="(\/assets\/[^"]+\.js)"/.exec(text)[1];
    const script = await fetch(server.url + asset, { headers: { "Accept-Encoding": "gzip" } });
    assert.match(script.headers.get("cache-control"), /immutable/);
    assert.equal(script.headers.get("content-encoding"), "gzip");
});

pageTest(server, "keys go from page to page, and the question mark lists them", {}, async (page) => {
    await page.open("/sessions");
    await page.getByRole("heading", { name: "Sessions" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("f");
    await page.getByRole("heading", { name: "Fleet" }).waitFor();
    assert.equal(new URL(page.url()).pathname, "/fleet");
    await page.keyboard.press("?");
    const help = page.getByRole("dialog", { name: "keyboard" });
    await help.waitFor();
    assert.match(await help.textContent(), /go to Sessions/);
    await page.keyboard.press("Escape");
    await help.waitFor({ state: "detached" });
    await page.goBack();
    await page.getByRole("heading", { name: "Sessions" }).waitFor();
});

pageTest(server, "the search finds sessions and kernels and goes there", {}, async (page) => {
    await page.open("/settings");
    await page.getByRole("heading", { name: "Settings" }).waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("reduce_kernel");
    const hit = page.getByRole("option").filter({ hasText: "reduce_kernel" }).first();
    await hit.waitFor();
    const found = await server.get("search/kernels", { q: "reduce_kernel", limit: 12 });
    await page.waitForFunction(
        (count) => document.querySelectorAll("[role=option] .swatch").length === count,
        found.kernels.length,
    );
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/sessions\/.+/);
});

pageTest(
    server,
    "colours follow the system until they are chosen, and the choice is kept",
    { theme: "light" },
    async (page) => {
        await page.open("/settings");
        const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
        await page.getByRole("heading", { name: "Settings" }).waitFor();
        assert.equal(await theme(), "light");
        await page.getByRole("button", { name: "use dark colours" }).click();
        assert.equal(await theme(), "dark");
        await page.reload();
        await page.getByRole("heading", { name: "Settings" }).waitFor();
        assert.equal(await theme(), "dark");
    },
);

pageTest(server, "an address of nothing says so", {}, async (page) => {
    await page.open(`/sessions/${server.ids.trace}/nonsense`);
    await page.getByText("No such page.").waitFor();
});

pageTest(server, "a session that does not exist says so", { isNoisy: true }, async (page) => {
    await page.open("/sessions/0192f300-0000-7000-8000-ffffffffffff");
    await page.getByRole("alert").first().waitFor();
    assert.match(await page.getByRole("alert").first().textContent(), /session/i);
});
