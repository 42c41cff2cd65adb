// SPDX-License-Identifier: Apache-2.0
// Two sessions beside each other: the server's verdicts, both distributions, and the code that changed.
import assert from "node:assert/strict";
import { axeCheck, eventually, pageTest, tableRows, useServer } from "./harness.mjs";
import { saxpySessions, saxpyUpload } from "./saxpy_sessions.mjs";

const server = useServer(["trace", "gpus", "deep", "samples", "monitor"], { prepare: saxpyUpload });
const [a, b] = [saxpySessions.before.id, saxpySessions.after.id];
const withKernel = `/compare?a=${a}&b=${b}&kernel=${encodeURIComponent(saxpySessions.kernel)}`;

pageTest(server, "kernels and scopes have the server's verdicts and shares", {}, async (page) => {
    const answer = await server.get("compare", { base: a, new: b });
    await page.open(`/compare?a=${a}&b=${b}`);
    await eventually(async () => (await tableRows(page, "compared kernels")).length === answer.kernels.length);
    const rows = await tableRows(page, "compared kernels");
    assert.deepEqual(
        rows.map((row) => row[1]),
        ["slower !", "new", "vanished"],
    );
    assert.deepEqual(
        rows.map((row) => row[8]),
        answer.kernels.map((row) => `${(Math.abs(row.share_of_change) * 100).toFixed(1)} %`),
    );
    assert.deepEqual(rows[0].slice(2, 5), ["+50.0 %", "100 µs", "150 µs"]);
    assert.equal(rows[1][6], "0 → 10");
    assert.equal(rows[2][6], "10 → 0");
    assert.match(
        await page.getByTestId("judgement").textContent(),
        new RegExp(`^${answer.regressions} regressions beyond 5\\.0 % .* \\+3\\.00 ms \\(\\+48\\.4 %\\)`),
    );
    // It ran once on each side, and not twice as long.
    assert.equal((await tableRows(page, "compared scopes"))[0][1], "same");
});

pageTest(server, "a threshold above the change makes it none", {}, async (page) => {
    await page.open(`/compare?a=${a}&b=${b}&threshold=60`);
    await page.getByTestId("judgement").getByText("No regression").waitFor();
    assert.equal((await tableRows(page, "compared kernels"))[0][1], "same");
});

pageTest(server, "without kernel times in one session there is no verdict", {}, async (page) => {
    await page.open(`/compare?a=${server.ids.trace}&b=${server.ids.monitor}`);
    await eventually(async () => /^No verdict/.test(await page.getByTestId("judgement").textContent()));
    assert.match(await page.getByTestId("judgement").textContent(), /after: not recorded \(engine Monitor\)$/);
    await page.getByText("not compared; after: not recorded (engine Monitor)").waitFor();
});

pageTest(server, "swapping turns slower into faster", {}, async (page) => {
    await page.open(`/compare?a=${a}&b=${b}`);
    await page.getByRole("button", { name: "swap" }).click();
    await eventually(async () => (await tableRows(page, "compared kernels"))[0]?.[1] === "faster");
    assert.equal(new URL(page.url()).searchParams.get("a"), b);
});

pageTest(server, "a verdict can be picked out, and the address keeps it", {}, async (page) => {
    await page.open(`/compare?a=${a}&b=${b}`);
    await page.getByRole("region", { name: "Kernels" }).getByRole("button", { name: "1 vanished" }).click();
    await eventually(async () => (await tableRows(page, "compared kernels")).length === 1);
    await page.reload();
    await eventually(async () => (await tableRows(page, "compared kernels")).length === 1);
    assert.match((await tableRows(page, "compared kernels"))[0][0], /zero_fill/);
});

pageTest(server, "a changed kernel shows which of its instructions changed", {}, async (page) => {
    await page.open(`/compare?a=${a}&b=${b}`);
    await page.getByRole("region", { name: "compared kernels" }).getByText("saxpy").click();
    await page.getByText("2 instructions removed, 1 added; 14 before, 13 after").waitFor();
    const texts = (kind) =>
        page
            .locator(`.diff-half.is-${kind}`)
            .evaluateAll((halves) => halves.map((half) => half.textContent.replace(/^(.)[\d. %]*0x/, "$10x")));
    assert.deepEqual(await texts("removed"), ["-0x00a0 FMUL R3, R3, UR7", "-0x00b0 FADD R7, R3, R6"]);
    assert.deepEqual(await texts("added"), ["+0x00a0 FFMA R7, R3, UR7, R6"]);
    await page.getByRole("button", { name: "7 equal instructions" }).click();
    await page.getByText("LDC R1").first().waitFor();
    await page.getByRole("img", { name: /^before: median 100 µs, 97\.1 µs to 103 µs; after: median 150 µs/ }).waitFor();
});

pageTest(server, "the same cubin is said to be the same, and missing code to be missing", {}, async (page) => {
    await page.open(`/compare?a=${server.ids.deep}&b=${server.ids.samples}&kernel=vector_add`);
    await page.getByText("the same code in both sessions (CRC 520137217)").waitFor();
    await page.open(`/compare?a=${server.ids.trace}&b=${server.ids.deep}&kernel=vector_add`);
    await page.getByText(/no engine kept the code of this kernel before/).waitFor();
});

pageTest(server, "two sessions are chosen from the list", {}, async (page) => {
    await page.open("/compare");
    await page.getByText("Choose two sessions").waitFor();
    await page.getByLabel("before").selectOption(server.ids.trace);
    await page.getByLabel("after").selectOption(server.ids.gpus);
    const answer = await server.get("compare", { base: server.ids.trace, new: server.ids.gpus });
    await eventually(async () => (await tableRows(page, "compared kernels")).length === answer.kernels.length);
    assert.equal(new URL(page.url()).searchParams.get("b"), server.ids.gpus);
});

pageTest(server, "an unknown session is an answer, not a blank page", { isNoisy: true }, async (page) => {
    await page.open(`/compare?a=${a}&b=nothing`);
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").textContent(), /nothing|session/);
});

for (const [theme, width] of [
    ["dark", 1440],
    ["light", 1440],
    ["dark", 390],
])
    pageTest(
        server,
        `axe finds nothing serious on a comparison with code, ${theme}, ${width} px wide`,
        { theme, width },
        async (page) => {
            await page.open(withKernel);
            await page.getByTestId("diff-summary").waitFor();
            await axeCheck(page);
            assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
        },
    );
