// SPDX-License-Identifier: Apache-2.0
// Writes built files as a C table that the server serves from: as they are and compressed, sorted by path.
// usage: node embed.mjs DIST OUT.c
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";

const types = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
};

const [dist, out] = process.argv.slice(2);
const paths = readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dist, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .sort((a, b) => (a < b ? -1 : 1));

// Long strings of escapes compile faster than lists of numbers.
const literal = (bytes) => {
    const lines = [];
    for (let at = 0; at < bytes.length; at += 32) {
        const part = bytes.subarray(at, at + 32);
        lines.push(`    "${[...part].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("")}"`);
    }
    return lines.length > 0 ? lines.join("\n") : '    ""';
};

const parts = [
    '/* SPDX-License-Identifier: Apache-2.0 */\n/* Generated from web/. */\n#include "server/dashboard.h"\n',
];
// Strings as long as these are beyond what the standard promises, and fine with every compiler that we use.
parts.push('#pragma GCC diagnostic ignored "-Woverlength-strings"\n');
const rows = [];
paths.forEach((path, index) => {
    const type = types[extname(path)];
    if (!type) throw new Error(`${path}: a file of a kind that the server has no type for`);
    const data = readFileSync(join(dist, path));
    const gzip = gzipSync(data, { level: 9 });
    const etag = createHash("sha256").update(data).digest("hex").slice(0, 16);
    const isImmutable = path.startsWith("assets/");
    parts.push(`static const char data_${index}[] =\n${literal(data)};\n`);
    parts.push(`static const char gzip_${index}[] =\n${literal(gzip)};\n`);
    rows.push(
        `    {"${path}", "${type}", data_${index}, ${data.length}, gzip_${index}, ${gzip.length}, "${etag}", ${isImmutable}},`,
    );
});
parts.push(`const struct http_static_file dashboard_files[] = {\n${rows.join("\n")}\n};`);
parts.push(`const size_t dashboard_file_count = ${rows.length};`);
parts.push('const char dashboard_missing[] = "";\n');
writeFileSync(out, parts.join("\n"));
