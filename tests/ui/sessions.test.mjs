// SPDX-License-Identifier: Apache-2.0
// The list of sessions: numbers as the server has them, filters, order, comparison, downloads.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { eventually, pageTest, tableRows, useServer } from "./harness.mjs";

const server = useServer(["h200", "trace", "deep", "gpus", "killed", "bench"]);

pageTest(server, "every session is listed with the kernels that the server counts", {}, async (page) => {
    const { sessions } = await server.get("sessions");
    await page.open("/sessions");
    await eventually(async () => (await tableRows(page, "sessions")).length === sessions.length);
    const rows = await tableRows(page, "sessions");
    const shown = rows.map((row) => `${row[1]} ${row[5]}`).sort();
    assert.deepEqual(
        shown,
        sessions.map((session) => `${session.app} ${session.kernels.toLocaleString("en-US")}`).sort(),
    );
});

pageTest(server, "runs with GPU work have a picture of it", {}, async (page) => {
    await page.open("/sessions");
    const label = await page.locator(`tr:has(a[href*="${server.ids.h200}"]) svg.spark`).getAttribute("aria-label");
    const { busy } = await server.get(`sessions/${server.ids.h200}/activity`, { bins: 60 });
    const mean = busy.reduce((sum, value) => sum + value, 0) / busy.length;
    assert.ok(label.includes(`${(mean * 100).toFixed(1)} %`), label);
});

pageTest(server, "a filter is in the address, narrows the list and is restored from it", {}, async (page) => {
    const { sessions } = await server.get("sessions", { app: "train.py" });
    await page.open("/sessions");
    await page.getByRole("combobox", { name: "every app" }).selectOption("train.py");
    await page.waitForURL(/app=train\.py/);
    await eventually(async () => (await tableRows(page, "sessions")).length === sessions.length);
    await page.reload();
    await eventually(async () => (await tableRows(page, "sessions")).length === sessions.length);
    assert.ok((await tableRows(page, "sessions")).every((row) => row[1].startsWith("train.py")));
});

pageTest(server, "a click on a heading sorts, and again the other way", {}, async (page) => {
    await page.open("/sessions");
    const column = async () => (await tableRows(page, "sessions")).map((row) => Number(row[5].replaceAll(",", "")));
    await page.getByRole("button", { name: "kernels", exact: true }).click();
    await page.waitForURL(/s\.sort=-kernels/);
    const down = await column();
    assert.deepEqual(
        down,
        [...down].sort((a, b) => b - a),
    );
    await page.getByRole("button", { name: /^kernels/ }).click();
    const up = await column();
    assert.deepEqual(
        up,
        [...up].sort((a, b) => a - b),
    );
});

pageTest(server, "two ticked sessions can be compared", {}, async (page) => {
    await page.open("/sessions");
    await page.locator(`tr:has(a[href*="${server.ids.trace}"]) input`).check();
    await page.locator(`tr:has(a[href*="${server.ids.deep}"]) input`).check();
    const link = page.getByRole("link", { name: /^Compare train\.py/ });
    await link.waitFor();
    const address = new URL(await link.getAttribute("href"), server.url);
    assert.equal(address.searchParams.get("a"), server.ids.trace);
    assert.equal(address.searchParams.get("b"), server.ids.deep);
});

pageTest(server, "the list can be taken along as CSV and JSON", {}, async (page) => {
    const { sessions } = await server.get("sessions");
    await page.open("/sessions");
    await eventually(async () => (await tableRows(page, "sessions")).length === sessions.length);
    const take = async (name) => {
        const [file] = await Promise.all([
            page.waitForEvent("download"),
            page.getByRole("button", { name, exact: true }).click(),
        ]);
        return readFileSync(await file.path(), "utf8");
    };
    const rows = JSON.parse(await take("JSON"));
    assert.deepEqual(
        rows.map((row) => row.kernels).sort((a, b) => a - b),
        sessions.map((session) => session.kernels).sort((a, b) => a - b),
    );
    const csv = (await take("CSV")).trim().split("\r\n");
    assert.equal(csv.length, sessions.length + 1);
    assert.ok(csv[0].includes("kernel_ns"));
});

pageTest(server, "the trend of an app has a point for each of its sessions", {}, async (page) => {
    const { sessions } = await server.get("sessions", { app: "train.py" });
    await page.open("/sessions?app=train.py");
    const points = page.getByRole("group", { name: /wall time of train\.py/ }).getByRole("button");
    await eventually(async () => (await points.count()) === sessions.length);
});

pageTest(server, "a session of which rows have not arrived is called incomplete", {}, async (page) => {
    const id = "0192f300-0000-7000-8000-00000000a001";
    const ts_ns = 1789000000000000000;
    await server.send(id, [
        { type: "job_start", app: "holed", hostname: "node1", pid: 1, session_kind: "trace", ts_ns },
        { type: "shutdown", ts_ns: ts_ns + 1000000000, rows: { kernel_event_batch: 12 } },
    ]);
    await page.open("/sessions?app=holed");
    const state = page.locator(`tr:has(a[href*="${id}"])`).getByText("incomplete");
    assert.equal(await state.getAttribute("title"), "12 rows have not arrived");
});
