// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { type ComparedRow, type ComparedSession, kernelChange, missingTimes, refusalOf, rowName } from "./answers";

const row: ComparedRow = {
    verdict: "same",
    is_regression: false,
    change_ns: 0,
    share_of_change: 0,
    median_ratio: null,
    base: null,
    new: null,
};

const timed: ComparedSession = {
    session_id: "a",
    app: null,
    host: null,
    start_ns: null,
    wall_ns: 100,
    kernels: 2,
    kernel_ns: 50,
    busy_ns: 40,
    kernel_times_missing: null,
    lost: 0,
    lost_is_exact: true,
    is_complete: true,
    common_share: 1,
};
const watched: ComparedSession = {
    ...timed,
    kernels: null,
    kernel_ns: null,
    busy_ns: null,
    kernel_times_missing: "not recorded (engine Monitor)",
};

describe("rows of a comparison", () => {
    it("say of a scope or a kernel without a name that it was not recorded", () => {
        expect(rowName({ ...row, path: null })).toBe("(name not recorded)");
        expect(rowName({ ...row, name: null })).toBe("(name not recorded)");
        expect(rowName({ ...row, path: "step > add" })).toBe("step > add");
    });
});

describe("sessions of a comparison", () => {
    it("say why there is no verdict", () => {
        const sides = { base: timed, new: timed, threshold: 0.05, regressions: null, is_total_regression: null };
        const data = { ...sides, no_verdict: null, kernels: [], scopes: [] };
        expect(refusalOf(data)).toBe("");
        expect(refusalOf({ ...data, no_verdict: "times missing", new: watched })).toBe(
            "without kernel times; after: not recorded (engine Monitor)",
        );
        const killed = { ...timed, is_complete: false };
        expect(refusalOf({ ...data, no_verdict: "incomplete", base: killed })).toBe("not complete: before");
        expect(refusalOf({ ...data, no_verdict: "incomplete", base: killed, new: killed })).toBe(
            "not complete: before, after",
        );
        const other = { ...timed, common_share: 0.1 };
        expect(refusalOf({ ...data, no_verdict: "not comparable", base: other, new: other })).toBe(
            "the sessions are not comparable: the kernels in both take 10.0 % of the kernel time before and 10.0 % after",
        );
    });
    it("have a change of kernel time where both recorded it", () => {
        expect(kernelChange(timed, { ...timed, kernel_ns: 75 })).toEqual({ ns: 25, fraction: 0.5 });
        expect(kernelChange({ ...timed, kernel_ns: 0 }, timed)).toEqual({ ns: 50, fraction: null });
        expect(kernelChange(timed, watched)).toBeNull();
        expect(kernelChange(watched, timed)).toBeNull();
    });
    it("say why one of them has no kernel times", () => {
        expect(missingTimes(timed, timed)).toBe("");
        expect(missingTimes(timed, watched)).toBe("after: not recorded (engine Monitor)");
        expect(missingTimes({ ...timed, kernels: 0, kernel_ns: 0 }, timed)).toBe("before: no kernel ran");
        expect(missingTimes(watched, watched)).toBe(
            "before: not recorded (engine Monitor), after: not recorded (engine Monitor)",
        );
    });
});
