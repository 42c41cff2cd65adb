// SPDX-License-Identifier: Apache-2.0
// What the browser tests share: a real `gpufl serve` with recorded sessions, a real Chromium, and pages that complain.
import { WAIT_MS, axeSource, chromium } from "./browser.mjs";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const SOURCE = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const BUILD = resolve(process.env.GPUFL_BUILD_DIR ?? join(SOURCE, "build"));
const GPUFL = join(BUILD, "bin", "gpufl");
const SHOTS = join(BUILD, "logs", "ui");
const run = promisify(execFile);

// Directories of sessions by the names that tests use.
export const recordings = {
    h200: "examples/recorded/h200-training",
    gemmKernels: "examples/recorded/h200-gemm-kernels",
    gemmScopes: "examples/recorded/h200-gemm-scopes",
    trace: "tests/golden/trace",
    deep: "tests/golden/deep",
    amd: "tests/golden/amd_code",
    samples: "tests/golden/pc_sampling",
    counters: "tests/golden/sass_metrics",
    ranges: "tests/golden/range_metrics",
    gpus: "tests/golden/two_gpus",
    monitor: "tests/golden/monitor",
    bench: "tests/golden/bench",
    hostile: "tests/golden/hostile",
    killed: "tests/golden/killed",
    empty: "tests/golden/empty",
};

// The names of all sessions in tests/golden: those that have a report beside them.
const GOLDEN = join(SOURCE, "tests", "golden");
export const goldenSessions = readdirSync(GOLDEN).filter(
    (name) => statSync(join(GOLDEN, name)).isDirectory() && existsSync(join(GOLDEN, `${name}.txt`)),
);

export class Server {
    constructor(options = []) {
        this.directory = mkdtempSync(join(tmpdir(), "gpufl-ui-"));
        this.options = options;
        this.listen = "127.0.0.1:0";
        this.ids = {}; // of recordings, by name
        this.key = null;
        this.printed = "";
    }

    async start() {
        this.process = spawn(
            GPUFL,
            ["serve", "--listen", this.listen, "--data", join(this.directory, "data"), ...this.options],
            {
                stdio: ["ignore", "ignore", "pipe"],
            },
        );
        const said = new Promise((resolveUrl, reject) => {
            this.process.on("exit", (code) => reject(new Error(`the server ended with ${code}:\n${this.printed}`)));
            this.process.on("error", reject);
            this.process.stderr.setEncoding("utf8").on("data", (text) => {
                this.printed += text;
                const found = /(https?:\/\/\S+:(\d+)), data in/.exec(this.printed);
                if (found) resolveUrl(found);
            });
        });
        const found = await said;
        this.url = found[1];
        this.listen = `127.0.0.1:${found[2]}`; // a restart is found where the one before was
        return this;
    }

    // Ends it as a crash would.
    async kill() {
        if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return;
        this.process.removeAllListeners("exit");
        const ended = once(this.process, "exit");
        this.process.kill("SIGKILL");
        await ended;
        this.printed = "";
    }

    async remove() {
        await this.kill();
        rmSync(this.directory, { recursive: true, force: true });
    }

    async keyMake(scope) {
        const { stdout } = await run(GPUFL, [
            "serve",
            "keys",
            "create",
            "--scope",
            scope,
            "--name",
            scope,
            "--data",
            join(this.directory, "data"),
        ]);
        return stdout.trim();
    }

    async upload(...names) {
        for (const name of names) {
            const before = new Set((await this.get("sessions", { limit: 500 })).sessions.map((session) => session.id));
            // A copy: what was sent is noted beside it by the server's address, and ports come back.
            const copy = join(this.directory, "sent", name);
            const isNote = (path) => basename(path).startsWith(".gpufl-");
            await cp(join(SOURCE, recordings[name] ?? `tests/golden/${name}`), copy, { recursive: true, filter: (path) => !isNote(path) });
            await run(GPUFL, ["upload", copy, "--server", this.url], {
                env: { ...process.env, ...(this.key ? { GPUFL_API_KEY: this.key } : {}) },
            }).catch((error) => {
                if (!/damaged line could not be sent/.test(error.stderr)) throw error; // the rest of it was
            });
            const { sessions } = await this.get("sessions", { limit: 500 });
            this.ids[name] = sessions.find((session) => !before.has(session.id)).id;
        }
    }

    ask(path, options = {}) {
        const headers = { ...options.headers, ...(this.key ? { Authorization: `Bearer ${this.key}` } : {}) };
        return fetch(`${this.url}${path}`, { ...options, headers });
    }

    // The JSON of an answer that must be good.
    async get(path, params = {}) {
        const answer = await this.ask(`/api/v1/${path}?${new URLSearchParams(params)}`);
        if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
        return answer.json();
    }

    // Lines of one session, as an agent sends them.
    async send(sessionId, lines, host = "node1") {
        const body = lines
            .map((line) => `${JSON.stringify({ version: 1, session_id: sessionId, ...line })}\n`)
            .join("");
        const answer = await this.ask("/api/v1/events/stream", {
            method: "POST",
            headers: {
                "Content-Type": "application/x-ndjson",
                "X-GpuFlight-Session-Id": sessionId,
                "X-GpuFlight-Hostname": host,
            },
            body,
        });
        if (answer.status !== 202) throw new Error(`${answer.status} ${await answer.text()}`);
    }
}

let browser = null;

// One server and one browser for the tests of a file. options: arguments of the server, prepare(server) after the upload
export function useServer(names, options = {}) {
    const server = new Server(options.arguments);
    before(async () => {
        browser = await chromium();
        await server.start();
        await server.upload(...names);
        await options.prepare?.(server);
    });
    after(async () => {
        await browser?.close();
        await server.remove();
    });
    return server;
}

// A test with a separate page. It fails, with a screenshot, if the page throws, logs an error or requests another host.
// options: width, height, theme, isNoisy (the server stops: errors are expected), key
export function pageTest(server, name, options, body) {
    test(name, async () => {
        const context = await browser.newContext({
            viewport: { width: options.width ?? 1440, height: options.height ?? 900 },
            colorScheme: options.theme ?? "dark",
            acceptDownloads: true,
            reducedMotion: "reduce",
        });
        const page = await context.newPage();
        page.setDefaultTimeout(WAIT_MS);
        const complaints = [];
        page.on("pageerror", (error) => complaints.push(`it threw: ${error.message}`));
        page.on("console", (message) => {
            if (message.type() === "error" && !options.isNoisy) complaints.push(`it logged: ${message.text()}`);
        });
        page.on("request", (request) => {
            const url = request.url();
            if (!url.startsWith(`${server.url}/`) && !/^(blob|data):/.test(url))
                complaints.push(`it asked another host: ${url}`);
        });
        const underWay = new Set();
        page.on("request", (request) => request.url().includes("/api/v1/live") || underWay.add(request));
        for (const end of ["requestfinished", "requestfailed"]) page.on(end, (request) => underWay.delete(request));
        // Everything that was asked for has come and nothing is loading; live pages ask again later.
        page.settled = () =>
            eventually(
                async () => underWay.size === 0 && (await page.locator(".is-loading").count()) === 0,
                "the page did not settle",
            );
        page.open = (path) => page.goto(server.url + path, { waitUntil: "load" });
        try {
            await body(page);
            if (complaints.length > 0) throw new Error(`the page complained:\n${complaints.join("\n")}`);
        } catch (error) {
            mkdirSync(SHOTS, { recursive: true });
            const shot = join(SHOTS, `${name.replace(/[^A-Za-z0-9]+/g, "-")}.png`);
            await page.screenshot({ path: shot }).catch(() => {});
            error.message += `\n${page.url()}\npicture: ${shot}\n${complaints.join("\n")}`;
            throw error;
        } finally {
            await context.close();
        }
    });
}

// Until it is true; what it last said otherwise is in the error.
export async function eventually(check, what = "it did not become true") {
    const end = Date.now() + WAIT_MS;
    for (;;) {
        let problem;
        try {
            if (await check()) return;
        } catch (error) {
            problem = error;
        }
        if (Date.now() > end) throw problem ?? new Error(what);
        await new Promise((done) => setTimeout(done, 50));
    }
}

// No serious finding of axe.
export async function axeCheck(page) {
    await page.evaluate(axeSource);
    const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
    const serious = violations.filter((violation) => violation.impact === "serious" || violation.impact === "critical");
    if (serious.length > 0)
        throw new Error(
            serious
                .map(
                    (violation) =>
                        `${violation.id}: ${violation.help}\n  ${violation.nodes
                            .slice(0, 5)
                            .map((node) => `${node.html.slice(0, 200)}  ${node.failureSummary?.split("\n")[1] ?? ""}`)
                            .join("\n  ")}`,
                )
                .join("\n"),
        );
}

const PICTURES = join(SOURCE, "tests", "ui", "pictures");
const GRID = { columns: 36, rows: 24 };
const MEAN_MOST = 5; // of 255, over all cells: fonts differ from machine to machine, layouts and colours must not
const CELL_MOST = 72;

// The screenshot as the mean colours of a coarse grid, compared with the one that was looked at and kept.
// GPUFL_KEEP_PICTURES=1 keeps the present ones instead: look at them before.
export async function pictureCheck(page, name) {
    const png = (await page.screenshot({ animations: "disabled" })).toString("base64");
    const drawing = await browser.newPage(); // the page's own policy lets nothing be drawn
    const cells = await drawing.evaluate(
        async ({ png, columns, rows }) => {
            const image = new Image();
            image.src = `data:image/png;base64,${png}`;
            await image.decode();
            const canvas = new OffscreenCanvas(image.width, image.height);
            const context = canvas.getContext("2d");
            context.drawImage(image, 0, 0);
            const cells = [];
            for (let row = 0; row < rows; row++)
                for (let column = 0; column < columns; column++) {
                    const [left, top] = [
                        Math.floor((column * image.width) / columns),
                        Math.floor((row * image.height) / rows),
                    ];
                    const [right, bottom] = [
                        Math.floor(((column + 1) * image.width) / columns),
                        Math.floor(((row + 1) * image.height) / rows),
                    ];
                    const { data } = context.getImageData(left, top, right - left, bottom - top);
                    const sums = [0, 0, 0];
                    for (let at = 0; at < data.length; at += 4) for (const k of [0, 1, 2]) sums[k] += data[at + k];
                    cells.push(...sums.map((sum) => Math.round(sum / (data.length / 4))));
                }
            return cells;
        },
        { png, ...GRID },
    );
    await drawing.close();
    const file = join(PICTURES, `${name}.txt`);
    if (process.env.GPUFL_KEEP_PICTURES) {
        mkdirSync(PICTURES, { recursive: true });
        writeFileSync(file, `${Buffer.from(cells).toString("base64")}\n`);
        return;
    }
    const kept = [...Buffer.from(readFileSync(file, "utf8").trim(), "base64")];
    const differences = cells.map((cell, index) => Math.abs(cell - kept[index]));
    const mean = differences.reduce((sum, value) => sum + value, 0) / differences.length;
    const worst = Math.max(...differences);
    const at = Math.floor(differences.indexOf(worst) / 3);
    if (!(mean <= MEAN_MOST && worst <= CELL_MOST))
        throw new Error(
            `the picture differs from ${file}: ${mean.toFixed(1)} in the mean, ${worst} at most (column ${at % GRID.columns} of ${GRID.columns}, row ${Math.floor(at / GRID.columns)} of ${GRID.rows})`,
        );
}

// The texts of a table's cells, row by row, without its heads.
export function tableRows(page, label) {
    return page
        .locator(`[role=region][aria-label="${label}"] tbody tr:not(.spacer)`)
        .evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent.trim())));
}
