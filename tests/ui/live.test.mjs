// SPDX-License-Identifier: Apache-2.0
// What changes on the server changes on the screen; a server that is gone is said to be, and found again.
import assert from "node:assert/strict";
import { eventually, pageTest, tableRows, useServer } from "./harness.mjs";

const server = useServer(["trace"]);
const nowNs = () => BigInt(Date.now()) * 1_000_000n;

const jobStart = (app) => ({
    type: "job_start",
    pid: 7,
    app,
    log_path: "",
    ts_ns: Number(nowNs()),
    hostname: "node1",
    ip_addr: "",
    host: {},
    devices: [{ id: 0, name: "NVIDIA H200", uuid: "GPU-live" }],
    session_kind: "trace",
});
const kernels = (batch, count) => ({
    type: "kernel_event_batch",
    batch_id: batch,
    base_time_ns: Number(nowNs()),
    columns: ["dt_ns", "kernel_id", "stream_id", "duration_ns", "corr_id"],
    rows: Array.from({ length: count }, (_unused, index) => [index * 1000, 1, 7, 500, batch * 1000 + index]),
});
const names = { type: "dictionary_update", kernel_dict: { 1: "live_kernel" } };

pageTest(server, "a session that begins appears in the list, and its counts grow", {}, async (page) => {
    const id = "0192f300-0000-7000-8000-00000000a001";
    await page.open("/sessions");
    await eventually(async () => (await tableRows(page, "sessions")).length === 1);
    await server.send(id, [jobStart("begins"), names, kernels(1, 10)]);
    const row = page.locator(`tr:has(a[href*="${id}"])`);
    await row.getByText("live").waitFor();
    await eventually(async () => (await row.locator("td").nth(5).textContent()) === "10");
    await server.send(id, [kernels(2, 15)]);
    await eventually(async () => (await row.locator("td").nth(5).textContent()) === "25");
});

pageTest(server, "the overview of a live session follows it", {}, async (page) => {
    const id = "0192f300-0000-7000-8000-00000000a002";
    await server.send(id, [jobStart("follows"), names, kernels(1, 10)]);
    await page.open(`/sessions/${id}`);
    await page.getByText(/10 executions of 1 kernel/).waitFor();
    await server.send(id, [kernels(2, 20)]);
    await page.getByText(/30 executions of 1 kernel/).waitFor();
});

pageTest(server, "the fleet shows a GPU's sample as it comes", {}, async (page) => {
    const id = "0192f300-0000-7000-8000-00000000a003";
    const sample = (batch, util) => ({
        type: "device_metric_batch",
        batch_id: batch,
        base_time_ns: Number(nowNs()),
        columns: [
            "dt_ns",
            "device_id",
            "gpu_util",
            "mem_util",
            "temp_c",
            "power_mw",
            "used_mib",
            "total_mib",
            "clock_sm",
        ],
        rows: [[0, 0, util, 5, 60, 400_000, 1000, 143_771, 1980]],
    });
    await server.send(id, [jobStart("watches"), sample(1, 41)]);
    await page.open("/fleet");
    const host = page.getByRole("group", { name: "node1", exact: true });
    await host.getByText("41 %").waitFor();
    await server.send(id, [sample(2, 87)]);
    await host.getByText("87 %").waitFor();
});

pageTest(server, "GPUs of two sessions that share a number keep their own values", {}, async (page) => {
    // Each session sees one GPU of the host, as with CUDA_VISIBLE_DEVICES, and calls it 0.
    const gpus = [
        { id: "0192f300-0000-7000-8000-00000000a006", uuid: "GPU-aaaa", util: 31, power: 400_000 },
        { id: "0192f300-0000-7000-8000-00000000a007", uuid: "GPU-bbbb", util: 52, power: 104_000 },
    ];
    const sample = (batch, { util, power }) => ({
        type: "device_metric_batch",
        batch_id: batch,
        base_time_ns: Number(nowNs()),
        columns: ["dt_ns", "device_id", "gpu_util", "power_mw"],
        rows: [[0, 0, util, power]],
    });
    const start = (gpu) => ({
        ...jobStart("shares"),
        hostname: "node4",
        devices: [{ id: 0, name: "NVIDIA H200", uuid: gpu.uuid }],
    });
    for (const gpu of gpus) await server.send(gpu.id, [start(gpu), sample(1, gpu)], "node4");
    await page.open("/fleet");
    const host = page.getByRole("group", { name: "node4", exact: true });
    await host.getByText("power 504 W").waitFor();
    await host.getByText("GPU0 …aaaa").waitFor();
    for (const [index, gpu] of gpus.entries()) {
        await server.send(gpu.id, [sample(2, { util: 60 + index, power: gpu.power + 5000 })], "node4");
        await host.getByText(`${60 + index} %`).waitFor();
    }
    await host.getByText("power 514 W").waitFor();
    assert.equal(await host.getByText("60 %").count(), 1);
    assert.equal(await host.getByText("61 %").count(), 1);
});

pageTest(server, "a host with GPUs of two vendors says of each what it has", {}, async (page) => {
    const id = "0192f300-0000-7000-8000-00000000a005";
    const devices = [
        { id: 0, name: "NVIDIA H200", uuid: "GPU-first", vendor: "NVIDIA" },
        { id: 1, name: "AMD Instinct MI300X", uuid: "GPU-second", vendor: "AMD" },
    ];
    const samples = {
        type: "device_metric_batch",
        batch_id: 1,
        base_time_ns: Number(nowNs()),
        columns: ["dt_ns", "device_id", "gpu_util", "temp_c", "clock_sm", "temp_junction_c", "fan_rpm"],
        rows: [
            [0, 0, 42, 60, 1980, null, null],
            [0, 1, 88, 61, 2094, 61, 1234],
        ],
    };
    await server.send(id, [{ ...jobStart("mixed"), hostname: "node3", devices }, samples]);
    await page.open("/fleet");
    const host = page.getByRole("group", { name: "node3", exact: true });
    await host.getByText("88 %").waitFor();
    const words = async (position) => {
        await host.getByRole("button").nth(position).hover();
        const tip = page.getByRole("tooltip");
        await tip.getByText(devices[position].name).waitFor();
        return tip.innerText();
    };
    const second = await words(1);
    assert.match(second, /junction\s+61\.0 °C/);
    assert.match(second, /fan\s+1,234 rpm/);
    const first = await words(0);
    assert.doesNotMatch(first, /junction|fan/);
    for (const text of [first, second]) {
        assert.match(text, /core clock/);
        assert.doesNotMatch(text, /\bSM\b|NVLink/);
    }
});

pageTest(server, "a machine without GPUs is in the fleet with its CPU and memory", {}, async (page) => {
    const id = "0192f300-0000-7000-8000-00000000a004";
    const load = {
        type: "host_metric_batch",
        batch_id: 1,
        base_time_ns: Number(nowNs()),
        columns: ["dt_ns", "cpu_pct_x100", "ram_used_mib", "ram_total_mib"],
        rows: [[0, 4250, 8192, 32768]],
    };
    await server.send(id, [{ ...jobStart("host only"), hostname: "node2", devices: [] }, load]);
    await page.open("/fleet");
    const host = page.getByRole("group", { name: "node2", exact: true });
    await host.getByText("RAM 25.0 % of 32.0 GiB").waitFor();
    await host.getByText("CPU 42.5 %").waitFor();
    await host.getByText("no GPU was seen").waitFor();
    assert.equal(await host.getByText("last sample").count(), 0);
});

pageTest(
    server,
    "a server that is gone is said to be, with what was there, and found again",
    { isNoisy: true },
    async (page) => {
        await page.open("/sessions");
        await eventually(async () => (await tableRows(page, "sessions")).length > 0);
        const before = (await tableRows(page, "sessions")).length;
        await server.kill();
        await page.locator(".live.is-lost").waitFor();
        assert.match(await page.locator(".live.is-lost").textContent(), /no connection for/);
        assert.equal((await tableRows(page, "sessions")).length, before);
        // A page that was never asked for says what is wrong instead of nothing.
        await page.getByRole("link", { name: "Settings" }).click();
        await page.getByRole("alert").first().waitFor();
        await server.start();
        await page.getByRole("region", { name: "about" }).waitFor();
        await page.getByRole("link", { name: "Sessions" }).click();
        await page.locator(".live.is-live").first().waitFor();
        await eventually(async () => (await tableRows(page, "sessions")).length === before);
        assert.equal(await page.locator(".banner").count(), 0);
    },
);

pageTest(server, "an answer that is an error is shown and tried again", { isNoisy: true }, async (page) => {
    let isBroken = true;
    await page.route("**/api/v1/sessions/*/scopes*", (call) =>
        isBroken
            ? call.fulfill({
                  status: 503,
                  contentType: "application/json",
                  body: '{"error":{"code":"store_busy","message":"the store is busy"}}',
              })
            : call.continue(),
    );
    await page.open(`/sessions/${server.ids.trace}/scopes`);
    await page.getByRole("alert").getByText("the store is busy").first().waitFor();
    isBroken = false;
    await eventually(async () => (await tableRows(page, "scopes")).length > 0);
});

pageTest(server, "a slow answer is waited for, and the page says so", {}, async (page) => {
    let release;
    const held = new Promise((done) => (release = done));
    await page.route("**/api/v1/sessions/*/scopes*", async (call) => {
        await held;
        await call.continue();
    });
    await page.open(`/sessions/${server.ids.trace}/scopes`);
    await page.getByText("Loading scopes…").waitFor();
    release();
    await eventually(async () => (await tableRows(page, "scopes")).length > 0);
});
