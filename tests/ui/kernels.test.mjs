// SPDX-License-Identifier: Apache-2.0
// Kernels and one kernel: the numbers are the server's, and the calculator starts where the recorder ended.
import assert from "node:assert/strict";
import { axeCheck, eventually, pageTest, tableRows, useServer } from "./harness.mjs";
import { hostileName, saxpySessions, saxpyUpload } from "./saxpy_sessions.mjs";

const server = useServer(["h200", "ranges", "killed", "monitor"], { prepare: saxpyUpload });
const withCommas = (value) => value.toLocaleString("en-US");
const saxpy = () => `/sessions/${saxpySessions.before.id}`;

pageTest(server, "every kernel is listed with the server's numbers and its durations in small", {}, async (page) => {
    const id = server.ids.h200;
    const { kernels, count, total } = await server.get(`sessions/${id}/kernels`, { limit: 1000 });
    await page.open(`/sessions/${id}/kernels`);
    await page.getByText(`${withCommas(count)} executions of ${total} kernels`).waitFor();
    const rows = await tableRows(page, "kernels");
    assert.ok(rows.length >= 20);
    assert.deepEqual(
        rows.map((row) => row[3]),
        kernels.slice(0, rows.length).map((kernel) => withCommas(kernel.count)),
    );
    for (const [index, row] of rows.entries()) {
        const { launch } = kernels[index];
        assert.ok(
            row[7].startsWith(`${launch.occupancy_bp / 100}`.slice(0, 2)) && row[7].endsWith(`(${launch.limiter})`),
            row[7],
        );
        assert.equal(row[8], String(launch.num_regs));
    }
    // As many bars as the list's histogram has bins, and as high as its counts.
    const { histograms } = await server.get(`sessions/${id}/kernels`, { limit: 1, bins: 20 });
    const heights = await page
        .locator(".histogram")
        .first()
        .locator("rect")
        .evaluateAll((bars) => bars.map((bar) => Number(bar.getAttribute("height"))));
    const most = Math.max(...histograms[0].counts);
    assert.equal(heights.length, 20);
    for (const [bin, height] of heights.entries())
        assert.ok(
            Math.abs(
                height - (histograms[0].counts[bin] > 0 ? Math.max(1, (histograms[0].counts[bin] / most) * 16) : 0),
            ) < 0.01,
            `bin ${bin}`,
        );
});

pageTest(server, "sorting and filtering are in the address, and come back with it", {}, async (page) => {
    const id = server.ids.h200;
    await page.open(`/sessions/${id}/kernels`);
    await page.getByRole("button", { name: "calls" }).click();
    await page.getByLabel("filter kernels").fill("reduce_kernel");
    const { kernels } = await server.get(`sessions/${id}/kernels`, { q: "reduce_kernel", sort: "count", limit: 100 });
    const calls = kernels.map((kernel) => withCommas(kernel.count));
    await eventually(async () => (await tableRows(page, "kernels")).length === kernels.length);
    assert.deepEqual(
        (await tableRows(page, "kernels")).map((row) => row[3]),
        calls,
    );
    await page.reload();
    await eventually(async () => (await tableRows(page, "kernels")).length === kernels.length);
    assert.deepEqual(
        (await tableRows(page, "kernels")).map((row) => row[3]),
        calls,
    );
});

pageTest(server, "the list of a scope is that scope's", {}, async (page) => {
    const id = server.ids.h200;
    const inside = await server.get(`sessions/${id}/kernels`, { scope: "step > optimizer", limit: 1000 });
    await page.open(`/sessions/${id}/kernels?scope=${encodeURIComponent("step > optimizer")}`);
    await page.getByText(`${withCommas(inside.count)} executions of ${inside.total} kernels`).waitFor();
    await page.getByRole("button", { name: /scope step > optimizer/ }).click();
    const whole = await server.get(`sessions/${id}/kernels`, { limit: 1 });
    await page.getByText(`${withCommas(whole.count)} executions`).waitFor();
});

pageTest(server, "a session without kernels says what would record them", {}, async (page) => {
    await page.open(`/sessions/${server.ids.monitor}/kernels`);
    await page.getByText(/No kernel times were recorded/).waitFor();
    await page.getByText(`gpufl trace --upload ${server.url} -- ./program`).waitFor();
});

pageTest(server, "a click on a kernel shows its durations, launches and times", {}, async (page) => {
    const id = server.ids.h200;
    const { kernels } = await server.get(`sessions/${id}/kernels`, { limit: 1 });
    const [kernel] = kernels;
    const { launches } = await server.get(`sessions/${id}/kernels/${kernel.kernel_id}/occupancy`);
    const { steps } = await server.get(`sessions/${id}/kernels/${kernel.kernel_id}/durations`, { steps: 150 });
    await page.open(`/sessions/${id}/kernels`);
    await page.getByRole("region", { name: "kernels" }).getByRole("link").first().click();
    await page.waitForURL(new RegExp(`/sessions/${id}/kernel\\?id=${kernel.kernel_id}$`));
    const image = page.getByRole("img", { name: /^durations of/ });
    await image.waitFor();
    assert.ok(
        (await image.getAttribute("aria-label")).startsWith(
            `durations of ${withCommas(kernel.count)} executions, median 12.9 µs`,
        ),
    );
    await eventually(async () => (await tableRows(page, "launch configurations")).length === launches.length);
    assert.deepEqual(
        (await tableRows(page, "launch configurations")).map((row) => row[5]),
        launches.map((launch) => withCommas(launch.count)),
    );
    assert.equal(await page.locator(".plot .step").count(), steps.length);
    await page.getByText(kernel.name, { exact: true }).waitFor();
});

pageTest(server, "the calculator agrees with every launch that was recorded", {}, async (page) => {
    const id = server.ids.h200;
    const { kernels } = await server.get(`sessions/${id}/kernels`, { limit: 1000 });
    const seen = new Set();
    for (const kernel of kernels) {
        const { launches } = await server.get(`sessions/${id}/kernels/${kernel.kernel_id}/occupancy`);
        for (const [index, { launch }] of launches.entries()) {
            const key = [launch.block, launch.num_regs, launch.static_shared_bytes + launch.dyn_shared_bytes].join();
            if (seen.has(key)) continue;
            seen.add(key);
            const address = `/sessions/${id}/kernel?id=${kernel.kernel_id}${index ? `&launch=${index}` : ""}`;
            if (seen.size === 1) await page.open(address);
            else
                await page.evaluate((to) => {
                    history.pushState(null, "", to);
                    dispatchEvent(new PopStateEvent("popstate"));
                }, address);
            await page.locator(`#calc-regs`).waitFor();
            await eventually(
                async () => (await page.locator("#calc-regs").inputValue()) === String(launch.num_regs),
                `registers of ${key}`,
            );
            const shown = page.getByTestId("occupancy");
            await eventually(
                async () => (await shown.getAttribute("data-bp")) === String(launch.occupancy_bp),
                `occupancy of ${key}`,
            );
            const words = await page.locator(".calculator").textContent();
            assert.match(words, new RegExp(`${launch.active_blocks_max} blocks, .* limited by ${launch.limiter}`), key);
        }
    }
    assert.ok(seen.size >= 20, `${seen.size} different launches`);
});

pageTest(server, "other numbers give another occupancy, which the address keeps", {}, async (page) => {
    await page.open(`${saxpy()}/kernel?id=1`);
    const shown = page.getByTestId("occupancy");
    await eventually(async () => (await shown.textContent()) === "25 %");
    await page.getByLabel("registers per thread", { exact: true }).fill("32");
    await eventually(async () => (await shown.textContent()) === "100 %");
    await page.getByLabel("shared memory, bytes", { exact: true }).fill("49152");
    await eventually(async () => (await shown.textContent()) === "50 %");
    await page.getByText(/limited by shared memory/).waitFor();
    await page.reload();
    await eventually(async () => (await shown.textContent()) === "50 %");
    await page.getByLabel("shared memory, bytes", { exact: true }).fill("999999");
    await page.getByText(/no block fits/).waitFor();
    await page.getByRole("button", { name: /as recorded: 25 %/ }).click();
    await eventually(async () => (await shown.textContent()) === "25 %");
});

pageTest(server, "a roofline has the operations and bytes that were counted", {}, async (page) => {
    await page.open(`${saxpy()}/kernel?id=1`);
    // 2 x 1,048,576 operations on 12 MiB in 100 us.
    await page
        .getByText(
            /21\.0 GFLOP\/s at 0\.167 operations per byte of DRAM traffic; the memory roof there is 800 GFLOP\/s, 2\.6 % of it was reached/,
        )
        .waitFor();
    await page.getByRole("img", { name: /^roofline: 21\.0 GFLOP\/s/ }).waitFor();
    assert.deepEqual((await tableRows(page, "range metrics"))[0].slice(0, 2), ["gpu__time_duration.sum", "100 µs"]);
});

pageTest(server, "where nothing was counted the page says what to run", {}, async (page) => {
    await page.open(`/sessions/${server.ids.h200}/kernel?id=19`);
    await page
        .getByText(`gpufl trace --engine RangeProfiler --range-mode kernel --range-metrics roofline --upload ${server.url} -- ./program`)
        .waitFor();
    await page.getByText(`gpufl trace --engine PcSampling --upload ${server.url} -- ./program`).waitFor();
    await page.open(`/sessions/${server.ids.ranges}/kernel?id=1`);
    await page.getByText("not drawn: operations were not counted").waitFor();
});

pageTest(server, "stalls of a kernel lead to its code", {}, async (page) => {
    await page.open(`${saxpy()}/kernel?id=1`);
    const stalls = page.getByRole("region", { name: "Stalls" });
    await stalls.getByText("1,000 samples").waitFor();
    assert.match(await stalls.textContent(), /long_scoreboard85\.0 %selected10\.0 %wait5\.0 %/);
    await stalls.getByRole("link").click();
    await page.getByRole("heading", { name: "Code" }).waitFor();
});

pageTest(server, "a name full of markup is text on every page", { width: 1440 }, async (page) => {
    const id = saxpySessions.after.id;
    page.on("dialog", () => assert.fail("a name was executed"));
    const places = [
        [`/sessions/${id}/kernels`, /templated/],
        [`/compare?a=${saxpySessions.before.id}&b=${id}`, /<img src=x onerror=alert\(1\)>/],
        [`/sessions/${id}/kernel?id=3`, /<img src=x onerror=alert\(1\)>/],
    ];
    for (const [path, text] of places) {
        await page.open(path);
        await page.getByText(text).first().waitFor();
        assert.equal(await page.locator("img").count(), 0);
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(width <= 1440, `${path} is ${width} px wide`);
    }
    assert.equal(await page.locator(".full-name").textContent(), hostileName);
});

pageTest(server, "a session that broke off says so beside its kernels", {}, async (page) => {
    await page.open(`/sessions/${server.ids.killed}/kernels`);
    await page.getByText(/^Not complete:/).waitFor();
});

for (const [theme, width] of [
    ["dark", 1440],
    ["light", 1440],
    ["dark", 390],
])
    pageTest(
        server,
        `axe finds nothing serious on a measured kernel, ${theme}, ${width} px wide`,
        { theme, width },
        async (page) => {
            await page.open(`${saxpy()}/kernel?id=1`);
            await page.getByRole("img", { name: /^roofline/ }).waitFor();
            await axeCheck(page);
            assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
        },
    );
