// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { parseExact } from "./api";
import { EventParser } from "./live";

function events(...chunks: string[]): [string, string][] {
    const found: [string, string][] = [];
    const parser = new EventParser((name, data) => found.push([name, data]));
    for (const chunk of chunks) parser.push(chunk);
    return found;
}

describe("the stream of events", () => {
    const text = 'event: gpu\ndata: {"a":1}\n\n: a comment\n\nevent: session\r\ndata: {"b":2}\r\n\r\n';
    it("is read however it is cut", () => {
        const whole = events(text);
        expect(whole).toEqual([
            ["gpu", '{"a":1}'],
            ["session", '{"b":2}'],
        ]);
        for (let at = 1; at < text.length; at++) expect(events(text.slice(0, at), text.slice(at))).toEqual(whole);
    });
    it("has data over several lines, and none without data", () => {
        expect(events("data: a\ndata: b\n\nevent: x\n\n")).toEqual([["message", "a\nb"]]);
    });
});

describe("exact JSON", () => {
    it("keeps every digit of integers beyond 2^53", () => {
        expect(parseExact('{"start_ns":1794720054622423213,"count":12,"share":0.5}')).toEqual({
            start_ns: 1794720054622423213n,
            count: 12,
            share: 0.5,
        });
        expect(parseExact("[-9223372036854775808,9007199254740991]")).toEqual([
            -9223372036854775808n,
            9007199254740991,
        ]);
    });
    it("leaves fractions and digits in names alone", () => {
        const text =
            '{"name":"k_1794720054622423213, \\"1794720054622423213\\"","share":0.12345678901234567890,"big":1.5e300}';
        expect(parseExact(text)).toEqual(JSON.parse(text));
    });
});
