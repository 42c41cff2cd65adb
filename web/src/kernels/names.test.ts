// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { distinctNames } from "./names";

const texts = (names: string[]): string[] =>
    [...distinctNames(names).values()].map(({ short, mark }) => `${short}|${mark}`);

describe("short names", () => {
    test("are the plain ones where nothing else has them", () => {
        expect(texts(["void saxpy<float>(int, float*)", "reduce(float*)"])).toEqual(["saxpy|", "reduce|"]);
    });

    test("are distinguished by the first words that differ", () => {
        expect(
            texts([
                "void k<4, at::AddFunctor<float>, Array<2> >(int)",
                "void k<4, at::MulFunctor<float>, Array<2> >(int)",
                "void k<4, at::MulFunctor<int>, Array<3> >(int)",
            ]),
        ).toEqual(["k|AddFunctor", "k|MulFunctor<float", "k|MulFunctor<int"]);
    });

    test("are not distinguished by a namespace alone", () => {
        expect(
            texts([
                "void k<4, at::native::(anonymous namespace)::where_kernel<float> >()",
                "void k<4, at::native::AddFunctor<float> >()",
            ]),
        ).toEqual(["k|where_kernel", "k|AddFunctor"]);
    });

    test("stay different whatever the names", () => {
        const names = [
            "k<1>()",
            "k<11>()",
            "k<111>()",
            "k<>()",
            "k",
            "k<a::x>()",
            "k<b::x>()",
            "",
            "<b>",
            "k<🚀>()",
            "k<\u202e>()",
        ];
        expect(distinctNames(names).size).toBe(names.length);
        expect(new Set(texts(names)).size).toBe(names.length);
    });
});
