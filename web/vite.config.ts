// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from "vitest/config";

export default defineConfig({
    build: {
        target: "es2022",
        // The server's content policy lets no page load data: scripts or inline styles.
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        outDir: "dist",
        emptyOutDir: true,
        reportCompressedSize: false,
        // Which packages are inside, for the bill of materials; tools/build_dashboard.sh puts it beside the served files.
        license: { fileName: ".vite/licenses.json" },
    },
    server: { proxy: { "/api": "http://127.0.0.1:8080", "/healthz": "http://127.0.0.1:8080" } },
    test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"], environment: "node" },
});
