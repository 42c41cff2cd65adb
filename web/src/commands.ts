// SPDX-License-Identifier: Apache-2.0
// Commands shown on empty pages. Each runs as shown, next to a program called ./program, and sends its recording to the
// server of the page (tests/ui/commands.test.mjs runs all of them).
const server = (): string => window.location.origin;

// options: of gpufl trace, "" for none
export const traceCommand = (options = ""): string =>
    `gpufl trace ${options === "" ? "" : `${options} `}--upload ${server()} -- ./program`;

export const watchCommand = (): string =>
    `gpufl monitor --listen none --output ./gpufl-monitor & gpufl agent --root ./gpufl-monitor --server ${server()}`;

export const diffCommand = (): string =>
    "gpufl trace --output ./before -- ./program; gpufl trace --output ./after -- ./program; gpufl diff ./before ./after";
