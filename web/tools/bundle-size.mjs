// SPDX-License-Identifier: Apache-2.0
// What the browser loads in all, compressed as the server sends it. Fails above the limit.
// usage: node bundle-size.mjs DIST
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const LIMIT_BYTES = 150 * 1024;
const dist = process.argv[2] ?? "dist";
let total = 0;
for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name === "licenses.json") continue;
    const size = gzipSync(readFileSync(join(entry.parentPath, entry.name)), { level: 9 }).length;
    total += size;
    console.log(`${String(size).padStart(8)}  ${entry.name}`);
}
console.log(`${String(total).padStart(8)}  in all, of ${LIMIT_BYTES}`);
process.exit(total <= LIMIT_BYTES ? 0 : 1);
