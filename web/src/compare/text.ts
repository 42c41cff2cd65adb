// SPDX-License-Identifier: Apache-2.0
import * as format from "../format";

export function signedTime(ns: number | null): string {
    if (ns === null) return format.UNAVAILABLE;
    return ns > 0 ? `+${format.time(ns)}` : format.time(ns);
}
