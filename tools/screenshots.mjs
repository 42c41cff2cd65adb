// SPDX-License-Identifier: Apache-2.0
// The pictures of docs/dashboard.md: starts `gpufl demo --stay`, visits its pages, writes docs/pictures/*.webp.
// usage: node tools/screenshots.mjs [OUTPUT]    GPUFL_BUILD_DIR: the build to show; build
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "../tests/ui/browser.mjs";

const SOURCE = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const BUILD = resolve(process.env.GPUFL_BUILD_DIR ?? join(SOURCE, "build"));
const GPUFL = join(BUILD, "bin", "gpufl");
const OUTPUT = resolve(process.argv[2] ?? join(SOURCE, "docs", "pictures"));
const BYTES_MAX = 150_000; // as tools/build_book.py has it
const QUALITY = 0.9;
const WAIT_MS = 60_000;
// Sessions that the demo does not have, from those that the tests made.
const MORE = ["tests/golden/trace", "tests/golden/monitor"];

// The demo's server, its address, and a way to end both.
async function demoStart() {
    const demo = spawn(GPUFL, ["demo", "--stay", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
    let printed = "";
    const address = await new Promise((found, failed) => {
        demo.on("exit", (code) => failed(new Error(`gpufl demo ended with ${code}`)));
        demo.stdout.setEncoding("utf8").on("data", (text) => {
            printed += text;
            const match = /Dashboard: (http:\S+)/.exec(printed);
            if (match && printed.includes("Ctrl-C")) found(match[1]);
        });
    });
    const end = async () => {
        demo.removeAllListeners("exit");
        const ended = once(demo, "exit");
        demo.kill("SIGTERM");
        await ended;
    };
    return { address, end };
}

async function sessionsFind(address) {
    const answer = await fetch(`${address}/api/v1/sessions?limit=100`);
    const { sessions } = await answer.json();
    return (app, engine) => {
        const found = sessions.find((one) => one.app === app && one.engine === engine);
        const there = sessions.map((one) => `${one.app} ${one.engine}`);
        if (!found) throw new Error(`no session of ${app} with engine ${engine}; there are ${there}`);
        return found.id;
    };
}

// A function that returns when everything that the page asked for has come; the stream of live changes never ends.
function settling(page) {
    const underWay = new Set();
    page.on("request", (request) => request.url().includes("/api/v1/live") || underWay.add(request));
    for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => underWay.delete(request));
    return async () => {
        const deadline = Date.now() + WAIT_MS;
        while (underWay.size > 0 || (await page.locator(".is-loading").count()) > 0) {
            if (Date.now() > deadline) throw new Error(`${page.url()} did not settle`);
            await page.waitForTimeout(50);
        }
    };
}

// The picture as WebP, a third of the size; coded by the browser, on a page without the dashboard's policy.
async function webp(browser, png) {
    const page = await browser.newPage();
    const text = await page.evaluate(
        async ([source, quality]) => {
            const image = new Image();
            image.src = `data:image/png;base64,${source}`;
            await image.decode();
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [image.width, image.height];
            canvas.getContext("2d").drawImage(image, 0, 0);
            return canvas.toDataURL("image/webp", quality);
        },
        [png.toString("base64"), QUALITY],
    );
    await page.close();
    return Buffer.from(text.replace("data:image/webp;base64,", ""), "base64");
}

async function pictures(address, byApp) {
    const training = byApp("pytorch_training.py", "nvidia.trace");
    const sampled = byApp("gemm", "nvidia.pc_sampling_with_sass");
    const shots = [
        ["overview", `/sessions/${training}`],
        ["timeline", `/sessions/${training}/timeline`],
        ["kernels", `/sessions/${training}/kernels`],
        ["scopes", `/sessions/${training}/scopes`],
        ["memory", `/sessions/${training}/memory`],
        ["code", `/sessions/${sampled}/code`, (page) => page.getByRole("cell", { name: "gemm_register_tile" }).click()],
        ["sessions", "/sessions"],
    ];
    const browser = await chromium();
    try {
        for (const [name, path, action] of shots) {
            const page = await browser.newPage({
                viewport: { width: 1280, height: 760 },
                colorScheme: "dark",
                reducedMotion: "reduce",
            });
            page.setDefaultTimeout(WAIT_MS);
            const settled = settling(page);
            await page.goto(address + path, { waitUntil: "load" });
            await settled();
            if (action) await action(page).then(settled);
            const picture = await webp(browser, await page.screenshot({ animations: "disabled" }));
            console.log(`${name}.webp: ${picture.length} bytes`);
            if (picture.length > BYTES_MAX) throw new Error(`${name}.webp is larger than ${BYTES_MAX} bytes`);
            writeFileSync(join(OUTPUT, `${name}.webp`), picture);
            await page.close();
        }
    } finally {
        await browser.close();
    }
}

mkdirSync(OUTPUT, { recursive: true });
const { address, end } = await demoStart();
try {
    for (const name of MORE) await promisify(execFile)(GPUFL, ["upload", join(SOURCE, name), "--server", address]);
    await pictures(address, await sessionsFind(address));
} finally {
    await end();
}
