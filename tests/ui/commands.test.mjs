// SPDX-License-Identifier: Apache-2.0
// The commands on empty pages run as they are: copied into a shell beside a program called ./program, they fill the page.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { BUILD, eventually, pageTest, useServer } from "./harness.mjs";

const server = useServer([]);
const commands = {}; // by page, of a server that has nothing yet

// A directory with a program that uses the fake GPU, and an environment in which gpufl is found.
function workplace(name) {
    const directory = join(server.directory, name);
    mkdirSync(directory);
    const fakes = join(BUILD, "fakes");
    const program = `#!/bin/sh\nexec '${join(fakes, "fake_app")}' --launches 100\n`;
    writeFileSync(join(directory, "program"), program, { mode: 0o755 });
    const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !/^(GPUFL|FAKE|CUDA)_/.test(key)));
    for (const library of ["CUDA", "CUPTI", "NVML"]) env[`GPUFL_${library}_PATH`] = fakes;
    Object.assign(env, {
        PATH: `${join(BUILD, "bin")}:${env.PATH}`,
        LD_LIBRARY_PATH: fakes,
        FAKE_MACHINE: String(process.pid),
        GPUFL_SYSFS_ROOT: "/nonexistent",
        HOME: directory,
    });
    return { cwd: directory, env };
}

// What a command line prints; it must end with one of the statuses.
function shell(command, options, statuses = [0]) {
    return new Promise((resolve, reject) => {
        execFile("/bin/sh", ["-c", command], options, (error, stdout, stderr) => {
            const status = error ? error.code : 0;
            if (statuses.includes(status)) resolve(stderr + stdout);
            else reject(new Error(`${command} ended with ${status}:\n${stdout}${stderr}`));
        });
    });
}

async function commandsOn(page, path) {
    await page.open(path);
    await page.locator("main h1, main .state:not(.is-loading)").first().waitFor();
    await page.settled();
    return page.locator("main .command code").allTextContents();
}

pageTest(server, "every empty page has a command", {}, async (page) => {
    for (const name of ["sessions", "fleet", "compare"]) {
        const found = await commandsOn(page, `/${name}`);
        assert.equal(found.length, 1, name);
        commands[name] = found[0];
    }
});

pageTest(server, "the command on the empty list of sessions records a program and sends it", {}, async (page) => {
    await shell(commands.sessions, workplace("sessions"));
    await eventually(async () => (await server.get("sessions")).sessions.some((session) => session.kernels === 100));
    await page.open("/sessions");
    await page.getByRole("link", { name: "program" }).first().waitFor();
});

test("the command on the empty Compare page compares two recordings", async () => {
    const options = workplace("compare");
    const printed = await shell(commands.compare, options, [0, 1]); // 1: the second was slower
    assert.match(printed, /\d+ regressions? \(slower by more than/);
    assert.deepEqual(readdirSync(options.cwd).sort(), ["after", "before", "program"]);
});

test("the command on the empty fleet brings this host into it", async () => {
    // The latest sample of a GPU is the monitor's.
    const isWatched = async () => {
        const { sessions } = await server.get("sessions", { app: "gpufl-monitor" });
        const { hosts } = await server.get("hosts");
        return hosts.some((host) => host.gpus.some((gpu) => gpu.metrics && gpu.session_id === sessions[0]?.id));
    };
    const both = spawn("/bin/sh", ["-c", commands.fleet], { ...workplace("fleet"), detached: true, stdio: "ignore" });
    try {
        await eventually(isWatched, "no GPU of this host was sampled");
    } finally {
        process.kill(-both.pid, "SIGKILL");
    }
});

pageTest(server, "commands on a session's empty pages record what was missing", {}, async (page) => {
    await server.upload("empty", "monitor");
    const found = new Set();
    for (const id of [server.ids.empty, server.ids.monitor])
        for (const name of ["kernels", "timeline", "code"])
            for (const command of await commandsOn(page, `/sessions/${id}/${name}`)) found.add(command);
    assert.ok(
        [...found].some((command) => command.includes("--engine Deep")),
        [...found].join("\n"),
    );
    const options = workplace("session");
    for (const command of found) {
        const before = (await server.get("sessions", { limit: 500 })).sessions.length;
        await shell(command, options);
        const hasMore = async () => (await server.get("sessions", { limit: 500 })).sessions.length > before;
        await eventually(hasMore, `nothing was sent by: ${command}`);
    }
});
