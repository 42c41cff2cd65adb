// SPDX-License-Identifier: Apache-2.0
// Command lines that fill an empty page. Each runs as it is, beside a program called ./program, and sends what it records
// to the server that the page came from (tests/ui/commands.test.mjs runs them all).
const server = (): string => window.location.origin;

// options: of gpufl trace, "" for none
export const traceCommand = (options = ""): string =>
    `gpufl trace ${options === "" ? "" : `${options} `}--upload ${server()} -- ./program`;

export const watchCommand = (): string =>
    `gpufl monitor --listen none --output ./gpufl-monitor & gpufl agent --root ./gpufl-monitor --server ${server()}`;

export const diffCommand = (): string =>
    "gpufl trace --output ./before -- ./program; gpufl trace --output ./after -- ./program; gpufl diff ./before ./after";
