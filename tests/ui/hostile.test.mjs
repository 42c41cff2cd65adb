// SPDX-License-Identifier: Apache-2.0
// Names full of HTML, right-to-left text, emoji and 10,000 letters are text and break nothing.
import assert from "node:assert/strict";
import { eventually, pageTest, useServer } from "./harness.mjs";

const server = useServer(["hostile"]);
const id = "0192f300-0000-7000-8000-00000000b001";
const names = {
    1: '<img src=x onerror="window.isOwned=true">',
    2: "<script>window.isOwned=true</script>",
    3: "\u202Eشكرا gnp.exe\u202C kernel",
    4: "🚀🔥👩‍👩‍👧‍👦 emoji<int>",
    5: "x".repeat(10_000),
    6: "javascript:window.isOwned=true",
    7: '=HYPERLINK("http://example.invalid")',
};
const cause = `${names[1]} failed ${"y".repeat(400)}`;
const hostile = [
    {
        type: "job_start",
        pid: 7,
        app: '"><b id=owned>app</b>',
        log_path: "",
        ts_ns: 1_789_000_000_000_000_000,
        hostname: "<i>host</i>",
        ip_addr: "",
        host: {},
        devices: [{ id: 0, name: "<u>GPU</u>", uuid: "GPU-<x>" }],
        session_kind: "trace",
    },
    { type: "dictionary_update", kernel_dict: names, scope_name_dict: { 1: "<b>scope</b>" } },
    {
        type: "kernel_event_batch",
        batch_id: 1,
        base_time_ns: 1_789_000_000_000_000_000,
        columns: ["dt_ns", "kernel_id", "stream_id", "duration_ns", "corr_id"],
        rows: Object.keys(names).map((kernel, index) => [index * 1000, Number(kernel), 7, 500 + index, index]),
    },
    {
        type: "loss",
        ts_ns: 1_789_000_000_000_000_000,
        reason: "pm_overflow",
        record_type: "pm_sample_batch",
        count: null,
        message: "could not be read",
        cause,
    },
];

const pages = [
    "/sessions",
    "/fleet",
    `/sessions/${id}`,
    `/sessions/${id}/scopes`,
    `/sessions/${id}/memory`,
    `/sessions/${id}/kernels`,
    `/sessions/${id}/timeline`,
];

for (const width of [1440, 390])
    pageTest(server, `hostile names are text on every page, ${width} px wide`, { width }, async (page) => {
        await server.send(id, hostile);
        for (const path of pages) {
            await page.open(path);
            await page.locator("main h1, main canvas").first().waitFor();
            await page.settled();
            assert.equal(await page.evaluate(() => globalThis.isOwned), undefined, path);
            assert.equal(await page.locator("#owned, main img, main script").count(), 0, path);
            const overflow = await page.evaluate(
                () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
            );
            assert.ok(overflow <= 0, `${path} is ${overflow} px too wide`);
        }
    });

pageTest(server, "a name is shown letter by letter as it was recorded", {}, async (page) => {
    await server.send(id, hostile);
    await page.open(`/sessions/${id}`);
    await eventually(async () =>
        (await page.getByRole("region", { name: "top kernels" }).textContent()).includes(names[2]),
    );
    assert.equal(await page.locator("h1").first().textContent(), '"><b id=owned>app</b>');
    const losses = await page.getByRole("region", { name: "losses" }).textContent();
    assert.ok(losses.includes(`could not be read; first cause: ${cause}`), losses);
});
