// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import * as format from "./format";

describe("numbers", () => {
    it("have three significant digits and a unit", () => {
        expect(format.time(0)).toBe("0 ns");
        expect(format.time(999)).toBe("999 ns");
        expect(format.time(1234)).toBe("1.23 µs");
        expect(format.time(12_345_678)).toBe("12.3 ms");
        expect(format.time(12_310_919_427)).toBe("12.3 s");
        expect(format.bytes(1536)).toBe("1.50 KiB");
        expect(format.rate(8.94e9)).toBe("8.94 GB/s");
    });
    it("go to the next unit where rounding reaches it", () => {
        expect(format.time(999_999)).toBe("1.00 ms");
        expect(format.time(999.6)).toBe("1.00 µs");
        expect(format.bytes(1023.9)).toBe("1.00 KiB");
        expect(format.digits(9.999)).toBe("10.0");
    });
    it("are minutes, hours and days where seconds say nothing", () => {
        expect(format.time(125e9)).toBe("2 min 5 s");
        expect(format.time(2 * 3600e9 + 60e9)).toBe("2 h 1 min");
        expect(format.time(72 * 3600e9)).toBe("3.00 d");
    });
    it("keep their sign", () => {
        expect(format.time(-1500)).toBe("-1.50 µs");
        expect(format.signedPercent(0.125)).toBe("+12.5 %");
        expect(format.signedPercent(-0.125)).toBe("-12.5 %");
    });
    it("are never 0 when they are not known", () => {
        for (const write of [
            format.time,
            format.bytes,
            format.rate,
            format.count,
            format.countShort,
            format.percent,
            format.instant,
            format.ago,
        ])
            expect((write as (value: null) => string)(null)).toBe("unavailable");
        expect(format.quantity(undefined, "W")).toBe("unavailable");
        expect(format.share(1, 0)).toBe("unavailable");
        expect(format.count(Number.NaN)).toBe("unavailable");
    });
    it("of shares say that little is not nothing", () => {
        expect(format.percent(0)).toBe("0 %");
        expect(format.percent(0.0004)).toBe("< 0.1 %");
        expect(format.percent(0.055)).toBe("5.5 %");
        expect(format.percent(0.9996)).toBe("100 %");
    });
    it("of counts are whole", () => {
        expect(format.count(146_100)).toBe("146,100");
        expect(format.count(2n ** 60n)).toBe("1,152,921,504,606,846,976");
        expect(format.countShort(1_234_567)).toBe("1.23 M");
        expect(format.plural(1, "kernel")).toBe("1 kernel");
        expect(format.plural(0, "kernel")).toBe("0 kernels");
    });
});

describe("names", () => {
    it("are cut in the middle by letters, not by halves of them", () => {
        expect(format.middleCut("abcdefghij", 5)).toBe("ab…ij");
        expect(format.middleCut("abc", 5)).toBe("abc");
        const cut = format.middleCut("🚀".repeat(20), 5);
        expect([...cut]).toHaveLength(5);
        expect(encodeURIComponent(cut)).not.toBe(""); // throws on half a letter
    });
    it("are short without templates and arguments", () => {
        expect(format.shortName("void at::native::reduce_kernel<128, 4, at::Op<float>>(at::Op<float>)")).toBe(
            "at::native::reduce_kernel",
        );
        expect(format.shortName("void at::native::(anonymous namespace)::gamma<float>(float*)")).toBe(
            "at::native::(anonymous namespace)::gamma",
        );
        expect(format.shortName("nvjet_sm90_tst")).toBe("nvjet_sm90_tst");
        expect(format.shortName("<<<")).toBe("<<<");
    });
});

describe("points in time", () => {
    it("say how long ago they were", () => {
        expect(format.ago(1_000_000_000_000, 1_012_000)).toBe("12 s ago");
        expect(format.ago(1_000_000_000_000, 1_000_000 + 3 * 3_600_000)).toBe("3 h ago");
        expect(format.ago(2_000_000_000_000, 1_000_000)).toBe("now");
    });
});
