// SPDX-License-Identifier: Apache-2.0
// Sessions of the range profiler: kernels were counted, not timed, and counters tell what is known of them.
import assert from "node:assert/strict";
import { axeCheck, eventually, pageTest, tableRows, useServer } from "./harness.mjs";

const server = useServer(["gemmKernels", "gemmScopes", "deep"]);
const withCommas = (value) => value.toLocaleString("en-US");
const DURATION = "gpu__time_duration.sum";
const durationOf = (metrics, kernel) => metrics.find((group) => group.kernel === kernel.name).metrics[DURATION].mean;
// As the page writes it: three digits and a unit.
const timeText = (ns) => {
    const [scale, unit] = ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return `${Number(ns / scale).toPrecision(3)} ${unit}`;
};

pageTest(server, "the overview says what was launched, and that nothing timed it", {}, async (page) => {
    const id = server.ids.gemmKernels;
    const { count, total, kernels } = await server.get(`sessions/${id}/launches`);
    assert.equal(count, 16);
    await page.open(`/sessions/${id}`);
    await page.getByText(`Complete: ${count} kernels counted, not timed, nothing lost`).waitFor();
    const words = `${count} launches of ${total} kernels, not timed`;
    await page.getByRole("region", { name: "where the time went" }).getByText(`Not known: ${words}`).waitFor();
    await page.getByRole("region", { name: "kernels", exact: true }).getByText(words).waitFor();
    await eventually(async () => (await tableRows(page, "launched kernels")).length === total);
    const rows = await tableRows(page, "launched kernels");
    assert.deepEqual(
        rows.map((row) => [row[0], row[1]]),
        kernels.map((kernel) => [kernel.name.split("(")[0], withCommas(kernel.count)]),
    );
    await page.settled();
    for (const text of ["No GPU work was recorded.", "No kernel was recorded."])
        assert.equal(await page.getByText(text).count(), 0);
    await axeCheck(page);
});

pageTest(server, "launched kernels are listed with what counters measured of each", {}, async (page) => {
    const id = server.ids.gemmKernels;
    const { kernels } = await server.get(`sessions/${id}/launches`);
    const { metrics } = await server.get(`sessions/${id}/ranges`);
    await page.open(`/sessions/${id}/kernels`);
    await page.getByRole("button", { name: /^duration/ }).click();
    const expected = kernels
        .map((kernel) => ({ ...kernel, ns: durationOf(metrics, kernel) }))
        .sort((a, b) => b.ns - a.ns);
    await eventually(async () => (await tableRows(page, "launched kernels"))[0]?.[0] === "gemm_naive");
    const rows = await tableRows(page, "launched kernels");
    assert.deepEqual(
        rows.map((row) => row.slice(0, 4)),
        expected.map((kernel) => [
            kernel.name.split("(")[0],
            withCommas(kernel.count),
            withCommas(metrics.find((group) => group.kernel === kernel.name).results),
            timeText(kernel.ns),
        ]),
    );
    assert.equal(await page.getByText(/No kernel times were recorded/).count(), 0);
});

pageTest(server, "a launched kernel's page has its metrics and its roofline", {}, async (page) => {
    const id = server.ids.gemmKernels;
    const { kernels } = await server.get(`sessions/${id}/launches`);
    const { metrics } = await server.get(`sessions/${id}/ranges`);
    const kernel = kernels.find((candidate) => candidate.name.startsWith("gemm_tensor_core"));
    const own = metrics.find((group) => group.kernel === kernel.name).metrics;
    await page.open(`/sessions/${id}/kernels`);
    await page.getByRole("link", { name: "gemm_tensor_core" }).click();
    await page.waitForURL(new RegExp(`/kernel\\?id=${kernel.kernel_id}$`));
    await page.getByText("not recorded: its launches were not timed").waitFor();
    await page.getByRole("img", { name: /^roofline: .* operations a byte$/ }).waitFor();
    const rows = await tableRows(page, "range metrics");
    assert.deepEqual(
        rows.map((row) => row[0]),
        Object.keys(own).slice(0, rows.length),
    );
    assert.equal(rows.find((row) => row[0] === DURATION)[1], timeText(own[DURATION].mean));
    const figures = await page
        .locator(".figures > div")
        .evaluateAll((parts) => parts.map((part) => [...part.children].map((child) => child.textContent)));
    assert.deepEqual(figures.slice(0, 3), [
        ["launches, not timed", withCommas(kernel.count)],
        ["measured", withCommas(own[DURATION].count)],
        ["duration", timeText(own[DURATION].mean)],
    ]);
    await page.settled();
    await axeCheck(page);
});

pageTest(server, "a scope that counters measured shows its metrics, and its launches", {}, async (page) => {
    const id = server.ids.gemmScopes;
    const { scopes, outside_scopes: outside } = await server.get(`sessions/${id}/scopes`);
    const { metrics } = await server.get(`sessions/${id}/ranges`);
    await page.open(`/sessions/${id}/scopes?by=gpu`);
    await eventually(async () => (await tableRows(page, "scopes")).length === scopes.length);
    const heads = await page.locator('[role=region][aria-label="scopes"] thead th').allTextContents();
    assert.ok(!heads.some((head) => head.includes("GPU")), heads.join());
    const column = heads.findIndex((head) => head.startsWith("kernels"));
    assert.deepEqual(
        (await tableRows(page, "scopes")).map((row) => row[column]),
        scopes.map((scope) => withCommas(scope.untimed_launches)),
    );
    await page.getByText(`outside of scopes: ${outside.untimed_launches} kernels, counted, not timed`).waitFor();
    assert.ok(await page.getByRole("button", { name: "GPU time" }).isDisabled());
    await page.getByRole("cell", { name: "coalesced" }).click();
    const own = metrics.find((group) => group.scope === "coalesced");
    const part = page.getByRole("region", { name: "metrics of the scope" });
    await part.getByText(`1 result of ${own.instances} calls on GPU 0`).waitFor();
    await eventually(async () =>
        (await tableRows(page, "range metrics")).some(
            (row) => row[0] === DURATION && row[1] === timeText(own.metrics[DURATION].mean),
        ),
    );
    await page.getByText("60 launches of 1 kernel, not timed").waitFor();
});

pageTest(server, "a scope without metrics says why", { width: 390, height: 844 }, async (page) => {
    const id = server.ids.gemmScopes;
    const { metrics } = await server.get(`sessions/${id}/ranges`);
    const without = metrics.filter((group) => group.reason !== null);
    assert.ok(without.length > 0);
    for (const group of without.slice(0, 2)) {
        await page.open(`/sessions/${id}/scopes?scope=${encodeURIComponent(group.scope)}`);
        const part = page.getByRole("region", { name: "metrics of the scope" });
        await part.getByText(group.reason).waitFor();
        assert.equal((await tableRows(page, "range metrics")).length, 0);
    }
});

pageTest(server, "launches beside timed kernels are counted, not mixed with them", {}, async (page) => {
    const id = server.ids.deep;
    const { count } = await server.get(`sessions/${id}/kernels`);
    const launches = await server.get(`sessions/${id}/launches`);
    assert.ok(count > 0 && launches.count > 0);
    await page.open(`/sessions/${id}`);
    await page.getByText(`; ${launches.count} more counted, not timed`).waitFor();
    await page.open(`/sessions/${id}/kernels`);
    await page.getByText(`${count} executions of`).waitFor();
    await eventually(async () => (await tableRows(page, "launched kernels")).length === launches.total);
    assert.deepEqual(
        (await tableRows(page, "launched kernels")).map((row) => row[1]),
        launches.kernels.map((kernel) => withCommas(kernel.count)),
    );
});
