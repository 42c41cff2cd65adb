// SPDX-License-Identifier: Apache-2.0
// Overview, scopes, memory, fleet and settings show the numbers that the server gives.
import assert from "node:assert/strict";
import { eventually, pageTest, tableRows, useServer } from "./harness.mjs";

const server = useServer(["h200", "trace", "gpus", "killed", "bench", "monitor", "empty"]);
const withCommas = (value) => value.toLocaleString("en-US");
const percent = (fraction) => `${(fraction * 100).toFixed(1)} %`;

pageTest(server, "the overview says how busy the GPU was and how complete the data is", {}, async (page) => {
    const id = server.ids.h200;
    const { time, wall_ns } = await server.get(`sessions/${id}/time`);
    await page.open(`/sessions/${id}`);
    const part = page.getByRole("region", { name: "where the time went" });
    await part
        .getByText(percent(time[0].busy_ns / wall_ns))
        .first()
        .waitFor();
    const { completeness } = await server.get(`sessions/${id}`);
    await page.getByText(`Complete: ${withCommas(completeness.kernels)} kernels, nothing lost`).waitFor();
    assert.equal(await part.getByRole("link").count(), 100);
});

pageTest(server, "the overview's kernels are the server's, most time first", {}, async (page) => {
    const id = server.ids.h200;
    const { kernels } = await server.get(`sessions/${id}/kernels`, { limit: 15 });
    await page.open(`/sessions/${id}`);
    await eventually(async () => (await tableRows(page, "top kernels")).length === kernels.length);
    const rows = await tableRows(page, "top kernels");
    assert.deepEqual(
        rows.map((row) => row[3]),
        kernels.map((kernel) => withCommas(kernel.count)),
    );
    assert.deepEqual(
        rows.map((row) => row[2]),
        kernels.map((kernel) => percent(kernel.share)),
    );
});

pageTest(server, "a bin of the overview opens its stretch in the timeline", {}, async (page) => {
    const id = server.ids.h200;
    const { bin_ns } = await server.get(`sessions/${id}/time`);
    await page.open(`/sessions/${id}`);
    const bin = page.getByRole("region", { name: "where the time went" }).getByRole("link").nth(61);
    const address = new URL(await bin.getAttribute("href"), server.url);
    assert.equal(address.pathname, `/sessions/${id}/timeline`);
    assert.equal(address.searchParams.get("t"), `${61 * bin_ns}~${62 * bin_ns}`);
});

pageTest(server, "every insight of the server is on the overview, with a way to look at it", {}, async (page) => {
    const id = server.ids.trace;
    const { insights } = await server.get(`sessions/${id}/insights`);
    assert.ok(insights.length > 0);
    await page.open(`/sessions/${id}`);
    const shown = page.getByRole("region", { name: "insights" }).getByRole("listitem");
    await eventually(async () => (await shown.count()) === insights.length);
    for (const [index, insight] of insights.entries()) {
        assert.ok((await shown.nth(index).textContent()).includes(insight.text));
        assert.match(await shown.nth(index).getByRole("link").getAttribute("href"), new RegExp(`^/sessions/${id}/`));
    }
});

pageTest(server, "a session that broke off says what is missing on its pages", {}, async (page) => {
    for (const path of ["", "/scopes", "/memory"]) {
        await page.open(`/sessions/${server.ids.killed}${path}`);
        await page.getByText(/^Not complete:/).waitFor();
    }
});

pageTest(server, "a session without GPU work has an overview too", {}, async (page) => {
    await page.open(`/sessions/${server.ids.empty}`);
    await page.getByText("No GPU work was recorded.").waitFor();
    await page.getByText("No kernel was recorded.").waitFor();
});

pageTest(server, "scopes are listed as a tree, fold, and show the kernels inside", {}, async (page) => {
    const id = server.ids.h200;
    const { scopes } = await server.get(`sessions/${id}/scopes`);
    await page.open(`/sessions/${id}/scopes`);
    await eventually(async () => (await tableRows(page, "scopes")).length === scopes.length);
    assert.deepEqual(
        (await tableRows(page, "scopes")).map((row) => row[6]),
        scopes.map((scope) => withCommas(scope.calls)),
    );
    await page.getByRole("button", { name: "fold step" }).click();
    const below = scopes.filter((scope) => scope.path.startsWith("step > ")).length;
    await eventually(async () => (await tableRows(page, "scopes")).length === scopes.length - below);
    await page.reload();
    await eventually(async () => (await tableRows(page, "scopes")).length === scopes.length - below);
    await page
        .getByRole("group", { name: /scopes by/ })
        .getByRole("button", { name: "optimizer" })
        .click();
    const inside = await server.get(`sessions/${id}/kernels`, { scope: "step > optimizer", limit: 200 });
    await page.getByText(`${withCommas(inside.count)} executions`).waitFor();
    assert.equal((await tableRows(page, "kernels inside")).length, inside.kernels.length);
});

pageTest(server, "benchmark scopes have times per iteration", {}, async (page) => {
    await page.open(`/sessions/${server.ids.bench}/scopes`);
    await page.getByRole("button", { name: "per iteration", exact: true }).waitFor();
});

pageTest(server, "copies, waits and allocations are the server's", {}, async (page) => {
    const id = server.ids.trace;
    const { copies, memsets } = await server.get(`sessions/${id}/copies`);
    const { syncs } = await server.get(`sessions/${id}/syncs`);
    const { kept, memory } = await server.get(`sessions/${id}/allocations`);
    await page.open(`/sessions/${id}/memory`);
    await eventually(
        async () => (await tableRows(page, "copies")).length === copies.length + (memsets.calls > 0 ? 1 : 0),
    );
    await eventually(async () => (await tableRows(page, "waits by call")).length === syncs.length);
    await eventually(async () => (await tableRows(page, "memory by kind")).length === memory.length);
    assert.equal((await tableRows(page, "blocks never freed")).length, kept.length);
    const h2d = copies.find((copy) => copy.kind === "H2D");
    const row = (await tableRows(page, "copies")).find((cells) => cells[0] === "H2D");
    assert.equal(row[5], `${(h2d.bytes / h2d.total_ns).toPrecision(3)} GB/s`);
});

pageTest(server, "the fleet has every GPU, and one click shows its history and sessions", {}, async (page) => {
    const { hosts } = await server.get("hosts");
    const gpus = hosts.flatMap((host) => host.gpus);
    await page.open("/fleet");
    await page.getByText(new RegExp(`${hosts.length} hosts? · ${gpus.length} GPUs?`)).waitFor();
    const host = page.getByRole("group", { name: "node17", exact: true });
    const shown = gpus.find((gpu) => gpu.uuid === "GPU-0");
    await host.getByText(`${shown.metrics.gpu_util} %`).waitFor();
    await host.getByRole("button").first().click();
    await page.getByRole("img", { name: "GPU utilization over time" }).waitFor();
    assert.match(await page.getByRole("link", { name: "its sessions" }).getAttribute("href"), /gpu=GPU-/);
});

pageTest(server, "settings show what the server holds", {}, async (page) => {
    const about = await server.get("server");
    await page.open("/settings");
    const part = page.getByRole("region", { name: "about" });
    await part.getByText(withCommas(about.rows), { exact: true }).waitFor();
    await part.getByText(about.version, { exact: true }).waitFor();
});
