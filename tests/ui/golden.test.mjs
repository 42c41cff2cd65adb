// SPDX-License-Identifier: Apache-2.0
// Every golden session is shown on every page, one after the other without a reload: hostile, killed and empty ones too.
import assert from "node:assert/strict";
import { goldenSessions, pageTest, tableRows, useServer } from "./harness.mjs";

const server = useServer(goldenSessions);

// The title of the page that is shown, once everything that it asked for has come.
async function shown(page, title) {
    await page.locator("nav[aria-label='where you are'] .here", { hasText: title }).waitFor();
    await page.locator("main h1, main canvas, main .state:not(.is-loading)").first().waitFor();
    await page.settled();
    assert.equal(await page.locator("main .broken").count(), 0, `a part of the page ${title} is broken`);
}

for (const name of goldenSessions)
    pageTest(server, `every page shows the session ${name}, and the next page too`, {}, async (page) => {
        await page.open(`/sessions/${server.ids[name]}`);
        await shown(page, "Overview");
        const links = page.locator("nav.side a");
        const titles = await links.locator(".long").allTextContents();
        assert.ok(titles.length >= 10, titles.join(", "));
        for (const title of titles.filter((one) => one !== "Overview")) {
            await links.filter({ hasText: title }).click();
            await shown(page, title);
            await page.goBack();
            await shown(page, "Overview");
        }
    });

pageTest(server, "a copy of unknown kind is called so, and the others are there", {}, async (page) => {
    const id = server.ids.hostile;
    const { copies } = await server.get(`sessions/${id}/copies`);
    assert.ok(copies.some((copy) => copy.kind === null));
    await page.open(`/sessions/${id}/memory`);
    await shown(page, "Memory");
    const kinds = (await tableRows(page, "copies")).map((row) => row[0]);
    for (const copy of copies) assert.ok(kinds.includes(copy.kind ?? "unknown"), `${copy.kind} in ${kinds}`);
});

// What no session does today: the next defect of this kind must not spread.
pageTest(server, "a part that cannot be shown leaves the rest of the page and the next page alone", { isNoisy: true }, async (page) => {
    const id = server.ids.trace;
    await page.route(/\/copies\?|\/copies$/, (route) => route.fulfill({ json: { copies: [null], memsets: {} } }));
    await page.open(`/sessions/${id}/memory`);
    const broken = page.locator("main .broken");
    await broken.getByText("could not show this part of the page").waitFor();
    assert.equal(await broken.count(), 1);
    await page.getByRole("region", { name: "where the host waited" }).first().waitFor();
    await page.unroute(/\/copies\?|\/copies$/);
    await page.locator("nav.side a", { hasText: "Kernels" }).click();
    await shown(page, "Kernels");
    await page.locator("nav.side a", { hasText: "Memory" }).click();
    await page.reload();
    await shown(page, "Memory");
});
