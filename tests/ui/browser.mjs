// SPDX-License-Identifier: Apache-2.0
// Chromium and axe, from the packages of web/.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const web = join(dirname(fileURLToPath(import.meta.url)), "../../web");
const require = createRequire(join(web, "package.json"));
const playwright = require("playwright-core");

export const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const places = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"].flatMap((name) => [
    `/usr/bin/${name}`,
    `/usr/local/bin/${name}`,
]);

/** For what must come: against hangs alone, since a busy machine may be slow. */
export const WAIT_MS = 600_000;

export function chromium() {
    const executablePath = process.env.CHROMIUM ?? places.find((place) => existsSync(place));
    if (!executablePath)
        throw new Error("there is no Chromium: apt-get install chromium, or say where it is in CHROMIUM");
    return playwright.chromium.launch({
        executablePath,
        timeout: WAIT_MS,
        args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
    });
}
