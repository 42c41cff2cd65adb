// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { href, parseLocation } from "./route";

describe("addresses", () => {
    it("name a page and its session", () => {
        expect(parseLocation("/", "")).toEqual({ page: "sessions", session: null, params: {} });
        expect(parseLocation("/fleet", "?range=6h")).toEqual({ page: "fleet", session: null, params: { range: "6h" } });
        expect(parseLocation("/sessions/abc", "")).toEqual({ page: "overview", session: "abc", params: {} });
        expect(parseLocation("/sessions/a%3Ab/kernels", "?q=x%20y")).toEqual({
            page: "kernels",
            session: "a:b",
            params: { q: "x y" },
        });
    });
    it("come back as they were written", () => {
        const session = "a:b_c-1.2";
        const address = new URL(
            href("scopes", { scope: "epoch > forward & <b>", none: null, empty: "" }, session),
            "http://x",
        );
        expect(parseLocation(address.pathname, address.search)).toEqual({
            page: "scopes",
            session,
            params: { scope: "epoch > forward & <b>" },
        });
    });
    it("that are badly encoded are taken as they are", () => {
        expect(parseLocation("/sessions/%E0%A4%A", "").session).toBe("%E0%A4%A");
    });
});
