// SPDX-License-Identifier: Apache-2.0
// The timeline shows the server's data, follows navigation, and its address restores the whole view.
import assert from "node:assert/strict";
import { axeCheck, eventually, pageTest, tableRows, useServer } from "./harness.mjs";

const server = useServer(["h200", "trace", "gpus", "empty", "killed"]);
const withCommas = (value) => value.toLocaleString("en-US");

// Responses with times as bigints.
async function exact(path, params = {}) {
    const answer = await server.ask(`/api/v1/${path}?${new URLSearchParams(params)}`);
    assert.equal(answer.status, 200, path);
    return JSON.parse((await answer.text()).replace(/("[a-z_]+_ns":)(\d{16,})/g, '$1"$2"'), (key, value) =>
        key.endsWith("_ns") && typeof value === "string" ? BigInt(value) : value,
    );
}

async function startOf(id) {
    return (await exact(`sessions/${id}/timeline/tracks`)).start_ns;
}

const isReady = (page) => page.getByRole("img", { name: /^Timeline from/ }).waitFor();
const param = (page, name) => new URL(page.url()).searchParams.get(name);
const viewOf = (page) => param(page, "t")?.split("~").map(Number) ?? null;
const facts = (page, region) =>
    page
        .getByRole("complementary", { name: region })
        .locator("dl")
        .evaluateAll((lists) =>
            Object.fromEntries(
                lists.flatMap((list) =>
                    [...list.querySelectorAll("dt")].map((term) => [
                        term.textContent,
                        term.nextElementSibling.textContent,
                    ]),
                ),
            ),
        );

// Where a row's label says that it is, at a share of the width.
async function placeOf(page, label, share) {
    const canvas = await page.locator(".tl-over").boundingBox();
    const row = await page.locator(".tl-label", { hasText: label }).first().boundingBox();
    return [canvas.x + canvas.width * share, row.y + row.height / 2];
}

// Numbers of the canvas: how many lines of a row are not ground, column by column.
function heights(page, label, canvas = ".tl-rows canvas") {
    return page.evaluate(
        ([text, selector]) => {
            const rows = document.querySelector(selector),
                box = rows.getBoundingClientRect();
            const row = [...document.querySelectorAll(".tl-label")]
                .find((one) => one.textContent.includes(text))
                .getBoundingClientRect();
            const { data, width, height } = rows
                .getContext("2d")
                .getImageData(0, row.top - box.top + 2, box.width, row.height - 3);
            const ground = data.slice(0, 3);
            return Array.from(
                { length: width },
                (_, x) =>
                    Array.from({ length: height }, (_, y) => (y * width + x) * 4).filter(
                        (at) => data[at] !== ground[0] || data[at + 1] !== ground[1] || data[at + 2] !== ground[2],
                    ).length,
            );
        },
        [label, canvas],
    );
}

// How bright the colour is that a row has most of, beside its ground; runs in the page.
function brightness(label) {
    const rows = document.querySelector(".tl-rows canvas"),
        box = rows.getBoundingClientRect();
    const row = [...document.querySelectorAll(".tl-label")]
        .find((one) => one.textContent.includes(label))
        .getBoundingClientRect();
    const { data } = rows.getContext("2d").getImageData(0, row.top - box.top + 4, box.width, row.height - 8),
        counts = new Map();
    for (let at = 0; at < data.length; at += 4) {
        const sum = data[at] + data[at + 1] + data[at + 2];
        if (sum > 60) counts.set(sum, (counts.get(sum) ?? 0) + 1);
    }
    return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? 0;
}

async function someKernel(id, kernel = 5) {
    const start = await startOf(id),
        { name, instances } = await exact(`sessions/${id}/kernels/${kernel}/instances`, { limit: 3 });
    return { start, name, instances, at: instances.map((one) => Number(one.start_ns - start)) };
}

pageTest(
    server,
    "a kernel that is clicked shows its launch, API call, scope and name as the server has them",
    {},
    async (page) => {
        const id = server.ids.h200,
            { start, name, instances, at } = await someKernel(id),
            [event] = instances,
            length = event.duration_ns;
        await page.open(`/sessions/${id}/timeline?t=${at[0] - 5 * length}~${at[0] + 6 * length}`);
        await isReady(page);
        await eventually(async () => (await heights(page, "stream 7")).some((height) => height > 5));
        await page.mouse.click(...(await placeOf(page, "stream 7", 0.5)));
        const panel = page.getByRole("complementary", { name: "selected event" });
        await panel.getByText(name).waitFor();
        const shown = await facts(page, "selected event");
        assert.ok(shown.duration.includes(`(${withCommas(length)} ns)`), shown.duration);
        assert.equal(shown.grid, event.launch.grid.join(" × "));
        assert.equal(shown.block, event.launch.block.join(" × "));
        assert.equal(shown.registers, `${event.launch.num_regs} a thread`);
        assert.equal(shown.occupancy, `${(event.launch.occupancy_bp / 100).toFixed(1)} % (${event.launch.limiter})`);
        assert.equal(shown.thread, String(event.thread_id));
        assert.equal(shown.correlation, String(event.correlation_id));
        assert.equal(Math.round(parseFloat(shown["API call"]) * 1e9), Number(event.api_start_ns - start));
        await panel.getByRole("link", { name: event.scope.replaceAll("|", " > ") }).waitFor();
        await eventually(() => param(page, "sel") === `kernels-0-7@${at[0]}`);
    },
);

pageTest(server, "a launch arrow leads from the API call's row to the kernel", {}, async (page) => {
    const id = server.ids.h200,
        { start, instances, at } = await someKernel(id),
        [event] = instances;
    const from = Number(event.api_start_ns - start) - 5000,
        to = at[0] + event.duration_ns + 5000;
    await page.open(`/sessions/${id}/timeline?t=${from}~${to}&sel=kernels-0-7@${at[0]}`);
    await isReady(page);
    const columns = async (label) => (await heights(page, label, ".tl-over")).filter((height) => height > 0).length;
    // The call, the kernel, and the line that crosses every row between them.
    for (const label of ["launches", "waits", "stream 7"])
        await eventually(async () => (await columns(label)) > 0, `nothing is drawn over ${label}`);
    await page.keyboard.press("Escape");
    await eventually(async () => (await columns("stream 7")) === 0);
});

pageTest(
    server,
    "brackets go to the executions before and after, and the address brings the selection back",
    {},
    async (page) => {
        const id = server.ids.h200,
            { at } = await someKernel(id);
        await page.open(`/sessions/${id}/timeline?sel=kernels-0-7@${at[1]}`);
        await isReady(page);
        await page
            .getByRole("complementary", { name: "selected event" })
            .getByRole("button", { name: "copy name" })
            .waitFor();
        await page.keyboard.press("]");
        await eventually(() => param(page, "sel") === `kernels-0-7@${at[2]}`);
        await page.keyboard.press("[");
        await eventually(() => param(page, "sel") === `kernels-0-7@${at[1]}`);
        await page.getByRole("button", { name: "previous execution" }).click();
        await eventually(() => param(page, "sel") === `kernels-0-7@${at[0]}`);
        const [from, to] = viewOf(page);
        assert.ok(from <= at[0] && to >= at[0], "the execution is in view");
        await page.reload();
        await eventually(
            async () => Math.round(parseFloat((await facts(page, "selected event")).start) * 1e9) === at[0],
        );
        await page.keyboard.press("Escape");
        await eventually(() => param(page, "sel") === null);
    },
);

pageTest(server, "a marked range has the sums that the server gives", {}, async (page) => {
    const id = server.ids.h200,
        start = await startOf(id),
        from = 7_950_000_000,
        to = 8_020_000_000;
    const params = { from_ns: start + BigInt(from), to_ns: start + BigInt(to) };
    const sums = await exact(`sessions/${id}/timeline/range`, params),
        kernels = await exact(`sessions/${id}/kernels`, params);
    const [device] = sums.devices;
    assert.ok(device.busy_ns > 0 && device.kernels > 0 && device.energy_uj > 0);
    assert.equal(device.kernels, kernels.count);
    await page.open(`/sessions/${id}/timeline?t=7900000000~8100000000&range=${from}~${to}`);
    const panel = page.getByRole("complementary", { name: "marked range" });
    await panel.getByText(`${withCommas(kernels.count)} executions`).waitFor();
    const shown = await facts(page, "marked range");
    assert.ok(shown.busy.startsWith(`${((device.busy_ns / (to - from)) * 100).toFixed(1)} %`), shown.busy);
    assert.equal(shown.kernels, withCommas(device.kernels));
    assert.equal(parseFloat(shown.energy).toFixed(1), (device.energy_uj / 1e6).toFixed(1));
    for (const copy of sums.copies) assert.ok(shown[`${copy.copy_kind} copies`].endsWith(`${withCommas(copy.calls)}×`));
});

pageTest(
    server,
    "Shift and drag mark the stretch under the pointer; f fits it; m marks what is in view",
    {},
    async (page) => {
        const id = server.ids.h200;
        await page.open(`/sessions/${id}/timeline?t=7000000000~9000000000`);
        await isReady(page);
        const [left, y] = await placeOf(page, "stream 7", 0.25),
            [right] = await placeOf(page, "stream 7", 0.5);
        await page.keyboard.down("Shift");
        await page.mouse.move(left, y);
        await page.mouse.down();
        await page.mouse.move((left + right) / 2, y);
        await page.mouse.move(right, y);
        await page.mouse.up();
        await page.keyboard.up("Shift");
        await eventually(() => param(page, "range") !== null);
        const [from, to] = param(page, "range").split("~").map(Number);
        assert.ok(Math.abs(from - 7.5e9) < 5e6 && Math.abs(to - 8e9) < 5e6, `${from} ${to}`);
        await page.keyboard.press("f");
        await eventually(() => viewOf(page)[1] - viewOf(page)[0] < 0.7e9);
        await page.keyboard.press("Escape");
        await eventually(() => param(page, "range") === null);
        await page.keyboard.press("m");
        await eventually(() => param(page, "range") !== null);
        const marked = param(page, "range").split("~").map(Number),
            view = viewOf(page);
        assert.ok(Math.abs(marked[0] - view[0]) < 1 && Math.abs(marked[1] - view[1]) < 1);
    },
);

pageTest(
    server,
    "the wheel zooms around the pointer down to nanoseconds, keys pan, a drag pans, f shows everything",
    {},
    async (page) => {
        const id = server.ids.h200;
        await page.open(`/sessions/${id}/timeline?t=7000000000~9000000000`);
        await isReady(page);
        const [x, y] = await placeOf(page, "stream 7", 0.25);
        await page.mouse.move(x, y);
        await page.mouse.wheel(0, -240);
        await eventually(() => viewOf(page)[1] - viewOf(page)[0] < 1.9e9);
        const [from, to] = viewOf(page);
        assert.ok(Math.abs(from + (to - from) * 0.25 - 7.5e9) < 5e6, "what was under the pointer stays there");
        for (let i = 0; i < 40; i++) await page.mouse.wheel(0, -600);
        await eventually(() => viewOf(page)[1] - viewOf(page)[0] < 25);
        for (let i = 0; i < 12; i++) await page.mouse.wheel(0, 600);
        await eventually(() => viewOf(page)[1] - viewOf(page)[0] > 1e5);
        const before = viewOf(page);
        await page.keyboard.press("d");
        await eventually(() => viewOf(page)[0] > before[0]);
        const later = viewOf(page);
        await page.keyboard.press("s");
        await eventually(() => viewOf(page)[1] - viewOf(page)[0] > later[1] - later[0]);
        const wide = viewOf(page);
        await page.mouse.down();
        await page.mouse.move(x + 50, y);
        await page.mouse.move(x + 100, y);
        await page.mouse.up();
        await eventually(() => viewOf(page)[0] < wide[0]);
        await page.keyboard.press("f");
        await eventually(() => viewOf(page) === null);
    },
);

pageTest(server, "zoomed out, a column is as high as the server says that it was busy", {}, async (page) => {
    const id = server.ids.h200,
        start = await startOf(id),
        from = 7_900_000_000,
        to = 8_700_000_000;
    await page.open(`/sessions/${id}/timeline?t=${from}~${to}`);
    await isReady(page);
    const width = (await heights(page, "launches")).length,
        [first, last] = [Math.round(width * 0.2), Math.round(width * 0.8)];
    const at = (column) => start + BigInt(Math.round(from + ((to - from) * column) / width));
    const params = { from_ns: at(first), to_ns: at(last), pixels: 1, tracks: "launches-2717" };
    const answer = await server.ask(`/api/v1/sessions/${id}/timeline?${new URLSearchParams(params)}`);
    const bytes = new DataView(await answer.arrayBuffer()),
        size = bytes.getUint32(8, true);
    const text = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes.buffer, 16, size)));
    const [track] = text.tracks,
        busyColumn = track.columns.find((column) => column.name === "busy_ns");
    assert.ok(busyColumn, "that number of launches is returned as sums");
    const busy = Number(bytes.getBigInt64(16 + size + busyColumn.offset, true)) / Number(params.to_ns - params.from_ns);
    // Any busy pixel shows at least a line, so slightly more than the server's share may be drawn.
    let drawn;
    await eventually(async () => {
        const columns = await heights(page, "launches");
        drawn = columns.slice(first, last).reduce((sum, height) => sum + height, 0) / (last - first) / 17;
        return Math.abs(drawn - busy) < 0.04;
    }, "the height is not the share").catch((error) => {
        throw new Error(`${error.message}: ${drawn} is drawn, ${busy} was busy`);
    });
});

pageTest(server, "groups fold into one row, and the address keeps it", {}, async (page) => {
    const id = server.ids.gpus,
        { tracks } = await server.get(`sessions/${id}/timeline/tracks`);
    await page.open(`/sessions/${id}/timeline`);
    await isReady(page);
    for (const device of [0, 1]) assert.ok(tracks.some((track) => track.device === device));
    const streams = page.locator(".tl-label.is-track", { hasText: /^stream/ });
    const before = await streams.count();
    await page.getByRole("button", { name: /GPU 1/, expanded: true }).first().click();
    const folded = tracks.filter((track) => track.device === 1 && track.kind === "kernels").length;
    await eventually(async () => (await streams.count()) === before - folded);
    await eventually(() => param(page, "fold") === "device-1");
    await page.reload();
    await page.getByRole("button", { name: /GPU 1/, expanded: false }).first().waitFor();
    await eventually(
        async () => (await heights(page, "GPU 1")).some((height) => height > 5),
        "the folded row shows nothing of its tracks",
    );
});

pageTest(server, "the table lists what is in view", {}, async (page) => {
    const id = server.ids.h200,
        { start, instances, at } = await someKernel(id),
        [event] = instances;
    const from = at[0] - 40_000,
        to = at[0] + 40_000;
    const { kernels } = await exact(`sessions/${id}/kernels`, {
        from_ns: start + BigInt(from),
        to_ns: start + BigInt(to),
        stream: 7,
    });
    await page.open(`/sessions/${id}/timeline?t=${from}~${to}&fold=thread-2717,thread-2761`);
    await isReady(page);
    await page.getByRole("button", { name: "Table" }).click();
    const expected = kernels.reduce((sum, kernel) => sum + kernel.count, 0);
    const shown = async () =>
        (await tableRows(page, "what is in view")).filter(
            (row) => row[1].endsWith("stream 7") && !/copies|memsets/.test(row[1]),
        );
    await eventually(async () => {
        const begun = (await shown()).filter((row) => Math.round(parseFloat(row[2]) * 1e9) >= from);
        return begun.length === expected;
    }, "the table and the server differ");
    await page.getByRole("button", { name: "Table" }).waitFor();
    await page.locator('[role=region][aria-label="what is in view"] tbody tr', { hasText: "nvjet" }).first().click();
    await eventually(() => param(page, "sel")?.startsWith("kernels-0-7@"));
    assert.equal(event.stream_id, 7);
    await axeCheck(page);
});

pageTest(server, "search lists kernels, goes to one and dims the rest", {}, async (page) => {
    const id = server.ids.h200;
    const { kernels } = await server.get(`sessions/${id}/kernels`, { q: "nvjet", limit: 12 });
    await page.open(`/sessions/${id}/timeline`);
    await isReady(page);
    await eventually(async () => (await heights(page, "scopes")).some((height) => height > 5));
    const bright = await page.evaluate(brightness, "scopes");
    await page.keyboard.press("/");
    await page.keyboard.type("nvjet");
    await eventually(async () => (await page.getByRole("option").count()) === kernels.length);
    await page.keyboard.press("Enter");
    const panel = page.getByRole("complementary", { name: "selected event" });
    await panel.getByText(kernels[0].name, { exact: true }).waitFor();
    const { at } = await someKernel(id, kernels[0].kernel_id);
    await eventually(() => param(page, "sel") === `kernels-0-7@${at[0]}` && param(page, "q") === "nvjet");
    await eventually(
        async () => (await page.evaluate(brightness, "scopes")) < bright * 0.7,
        "scopes are as bright as before",
    );
});

pageTest(server, "a session that grows is followed", {}, async (page) => {
    const id = "0192f300-0000-7000-8000-00000000717e",
        t0 = 1_789_000_000_000_000_000;
    const kernels = (batch, count) => ({
        type: "kernel_event_batch",
        batch_id: batch,
        base_time_ns: t0 + batch * 1_000_000_000,
        columns: ["dt_ns", "kernel_id", "stream_id", "duration_ns", "corr_id", "device_id"],
        rows: Array.from({ length: count }, (_, i) => [i * 10_000_000, 1, 7, 4_000_000, batch * 1000 + i, 0]),
    });
    await server.send(id, [
        { type: "job_start", pid: 1, app: "live.py", ts_ns: t0 },
        { type: "dictionary_update", kernel_dict: { 1: "step_kernel" } },
        kernels(0, 50),
    ]);
    await page.open(`/sessions/${id}/timeline`);
    await isReady(page);
    await page.getByRole("button", { name: "Follow" }).click();
    const events = async () =>
        Number(
            /, ([\d,]+) events/
                .exec(await page.locator(".tl-over").getAttribute("aria-label"))?.[1]
                .replaceAll(",", ""),
        );
    assert.equal(await events(), 50);
    for (let batch = 1; batch <= 3; batch++) {
        await server.send(id, [kernels(batch, 50)]);
        await eventually(async () => (await events()) === 50 * (batch + 1), "what was sent is not shown");
    }
    await eventually(
        async () => (await heights(page, "stream 7")).slice(-200).some((height) => height > 5),
        "the end of the session is not in view",
    );
});

pageTest(server, "a stack has the line of source under each frame whose file was recorded", {}, async (page) => {
    const id = "0192f300-0000-7000-8000-00000000c0de",
        t0 = 1_789_000_000_000_000_000;
    await server.send(id, [
        { type: "job_start", pid: 1, app: "train.py", ts_ns: t0 },
        {
            type: "dictionary_update",
            kernel_dict: { 1: "step_kernel" },
            function_dict: { 1: "main@train.py:2|addmm@libtorch.so+0x1c0|forward@model.py:9|" },
            source_file_dict: { 1: "train.py" },
        },
        {
            type: "source_file_content",
            source_file_id: 1,
            path: "train.py",
            lines: ["import torch", "    loss = '<b>not bold</b>'"],
        },
        {
            type: "kernel_event_batch",
            batch_id: 1,
            base_time_ns: t0,
            columns: ["dt_ns", "kernel_id", "stream_id", "duration_ns", "corr_id", "device_id", "stack_id"],
            rows: [[0, 1, 7, 5_000_000, 1, 0, 1]],
        },
    ]);
    await page.open(`/sessions/${id}/timeline?sel=kernels-0-7@0`);
    const frames = page.getByRole("complementary", { name: "selected event" }).getByRole("listitem");
    await frames.first().waitFor();
    const texts = await frames.evaluateAll((items) =>
        items.map((item) => [...item.children].map((one) => one.textContent)),
    );
    assert.deepEqual(texts, [
        ["main@train.py:2", "loss = '<b>not bold</b>'"],
        ["addmm@libtorch.so+0x1c0"],
        ["forward@model.py:9"],
        [""],
    ]);
});

pageTest(server, "names that want to break the page are text", {}, async (page) => {
    const id = "0192f300-0000-7000-8000-000000000bad",
        t0 = 1_789_000_000_000_000_000;
    const hostile = `<img src=x onerror="document.title='broken'">\u202e🚀 ${"templated<".repeat(990)}`;
    await server.send(id, [
        { type: "job_start", pid: 1, app: hostile.slice(0, 60), ts_ns: t0 },
        { type: "dictionary_update", kernel_dict: { 1: hostile } },
        {
            type: "kernel_event_batch",
            batch_id: 1,
            base_time_ns: t0,
            columns: ["dt_ns", "kernel_id", "stream_id", "duration_ns", "corr_id", "device_id"],
            rows: [[0, 1, 7, 5_000_000, 1, 0]],
        },
    ]);
    await page.open(`/sessions/${id}/timeline?sel=kernels-0-7@0`);
    const panel = page.getByRole("complementary", { name: "selected event" });
    await panel.getByText("<img src=x onerror=").waitFor();
    await page.mouse.move(...(await placeOf(page, "stream 7", 0.5)));
    await page.locator(".tip", { hasText: "<img src=x" }).waitFor();
    assert.equal(await page.locator("main img[src]").count(), 0);
    assert.notEqual(await page.title(), "broken");
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 1440);
});

pageTest(
    server,
    "a server that goes away is said to be away, and tiles come when it is back",
    { isNoisy: true },
    async (page) => {
        const id = server.ids.h200;
        await page.open(`/sessions/${id}/timeline`);
        await isReady(page);
        await eventually(async () => (await heights(page, "stream 7")).some((height) => height > 0));
        await server.kill();
        const [x, y] = await placeOf(page, "stream 7", 0.7);
        await page.mouse.move(x, y);
        for (let i = 0; i < 8; i++) await page.mouse.wheel(0, -600);
        await page.getByRole("alert").filter({ hasText: "cannot be reached" }).first().waitFor();
        await server.start();
        await eventually(async () => (await page.getByRole("alert").count()) === 0, "the page does not recover");
    },
);

pageTest(
    server,
    "GPU work is there before the server has loaded the session, and the rest when it has",
    {},
    async (page) => {
        await server.kill(); // and with it all that it had loaded
        await server.start();
        let release;
        const isReleased = new Promise((done) => (release = done));
        await page.route("**/timeline/tracks", async (call) => {
            await isReleased;
            await call.continue();
        });
        const threads = page.locator(".tl-label", { hasText: "launches" });
        await page.open(`/sessions/${server.ids.h200}/timeline`);
        await isReady(page);
        await eventually(async () => (await heights(page, "stream 7")).some((height) => height > 0));
        assert.equal(await threads.count(), 0);
        assert.equal(await page.getByRole("button", { name: "load all" }).count(), 0);
        release();
        await threads.first().waitFor();
        await eventually(async () => (await heights(page, "launches")).some((height) => height > 0));
        await eventually(async () => (await heights(page, "stream 7")).some((height) => height > 0));
    },
);

pageTest(server, "a session without events and one that broke off say so", {}, async (page) => {
    await page.open(`/sessions/${server.ids.empty}/timeline`);
    await page.getByText("This session has no events on a time axis.").waitFor();
    await page.open(`/sessions/${server.ids.killed}/timeline`);
    await page
        .getByText(/^Not complete:|no events on a time axis/)
        .first()
        .waitFor();
});

pageTest(
    server,
    "everything of the timeline is there on a narrow screen",
    { width: 390, height: 844, theme: "light" },
    async (page) => {
        const id = server.ids.h200,
            { at } = await someKernel(id);
        await page.open(`/sessions/${id}/timeline?t=${at[0] - 50_000}~${at[0] + 50_000}&sel=kernels-0-7@${at[0]}`);
        await page
            .getByRole("complementary", { name: "selected event" })
            .getByText("registers", { exact: true })
            .waitFor();
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
        await axeCheck(page);
    },
);
