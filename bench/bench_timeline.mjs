// SPDX-License-Identifier: Apache-2.0
// The timeline in a real browser without a GPU: a session of many kernels on 32 streams, sent to a real `gpufl serve`.
// Measured: the first useful picture after the page's own load, frames while panning and zooming, memory.
// usage: node bench/bench_timeline.mjs [build directory, default build] [million kernels, default 10]
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "../tests/ui/browser.mjs";

const [build = "build", millions = "10"] = process.argv.slice(2);
const kernels = Math.round(Number(millions) * 1e6);
const session = "0192f300-0000-7000-8000-0000000beef5";
const start = 1_700_000_000_000_000_000n;
const streams = 32,
    names = 300,
    batchRows = 20_000,
    batchesPerBody = 20;

const data = mkdtempSync(join(tmpdir(), "gpufl-bench-"));
const server = spawn(resolve(build, "bin/gpufl"), ["serve", "--data", data, "--listen", "127.0.0.1:0"], {
    stdio: ["ignore", "ignore", "pipe"],
});
let browser = null;

function serverUrl() {
    return new Promise((done, fail) => {
        let text = "";
        server.stderr.on("data", (part) => {
            text += part;
            const found = /(https?:\/\/\S+:\d+), data in/.exec(text);
            if (found) done(found[1]);
        });
        server.on("exit", (code) => fail(new Error(`the server ended with ${code}: ${text}`)));
    });
}

/** Work of 32 streams side by side, each with pauses: what the browser has to show. */
function* bodies() {
    const line = (record) => `${JSON.stringify({ version: 1, session_id: session, ...record })}\n`;
    const dictionary = {};
    for (let i = 1; i <= names; i++) dictionary[i] = `void layer_${i % 40}::kernel_${i}<float, ${i}>(float*, int)`;
    yield line({ type: "job_start", pid: 7, app: "bench", ts_ns: "START" }).replace('"START"', `${start}`) +
        line({ type: "dictionary_update", kernel_dict: dictionary });
    const ends = new Float64Array(streams);
    let random = 88172645,
        body = "",
        batches = 0;
    for (let done = 0; done < kernels; batches++) {
        const rows = [];
        const base = Math.min(...ends);
        for (; rows.length < batchRows && done < kernels; done++) {
            random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
            const stream = done % streams,
                length = 1500 + ((random >>> 12) % 60000);
            const name = 1 + ((random >>> 8) % names);
            rows.push(`[${ends[stream] - base},${name},${stream + 7},${length},${done & 0x7fffffff},0]`);
            ends[stream] += length + (random % 7 === 0 ? 200_000 : 900);
        }
        body +=
            `{"version":1,"type":"kernel_event_batch","session_id":"${session}","batch_id":${batches + 1},` +
            `"base_time_ns":${start + BigInt(base)},` +
            `"columns":["dt_ns","kernel_id","stream_id","duration_ns","corr_id","device_id"],` +
            `"rows":[${rows.join(",")}]}\n`;
        if ((batches + 1) % batchesPerBody === 0 || done >= kernels) {
            yield body;
            body = "";
        }
    }
}

async function send(url) {
    const headers = {
        "X-GpuFlight-Session-Id": session,
        "X-GpuFlight-Hostname": "bench",
        "Content-Type": "application/x-ndjson",
    };
    for (const body of bodies()) {
        const answer = await fetch(`${url}/api/v1/events/stream`, { method: "POST", headers, body });
        if (answer.status !== 202) throw new Error(`${answer.status} ${await answer.text()}`);
    }
    await fetch(`${url}/api/v1/events/session-complete`, {
        method: "POST",
        headers: { "X-GpuFlight-Session-Id": session },
    });
}

/** Proportional set size of a process and all below it: what the machine loses by it. */
function memoryBytes(root) {
    const parents = new Map();
    for (const entry of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
        try {
            parents.set(
                Number(entry),
                Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${entry}/status`, "utf8"))?.[1]),
            );
        } catch {
            // it has ended
        }
    }
    const isBelow = (pid) => pid === root || (parents.has(pid) && parents.get(pid) > 1 && isBelow(parents.get(pid)));
    let tab = 0,
        all = 0;
    for (const pid of parents.keys()) {
        if (!isBelow(pid)) continue;
        try {
            const bytes =
                Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0) * 1024;
            all += bytes;
            if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--type=renderer")) tab = Math.max(tab, bytes);
        } catch {
            // it has ended
        }
    }
    return { tab, all };
}

const percentile = (values, share) =>
    [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? NaN;
const line = (what, value, unit, budget) =>
    console.log(
        what.padEnd(44),
        value.toFixed(1).padStart(9),
        unit.padEnd(3),
        `(budget ${budget})${value <= budget ? "" : "  OVER"}`,
    );

/** Frames as the page sees them: the time between animation frames while something moves. */
async function frames(page, act) {
    await page.evaluate(() => {
        window.benchFrames = [];
        let before = performance.now();
        const tick = (now) => {
            window.benchFrames.push(now - before);
            before = now;
            window.benchHandle = requestAnimationFrame(tick);
        };
        window.benchHandle = requestAnimationFrame(tick);
        performance.clearMeasures("timeline-frame");
    });
    await act();
    return page.evaluate(() => {
        cancelAnimationFrame(window.benchHandle);
        return {
            between: window.benchFrames.slice(2),
            drawn: performance.getEntriesByName("timeline-frame").map((entry) => entry.duration),
        };
    });
}

async function main() {
    const url = await serverUrl();
    const sendStart = performance.now();
    await send(url);
    const seconds = ((performance.now() - sendStart) / 1000).toFixed(1);
    console.log(`${kernels.toLocaleString("en-US")} kernels on ${streams} streams, sent in ${seconds} s`);
    browser = await chromium();
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.goto(`${url}/sessions/${session}/timeline`);
    const isDrawn = () => {
        const canvas = document.querySelector(".tl-rows canvas");
        if (!canvas || canvas.width < 100) return 0;
        const { data: pixels } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const colours = new Set();
        for (let i = 0; i < pixels.length; i += 4 * 97)
            colours.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
        return colours.size > 12 ? performance.now() : 0;
    };
    const shown = await (await page.waitForFunction(isDrawn, null, { timeout: 60_000, polling: 20 })).jsonValue();
    const loaded = await page.evaluate(() => performance.getEntriesByType("navigation")[0].loadEventEnd);
    line("first useful picture after the page's load", shown - loaded, "ms", 1000);
    await page.waitForTimeout(2000);
    const box = await page.locator(".tl-over").boundingBox();
    const [x, y] = [box.x + box.width * 0.6, box.y + box.height * 0.4];
    await page.mouse.move(x, y);
    const zoom = await frames(page, async () => {
        for (const direction of [-1, 1])
            for (let i = 0; i < 60; i++) {
                await page.mouse.wheel(0, direction * 120);
                await page.waitForTimeout(16);
            }
    });
    for (let i = 0; i < 20; i++) await page.mouse.wheel(0, -120);
    await page.waitForTimeout(1000);
    const pan = await frames(page, async () => {
        await page.mouse.down();
        for (let i = 0; i < 150; i++) {
            await page.mouse.move(x + 300 * Math.sin(i / 12), y);
            await page.waitForTimeout(16);
        }
        await page.mouse.up();
    });
    for (const [what, { between, drawn }] of [
        ["zoom", zoom],
        ["pan", pan],
    ]) {
        line(`${what}: frame to frame, p95 of ${between.length}`, percentile(between, 0.95), "ms", 33);
        line(`${what}: drawing, p95 of ${drawn.length}`, percentile(drawn, 0.95), "ms", 33);
    }
    const memory = memoryBytes(process.pid);
    line("memory of the page's process", memory.tab / 1e6, "MB", 300);
    console.log(
        `${"memory of the whole browser and this bench".padEnd(44)} ${(memory.all / 1e6).toFixed(1).padStart(9)} MB`,
    );
}

try {
    await main();
} finally {
    await browser?.close();
    server.removeAllListeners("exit");
    server.kill("SIGTERM");
    await new Promise((done) => (server.exitCode === null ? server.on("exit", done) : done()));
    rmSync(data, { recursive: true, force: true });
}
