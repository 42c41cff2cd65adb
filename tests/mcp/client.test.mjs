// SPDX-License-Identifier: Apache-2.0
// `gpufl mcp` with the official client of the Model Context Protocol, which checks every structured answer against the
// tool's output schema.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { LATEST_PROTOCOL_VERSION } from "@modelcontextprotocol/sdk/types.js";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const SOURCE = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const GPUFL = join(resolve(process.env.GPUFL_BUILD_DIR ?? join(SOURCE, "build")), "bin", "gpufl");
const RECORDED = join(SOURCE, "examples", "recorded");
const GOLDEN = join(SOURCE, "tests", "golden");

/** Runs `body` with a connected client, whose tools are known. */
async function connected(directory, body) {
    const errors = [];
    const transport = new StdioClientTransport({ command: GPUFL, args: ["mcp", directory], stderr: "pipe" });
    const client = new Client({ name: "gpufl-tests", version: "1.0.0" });
    client.onerror = (error) => errors.push(error); // what is not JSON on standard output
    await client.connect(transport);
    const { tools } = await client.listTools();
    try {
        await body(client, tools);
    } finally {
        await client.close();
    }
    assert.deepEqual(errors, []);
}

/** The structured answer of a tool; the client has checked it. */
async function ask(client, name, args = {}) {
    const result = await client.callTool({ name, arguments: args });
    assert.ok(!result.isError, `${name} ${JSON.stringify(args)}: ${result.content[0].text}`);
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
    return result.structuredContent;
}

test("the client agrees on its newest version and sees a read-only server", () =>
    connected(RECORDED, async (client, tools) => {
        assert.equal(client.getServerVersion().name, "gpufl");
        assert.ok(client.getServerCapabilities().tools);
        assert.match(client.getInstructions(), /Start with `sessions`/);
        await client.ping();
        assert.ok(LATEST_PROTOCOL_VERSION >= "2025-11-25");
        assert.ok(tools.every((tool) => tool.annotations.readOnlyHint && !tool.annotations.destructiveHint));
    }));

test("pointers to more are calls that the tools accept", () =>
    connected(RECORDED, async (client, tools) => {
        const validator = new AjvJsonSchemaValidator();
        const accepts = Object.fromEntries(tools.map((tool) => [tool.name, validator.getValidator(tool.inputSchema)]));
        const { sessions } = await ask(client, "sessions");
        assert.ok(sessions.length >= 6);
        for (const { name } of sessions) {
            for (const tool of ["summary", "insights", "kernels", "scopes", "timeline"]) {
                const { more } = await ask(client, tool, { session: name });
                for (const pointer of more) {
                    assert.ok(accepts[pointer.tool](pointer.arguments).valid, JSON.stringify(pointer));
                    await ask(client, pointer.tool, pointer.arguments);
                }
            }
        }
    }));

test("every tool answers within its schema, or refuses, on every golden session", () =>
    connected(GOLDEN, async (client, tools) => {
        const names = readdirSync(GOLDEN).filter((name) => existsSync(join(GOLDEN, `${name}.txt`)));
        assert.ok(names.length > 10);
        for (const session of names) {
            for (const tool of tools) {
                const args = { sessions: {}, diff: { base: "trace", new: session } }[tool.name] ?? { session };
                if (tool.name === "instructions") args.function = "a";
                const result = await client.callTool({ name: tool.name, arguments: args });
                if (result.isError) assert.ok(result.content[0].text.length > 10);
                else assert.ok(result.structuredContent.more);
            }
        }
    }));

test("wrong calls are refused in words that say what to do", () =>
    connected(RECORDED, async (client) => {
        await assert.rejects(client.callTool({ name: "delete" }), /no tool 'delete'; tools are sessions/);
        const wrong = await client.callTool({ name: "summary", arguments: { session: "../.." } });
        assert.ok(wrong.isError);
        assert.match(wrong.content[0].text, /is outside of/);
        const missing = await client.callTool({ name: "lines", arguments: { session: "h200-pipeline" } });
        assert.match(missing.content[0].text, /gpufl trace --engine Deep/);
    }));

test("a conversation finds the hottest line of the matrix product and its cause", () =>
    connected(RECORDED, async (client) => {
        // Which session has samples of the code?
        const { sessions } = await ask(client, "sessions", { filter: "gemm" });
        const session = sessions.find((one) => one.engine === "Deep").name;
        // What takes the time, and where to look next?
        const summary = await ask(client, "summary", { session });
        assert.match(summary.top_kernels[0].name, /^gemm_naive\(/);
        assert.ok(summary.top_kernels[0].share > 0.5);
        assert.ok(summary.evidence.is_complete);
        // Which line is it?
        const toLines = summary.more.find((pointer) => pointer.tool === "lines");
        const { lines } = await ask(client, "lines", toLines.arguments);
        const hottest = lines[0];
        const source = readFileSync(join(SOURCE, "examples/gemm/1_naive.cuh"), "utf8").split("\n");
        assert.match(hottest.file, /1_naive\.cuh$/);
        assert.equal(hottest.source, source[hottest.line - 1]);
        assert.match(hottest.source, /sum \+= a\[row \* size \+ k\]/);
        assert.ok(hottest.share > 0.8);
        // Why? Its warps wait for the queue of global memory, because a warp's loads of A are a row apart.
        assert.equal(hottest.cause.name, "lg_throttle");
        assert.equal(hottest.cause.family, "memory");
        assert.ok(hottest.cause.share > 0.9);
        assert.ok(hottest.counters.coalescing < 0.2);
        assert.ok(hottest.counters.sectors_per_request > 16);
        // The rules say the same.
        const { insights } = await ask(client, "insights", { session });
        const found = insights.find((insight) => insight.rule === "uncoalesced_access");
        assert.match(found.text, /1_naive\.cuh:11/);
        assert.match(found.text, /neighbouring threads access neighbouring addresses/);
        // And the instruction is a load.
        const listing = await ask(client, "instructions", { session, function: hottest.function, line: hottest.line });
        const [worst] = [...listing.instructions].sort((a, b) => b.samples - a.samples);
        assert.match(worst.sass, /^LDG/);
    }));
