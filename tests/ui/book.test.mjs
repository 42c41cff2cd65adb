// SPDX-License-Identifier: Apache-2.0
// The book, opened from the disk: search, colours, links, and nothing asked of a network.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import assert from "node:assert/strict";
import { WAIT_MS, chromium } from "./browser.mjs";
import { SOURCE, axeCheck } from "./harness.mjs";

let directory, browser, page;
const asked = [];

before(async () => {
    directory = mkdtempSync(join(tmpdir(), "gpufl-book-"));
    execFileSync("/usr/bin/python3", ["-B", join(SOURCE, "tools/build_book.py"), join(directory, "book")]);
    browser = await chromium();
    const viewport = { width: 1280, height: 800 };
    page = await browser.newPage({ viewport, colorScheme: "dark", reducedMotion: "reduce" });
    page.setDefaultTimeout(WAIT_MS);
    page.on("request", (request) => request.url().startsWith("file:") || asked.push(request.url()));
    page.on("pageerror", (error) => asked.push(`it threw: ${error.message}`));
    await page.goto(pathToFileURL(join(directory, "book", "docs", "engines.html")).href);
});

after(async () => {
    await browser?.close();
    rmSync(directory, { recursive: true, force: true });
});

test("a search from the keyboard leads to the heading", async () => {
    await page.keyboard.press("/");
    await page.keyboard.type("kernels without scope");
    await page.locator("#found a.is-on").waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/troubleshooting\.html#kernels-without-a-scope$/);
    await page.locator("h1", { hasText: "Troubleshooting" }).waitFor();
});

test("a search without a result says so", async () => {
    await page.locator("#search").fill("zzyzx");
    await page.locator("#found p", { hasText: "zzyzx" }).waitFor();
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#found").isVisible(), false);
});

test("the colours can be chosen, and are readable in both", async () => {
    const colour = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await colour();
    await axeCheck(page);
    await page.locator("#theme").click();
    assert.notEqual(await colour(), dark);
    await axeCheck(page);
    for (const name of ["index.html", "docs/configuration.html", "docs/dashboard.html"]) {
        await page.goto(pathToFileURL(join(directory, "book", name)).href); // in the colours that were chosen
        await axeCheck(page);
    }
});

test("a page has an outline, coloured code and buttons that copy the commands", async () => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.goto(pathToFileURL(join(directory, "book", "docs", "quickstart-cuda.html")).href);
    await page.locator("aside a", { hasText: "Find the slow line of a kernel" }).waitFor();
    assert.ok((await page.locator("pre .keyword").count()) > 5);
    assert.ok((await page.locator("pre .comment").count()) > 2);
    await page.locator(".code", { hasText: "HOT CODE" }).getByRole("button").click();
    await page.locator(".code button", { hasText: "Copied" }).waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied, "gpufl report examples/recorded/h200-gemm-deep --top 4\n");
    await axeCheck(page);
});

test("a phone shows the page first and scrolls in one direction only", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    for (const name of ["index.html", "docs/quickstart-cuda.html", "docs/engines.html", "docs/configuration.html"]) {
        await page.goto(pathToFileURL(join(directory, "book", name)).href);
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 390, name);
        const { y } = await page.locator("h1").first().boundingBox();
        assert.ok(y > 0 && y < 200, `${name}: ${y}`);
    }
    await page.locator(".to-pages").click();
    await page.locator("nav [aria-current]").waitFor();
    await axeCheck(page);
});

test("nothing was asked of a network and nothing was thrown", () => {
    assert.deepEqual(asked, []);
});
