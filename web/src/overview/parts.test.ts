// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { slowdownText } from "./parts";

const overhead = (fraction: number, is_least = false) => ({
    wall_ns: 1,
    memory_peak_bytes: null,
    slowdown: { fraction, is_least, is_default_cost: false },
});

test("a slowdown is a share, a factor, or unknown", () => {
    expect(slowdownText(overhead(0.163))).toBe("the program was slowed down by about 16.3 %");
    expect(slowdownText(overhead(0.0004))).toBe("the program was slowed down by less than 0.1 %");
    expect(slowdownText(overhead(0.02, true))).toBe("the program was slowed down by at least 2.0 %");
    expect(slowdownText(overhead(399))).toBe("the program was slowed down by a factor of about 400");
    expect(slowdownText({ ...overhead(1), slowdown: null })).toBe("the slowdown is not known");
    expect(slowdownText(null)).toBe("the slowdown is not known");
});
