// SPDX-License-Identifier: Apache-2.0
// Code: functions, instructions and lines with what was sampled and counted at each.
import assert from "node:assert/strict";
import { axeCheck, eventually, pageTest, tableRows, useServer } from "./harness.mjs";
import { saxpySessions, saxpyUpload } from "./saxpy_sessions.mjs";

const server = useServer(["h200", "deep", "samples", "counters", "amd"], { prepare: saxpyUpload });
const code = (id) => `/sessions/${id ?? saxpySessions.before.id}/code`;
const rowOf = (page, pc) => page.locator(`.code-row[data-pc="${pc}"]`);
const lineOf = (page, line) => page.locator(`.code-row[data-line="${line}"]`);

pageTest(server, "the head states the data", {}, async (page) => {
    await page.open(code());
    await page
        .getByText("1,000 samples in 50.0 ms (continuous, period 2^18) · counters from 4 of 70 launches")
        .waitFor();
});

pageTest(server, "functions come by samples, and a click shows another", {}, async (page) => {
    const id = server.ids.deep;
    const { functions } = await server.get(`sessions/${id}/code`, { limit: 1 });
    const samples = functions.reduce((sum, entry) => sum + entry.samples, 0);
    await page.open(code(id));
    await eventually(async () => (await tableRows(page, "functions")).length === functions.length);
    const rows = await tableRows(page, "functions");
    assert.deepEqual(
        rows.map((row) => row[1]),
        functions.map((entry) => `${((100 * entry.samples) / samples).toFixed(1)} %`),
    );
    await page.getByRole("region", { name: "functions" }).getByText("distances").click();
    await page.getByRole("heading", { name: /^distances/ }).waitFor();
    const listing = await server.get(`sessions/${id}/code/${functions[2].function_id}`);
    await page.reload();
    await page.getByRole("heading", { name: /^distances/ }).waitFor();
    const hottest = listing.instructions.reduce((best, step) => (step.samples > best.samples ? step : best));
    await page.locator(`.code-row.is-on[data-pc="${hottest.pc}"]`).waitFor();
});

pageTest(server, "each instruction shows its samples, executions, threads and sectors", {}, async (page) => {
    await page.open(code());
    const cells = (pc) =>
        rowOf(page, pc)
            .locator("> span")
            .evaluateAll((spans) => spans.map((span) => span.textContent));
    await rowOf(page, 160).waitFor();
    // samples, stalls, executed, threads, sectors, arrow, offset, line, text
    assert.deepEqual(await cells(160), ["80.0 %", "", "8,192", "8.00", "", "", "00a0", "3", "FMUL R3, R3, UR7"]);
    assert.deepEqual(await cells(112), [
        "",
        "",
        "8,192",
        "8.00",
        "25.0 %",
        "",
        "0070",
        "10",
        "LDG.E R3, desc[UR4][R2.64]",
    ]);
    assert.deepEqual(await cells(0), ["", "", "8,192", "32.0", "", "", "0000", "6", "LDC R1, c[0x0][0x28]"]);
    const bar = await rowOf(page, 160).getByRole("img").getAttribute("aria-label");
    assert.equal(bar, "stalls: long_scoreboard 87.5 %, selected 12.5 %");
});

pageTest(server, "an arrow leads from the hottest instruction to the load that it waits for", {}, async (page) => {
    await page.open(code());
    await page.locator(".code-row.is-on[data-pc='160']").waitFor();
    await page.locator(".code-row.is-target[data-pc='112']").waitFor();
    assert.equal(await page.locator(".arrows .head").count(), 1);
    const facts = page.getByTestId("instruction-facts");
    assert.match(await facts.textContent(), /waits for0x0070 LDG\.E R3, desc\[UR4\]\[R2\.64\] through R3/);
    await facts.getByRole("button").click();
    await page.locator(".code-row.is-on[data-pc='112']").waitFor();
    assert.equal(await page.locator(".arrows .head").count(), 0);
});

pageTest(server, "a line lights its instructions, an instruction its line", {}, async (page) => {
    const { instructions } = await server.get(`sessions/${saxpySessions.before.id}/code/1`);
    await page.open(code());
    await lineOf(page, 10).hover();
    const expected = instructions.filter((step) => step.line === 10).map((step) => String(step.pc));
    await eventually(async () => (await page.locator(".code-row.is-lit[data-pc]").count()) === expected.length);
    assert.deepEqual(
        await page.locator(".code-row.is-lit[data-pc]").evaluateAll((rows) => rows.map((row) => row.dataset.pc)),
        expected,
    );
    await rowOf(page, 80).hover();
    await page.locator(".code-row.is-lit[data-line='9']").waitFor();
    assert.equal(await page.locator(".code-row.is-lit[data-line]").count(), 1);
    await lineOf(page, 10).click();
    await page.locator(".code-row.is-on[data-pc='176']").waitFor();
});

pageTest(server, "lines have the sums of their instructions", {}, async (page) => {
    await page.open(code());
    await lineOf(page, 10).waitFor();
    assert.deepEqual(
        await lineOf(page, 10)
            .locator("> span")
            .evaluateAll((spans) => spans.map((span) => span.textContent)),
        ["20.0 %", "", "8,192", "10", "        y[i] = scaled(a, x[i]) + y[i];"],
    );
    assert.equal(await lineOf(page, 3).locator(".c-text").textContent(), "    return a * x; // <b>not bold</b>");
    assert.equal(await page.locator(".code-rows b").count(), 0);
});

pageTest(server, "hottest first is the order of samples, by click and by key", {}, async (page) => {
    const { instructions } = await server.get(`sessions/${server.ids.deep}/code/1`);
    await page.open(code(server.ids.deep));
    await page.getByRole("button", { name: "hottest first" }).click();
    const hot = instructions
        .filter((step) => step.samples > 0)
        .sort((a, b) => b.samples - a.samples)
        .map((step) => String(step.pc));
    const shown = async () =>
        page.locator(".code-row[data-pc]").evaluateAll((rows) => rows.map((row) => row.dataset.pc));
    await eventually(async () => (await shown()).slice(0, hot.length).join() === hot.join());
    await page.keyboard.press("o");
    await eventually(async () => (await shown())[0] === "0");
    await page.keyboard.press("n");
    await page.locator(`.code-row.is-on[data-pc="${hot[1]}"]`).waitFor();
});

pageTest(server, "code that was only counted is shown without samples", {}, async (page) => {
    await page.open(code(server.ids.counters));
    await page.getByText(/^no samples · counters from 32/).waitFor();
    await page.locator(".code-row[data-pc='192']").getByText("LDG.E").waitFor();
    assert.equal(await page.locator(".code-row .heat").count(), 0);
    assert.match(await rowOf(page, 192).textContent(), /32\.8 k8\.00/);
});

pageTest(server, "code that was only sampled is shown without counters", {}, async (page) => {
    await page.open(code(server.ids.samples));
    await page.locator(".code-row.is-on").first().waitFor();
    assert.equal(await page.locator(".code-row .c-count").count(), 0);
    assert.ok((await page.locator(".code-row .heat").count()) > 0);
});

pageTest(server, "missing text is said to be missing", {}, async (page) => {
    await page.open(code(server.ids.deep));
    await page.getByText(/The session holds no text of/).waitFor();
    await page.getByText(/raw words, named where the operation is known/).waitFor();
    assert.match(await rowOf(page, 208).textContent(), /LDG0x000ee2000c1e1900 0x0000000402037981/);
    await page.open(`${code(server.ids.deep)}?function=2`);
    await page.getByText("its code was not stored: larger than GPUFL_CODE_BYTES_MAX", { exact: true }).waitFor();
});

pageTest(server, "inlined calls are named, and the PTX is there where the cubin has it", {}, async (page) => {
    const listing = await server.get(`sessions/${server.ids.deep}/code/3`);
    const inlined = listing.instructions.find((step) => step.inlined_at.length > 0);
    await page.open(`${code(server.ids.deep)}?function=3&pc=${inlined.pc}`);
    const name = (path) => path.slice(path.lastIndexOf("/") + 1);
    const words = `${name(inlined.file)}:${inlined.line}, inlined at ${name(inlined.inlined_at[0].file)}:${inlined.inlined_at[0].line}`;
    await page.getByTestId("instruction-facts").getByText(words).waitFor();
    await page.getByRole("button", { name: "PTX" }).click();
    await page.getByRole("region", { name: "PTX" }).getByText(".visible .entry _Z9distancesPKfS0_Pfi(").waitFor();
});

pageTest(server, "a session without samples says how to take some", {}, async (page) => {
    await page.open(code(server.ids.h200));
    await page.getByText(/No instruction was sampled or counted/).waitFor();
    await page.getByText(`gpufl trace --engine Deep --upload ${server.url} -- ./program`).waitFor();
});

for (const [theme, width] of [
    ["dark", 1440],
    ["light", 1440],
    ["dark", 390],
])
    pageTest(
        server,
        `axe finds nothing serious on code with text, ${theme}, ${width} px wide`,
        { theme, width },
        async (page) => {
            await page.open(code());
            await rowOf(page, 160).waitFor();
            await lineOf(page, 3).waitFor();
            await axeCheck(page);
            assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
        },
    );

pageTest(server, "an AMD kernel is ISA, with its registers, its lines and no PTX", {}, async (page) => {
    await page.open(code(server.ids.amd));
    await page.getByRole("heading", { name: /^block_sum/ }).waitFor();
    await page.getByText("4 VGPRs · 10 SGPRs").waitFor();
    await page.getByText("8 of 8 waves per SIMD").waitFor();
    assert.equal(await page.locator(".code-heads .grow").innerText(), "ISA");
    assert.equal(await page.getByRole("button", { name: "PTX" }).count(), 0);
    await page.getByText(/started with GPUFL_LLVM_OBJDUMP/).waitFor();
    await page.getByRole("region", { name: "functions" }).getByText("vector_add").click();
    await page.getByRole("heading", { name: /^vector_add/ }).waitFor();
    await rowOf(page, 8).getByText("0xd2000000").waitFor();
    await lineOf(page, 18).getByText("c[i] = a[i] + scaled(b[i], 2.0f);").waitFor();
    await page.reload();
    await page.getByRole("heading", { name: /^vector_add/ }).waitFor();
    await axeCheck(page);
});
