// SPDX-License-Identifier: Apache-2.0
// `gpufl view` in a browser: the page that its URL leads to is whole at once, and Ctrl-C ends the command.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import { WAIT_MS, chromium } from "./browser.mjs";
import { BUILD, SOURCE, eventually } from "./harness.mjs";

const DEMO = join(SOURCE, "examples", "recorded", "h200-training");
let browser;

before(async () => {
    browser = await chromium();
});
after(() => browser?.close());

test("the demo session's overview needs nothing but the answers to its first questions", async (t) => {
    const begun = performance.now();
    const view = spawn(join(BUILD, "bin", "gpufl"), ["view", "--no-browser", DEMO], { stdio: ["ignore", "pipe", "inherit"] });
    const [printed] = await once(view.stdout.setEncoding("utf8"), "data");
    const url = printed.trim(), ready = performance.now();
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    page.setDefaultTimeout(WAIT_MS);
    const complaints = [], answers = [];
    page.on("pageerror", (error) => complaints.push(`it threw: ${error.message}`));
    page.on("response", (response) => {
        if (!response.url().startsWith(new URL(url).origin)) complaints.push(`it asked another host: ${response.url()}`);
        if (/\/api\//.test(response.url())) answers.push(response);
    });
    await page.goto(url);
    await page.getByText("146,100 kernels").first().waitFor();
    await eventually(async () => (await page.locator(".is-loading").count()) === 0, "the page did not settle");
    const shown = performance.now();
    // No answer says that the session is still being read: whoever waits for one waits for nothing.
    assert.ok(answers.length > 3);
    assert.deepEqual(answers.filter((answer) => ![200, 304].includes(answer.status())).map((answer) => `${answer.status()} ${answer.url()}`), []);
    assert.deepEqual(complaints, []);
    t.diagnostic(`URL after ${Math.round(ready - begun)} ms, overview after ${Math.round(shown - begun)} ms`);
    await page.close();
    view.kill("SIGINT");
    const [code] = await once(view, "exit");
    assert.equal(code, 0);
});
