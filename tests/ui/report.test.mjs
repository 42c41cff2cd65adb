// SPDX-License-Identifier: Apache-2.0
// The HTML report (gpufl report --html), opened from the disk: the figures of the text report, nothing asked of a network,
// a timeline for mouse and keyboard, and a layout that fits a phone.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";
import { WAIT_MS, chromium } from "./browser.mjs";
import { BUILD, SOURCE, axeCheck, eventually } from "./harness.mjs";

const RECORDED = join(SOURCE, "examples", "recorded");
const GOLDEN = join(SOURCE, "tests", "golden");
const sessions = [
    ...readdirSync(RECORDED, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => join(RECORDED, entry.name)),
    ...["hostile", "deep_hostile", "range_metrics", "two_gpus"].map((name) => join(GOLDEN, name)),
];
const nameOf = (session) => session.split("/").at(-1);
const TOP = "50"; // the rows per table of the HTML report

let directory, browser;
const gpufl = (...words) =>
    execFileSync(join(BUILD, "bin", "gpufl"), words, { encoding: "utf8", env: { ...process.env, COLUMNS: "100" } });
const fileOf = (session) => join(directory, `${nameOf(session)}.html`);

before(async () => {
    directory = mkdtempSync(join(tmpdir(), "gpufl-report-"));
    for (const session of sessions) gpufl("report", session, "--html", fileOf(session));
    browser = await chromium();
});

after(async () => {
    await browser?.close();
    rmSync(directory, { recursive: true, force: true });
});

// A page with the report of a session; what it should not do is in page.complaints.
async function open(session, options = {}) {
    const context = await browser.newContext({
        viewport: { width: options.width ?? 1440, height: 900 },
        colorScheme: options.theme ?? "dark",
        offline: true,
    });
    const page = await context.newPage(), url = pathToFileURL(fileOf(session)).href;
    page.setDefaultTimeout(WAIT_MS);
    page.complaints = [];
    page.on("request", (request) => request.url() === url || page.complaints.push(`it asked for ${request.url()}`));
    page.on("pageerror", (error) => page.complaints.push(`it threw: ${error.message}`));
    page.on("console", (message) => page.complaints.push(`it logged: ${message.text()}`));
    await page.goto(url);
    return page;
}

async function close(page) {
    assert.deepEqual(page.complaints, []);
    await page.context().close();
}

// Numbers with their units; not those inside of names, which the two reports shorten differently.
const UNITS = "%|[num]?s|min|h|[kMGT]?B(?:/s)?|[KMGT]iB|MHz|k?J|W|°C|[kMGT]?FLOP/s|[kMGT]?inst";
const figures = (text) =>
    new Set([...text.matchAll(new RegExp(`(?<![\\w.…\\\\])<?\\d[\\d,]*(?:\\.\\d+)?(?: (?:${UNITS})(?!\\w))?(?![\\w…])`, "g"))].map((found) => found[0]));

for (const session of sessions)
    test(`the page of ${nameOf(session)} has every figure of the text report`, async () => {
        const page = await open(session);
        await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
        const shown = figures(await page.evaluate(() => document.body.innerText));
        const text = gpufl("report", session, "--top", TOP).replaceAll(/and \d+ counters that are 0/g, ""); // the page has their names
        const wanted = figures(text);
        assert.ok(wanted.size > 20, `${wanted.size} figures`);
        assert.deepEqual([...wanted].filter((figure) => !shown.has(figure)), []);
        await close(page);
    });

for (const session of sessions)
    test(`the page of ${nameOf(session)} fits a phone`, async () => {
        const page = await open(session, { width: 390 });
        const beyond = await page.evaluate(() => {
            const isInScroll = (element) => element.parentElement?.closest(".scroll");
            return [...document.body.querySelectorAll("*")]
                .filter((element) => !isInScroll(element) && element.getBoundingClientRect().right > innerWidth + 0.5)
                .map((element) => element.outerHTML.slice(0, 120));
        });
        assert.deepEqual(beyond, []);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
        await close(page);
    });

test("the page is readable in both colours, with headings and tables that assistive programs understand", async () => {
    for (const options of [{ theme: "dark" }, { theme: "light" }, { theme: "light", width: 390 }]) {
        const page = await open(join(RECORDED, "h200-gemm-deep"), options);
        await axeCheck(page);
        await close(page);
    }
});

test("the button changes the colours", async () => {
    const page = await open(join(GOLDEN, "hostile"));
    const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await colour();
    await page.locator("#theme").click();
    assert.notEqual(await colour(), dark);
    await page.locator("#theme").click();
    assert.equal(await colour(), dark);
    await close(page);
});

test("a link leads to each section", async () => {
    const page = await open(join(RECORDED, "h200-gemm-deep"));
    const titles = await page.locator("nav a").allTextContents();
    assert.ok(titles.includes("HOT CODE") && titles.includes("TIMELINE"), titles.join());
    await page.locator("nav a", { hasText: "INSIGHTS" }).click();
    await page.locator("#insights").scrollIntoViewIfNeeded();
    assert.match(page.url(), /#insights$/);
    await close(page);
});

const view = (page) =>
    page.locator("#timeline-view").evaluate((element) => ({ from: Number(element.dataset.from), to: Number(element.dataset.to) }));
const spanOf = async (page) => {
    const { from, to } = await view(page);
    return to - from;
};

test("the wheel zooms the timeline where it points, and scrolls the page where there is nothing to zoom out of", async () => {
    const page = await open(join(RECORDED, "h200-training"));
    const box = await page.locator("#timeline-view canvas").boundingBox();
    const whole = await spanOf(page);
    await page.mouse.move(box.x + 0.75 * box.width, box.y + 60);
    await page.mouse.wheel(0, 100);
    await eventually(async () => (await page.evaluate(() => scrollY)) > 0, "the page did not scroll");
    assert.equal(await spanOf(page), whole);
    await page.evaluate(() => scrollTo(0, 0));
    const at = await page.evaluate(() => performance.now());
    await page.waitForFunction((begun) => performance.now() > begun + 500, at); // longer than the pause that ends a scroll
    await page.mouse.wheel(0, -400);
    await eventually(async () => (await spanOf(page)) < 0.8 * whole, "the timeline did not zoom");
    const near = await view(page);
    assert.ok(near.from > 0.25 * whole && near.to < whole, JSON.stringify(near));
    assert.equal(await page.evaluate(() => scrollY), 0);
    await close(page);
});

test("the keyboard zooms, pans and shows everything again", async () => {
    const page = await open(join(RECORDED, "h200-gemm-deep"));
    const whole = await view(page);
    const press = async (key, isDone) => {
        const before = await view(page);
        await page.keyboard.press(key);
        await eventually(async () => isDone(await view(page), before), `nothing came of ${key}`);
    };
    const isNearer = (now, before) => now.to - now.from < before.to - before.from;
    const isFarther = (now, before) => now.to - now.from > before.to - before.from;
    const isLater = (now, before) => now.from > before.from;
    const isEarlier = (now, before) => now.from < before.from;
    await press("w", isNearer);
    await press("w", isNearer);
    await press("d", isLater);
    await press("a", isEarlier);
    await press("s", isFarther);
    await page.locator("#timeline-view canvas").focus();
    await press("ArrowUp", isNearer);
    await press("ArrowRight", isLater);
    await press("ArrowLeft", isEarlier);
    await press("ArrowDown", isFarther);
    await press("f", (now) => now.from === whole.from && now.to === whole.to);
    await close(page);
});

test("dragging pans the zoomed timeline", async () => {
    const page = await open(join(RECORDED, "h200-gemm-deep"));
    const box = await page.locator("#timeline-view canvas").boundingBox();
    await page.keyboard.press("w");
    await eventually(async () => (await view(page)).from > 0);
    const { from } = await view(page);
    await page.mouse.move(box.x + 800, box.y + 30);
    await page.mouse.down();
    await page.mouse.move(box.x + 600, box.y + 30, { steps: 4 });
    await page.mouse.up();
    await eventually(async () => (await view(page)).from > from);
    await close(page);
});

test("hovering an event names it below its row, a click keeps it, Escape ends that", async () => {
    const page = await open(join(GOLDEN, "two_gpus"));
    const canvas = page.locator("#timeline-view canvas"), tip = page.locator("#timeline-tip");
    const box = await canvas.boundingBox();
    const rows = Math.floor((box.height - 24) / 20);
    let found = null;
    for (let row = 0; row < rows && !found; row++)
        for (let x = 0.2; x < 1 && !found; x += 0.02) {
            const y = 20 + 20 * row + 8;
            await page.mouse.move(box.x + x * box.width, box.y + y);
            if (await tip.isVisible()) found = { x: box.x + x * box.width, y: box.y + y };
        }
    assert.ok(found, "no event was found");
    assert.match(await tip.textContent(), /\S+\n[\d.]+ [num]?s, at [\d.]+ [num]?s\n\w+ · /);
    assert.ok((await tip.boundingBox()).y > found.y);
    await page.mouse.down();
    await page.mouse.up();
    await page.mouse.move(box.x + 2, box.y + 2);
    assert.ok(await tip.isVisible());
    await page.keyboard.press("Escape");
    assert.ok(!(await tip.isVisible()));
    await close(page);
});

test("times on the ruler differ however far the timeline is zoomed", async () => {
    const page = await open(join(RECORDED, "h200-training"));
    await page.evaluate(() => {
        const fill = CanvasRenderingContext2D.prototype.fillText;
        globalThis.drawn = [];
        CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
            globalThis.drawn.push(text);
            return fill.call(this, text, ...rest);
        };
    });
    for (let i = 0; i < 30; i++) {
        const before = await spanOf(page);
        await page.evaluate(() => (globalThis.drawn = []));
        await page.keyboard.press("w");
        await eventually(async () => (await spanOf(page)) < before);
        const times = (await page.evaluate(() => globalThis.drawn)).filter((text) => /^[\d.]+ [num]?s$/.test(text));
        assert.ok(times.length > 1, times.join());
        assert.equal(new Set(times).size, times.length, times.join());
    }
    await close(page);
});

test("it prints in light colours and returns to those of the screen", async () => {
    const page = await open(join(RECORDED, "h200-gemm-deep"));
    await page.evaluate(() => {
        addEventListener("beforeprint", () => (globalThis.printed = getComputedStyle(document.body).color));
    });
    const colour = () => page.evaluate(() => getComputedStyle(document.body).color);
    const onScreen = await colour();
    await page.pdf();
    const printed = await page.evaluate(() => globalThis.printed);
    assert.ok(printed && printed !== onScreen, printed);
    assert.equal(await colour(), onScreen);
    await close(page);
});
