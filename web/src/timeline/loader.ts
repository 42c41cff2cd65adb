// SPDX-License-Identifier: Apache-2.0
// Fetches missing visible tiles, with few concurrent requests, and cancels those that are out of view again.
import { ApiError, getBytes } from "../api";
import type { TileKey } from "./pyramid";
import { tileView, TILE_PARTS, type Pyramid } from "./pyramid";
import { EMPTY_TRACK, tileDecode, type Names } from "./tile";
import type { TimeBase } from "./time";

const requestsMax = 3,
    tracksMax = 64,
    retryMs = [500, 1000, 2000, 4000, 8000];

export type FetchTile = (
    params: { from_ns: bigint; to_ns: bigint; pixels: number; tracks: string },
    signal: AbortSignal,
) => Promise<ArrayBuffer>;

/** Tiles of one level needed for some tracks, most important first. */
export interface TileRequest {
    readonly key: TileKey;
    readonly tracks: readonly string[];
}

interface Flight {
    readonly key: TileKey;
    readonly tracks: ReadonlySet<string>;
    readonly control: AbortController;
}

const isSame = (a: TileKey, b: TileKey): boolean => a.level === b.level && a.index === b.index;

export class TileLoader {
    private requests: readonly TileRequest[] = [];
    private readonly flights = new Set<Flight>();
    private failures = 0;
    private timer: ReturnType<typeof setTimeout> | undefined;
    private isClosed = false;

    constructor(
        private readonly base: TimeBase,
        private readonly pyramid: Pyramid,
        private readonly names: Names,
        private readonly fetchTile: FetchTile,
        /** Called when tiles have arrived (null), or with the reason why not. */
        private readonly onChange: (error: unknown) => void,
    ) {}

    get isBusy(): boolean {
        return this.flights.size > 0;
    }

    /** Replaces the previous requests. */
    want(requests: readonly TileRequest[]): void {
        this.requests = requests;
        for (const flight of this.flights)
            if (!requests.some((request) => isSame(request.key, flight.key))) flight.control.abort();
        if (this.timer === undefined) this.start();
    }

    close(): void {
        this.isClosed = true;
        clearTimeout(this.timer);
        for (const flight of this.flights) flight.control.abort();
    }

    private start(): void {
        for (const request of this.requests) {
            if (this.isClosed || this.flights.size >= requestsMax) return;
            const isUnderWay = (track: string): boolean =>
                [...this.flights].some((flight) => isSame(flight.key, request.key) && flight.tracks.has(track));
            const tracks = request.tracks.filter(
                (track) => !isUnderWay(track) && !this.pyramid.find(track, request.key)?.isFinal,
            );
            if (tracks.length > 0) void this.load(request.key, tracks.slice(0, tracksMax));
        }
    }

    private async load(key: TileKey, tracks: readonly string[]): Promise<void> {
        const flight: Flight = { key, tracks: new Set(tracks), control: new AbortController() };
        const { from, to } = tileView(key, this.base.align);
        this.flights.add(flight);
        let error: unknown = null;
        try {
            const params = {
                from_ns: this.base.wall(from),
                to_ns: this.base.wall(to),
                pixels: TILE_PARTS,
                tracks: tracks.join(","),
            };
            const tile = tileDecode(await this.fetchTile(params, flight.control.signal), this.base);
            this.names.add(tile);
            for (const id of tracks) this.pyramid.put(id, key, tile.tracks.get(id) ?? EMPTY_TRACK);
            this.failures = 0;
        } catch (caught) {
            error = flight.control.signal.aborted ? null : caught;
        }
        this.flights.delete(flight);
        if (this.isClosed) return;
        if (error !== null) this.failAndWait(error);
        else if (this.timer === undefined) this.start();
        this.onChange(error);
    }

    private failAndWait(error: unknown): void {
        if (error instanceof ApiError && !error.isTemporary) {
            this.requests = [];
            return;
        }
        clearTimeout(this.timer);
        this.timer = setTimeout(
            () => {
                this.timer = undefined;
                this.start();
            },
            retryMs[Math.min(this.failures++, retryMs.length - 1)],
        );
    }
}

export const tileFetcher =
    (sessionPath: string, isWhole: () => boolean): FetchTile =>
    (params, signal) =>
        getBytes(`${sessionPath}/timeline`, isWhole() ? { ...params, exact: "true" } : params, signal);
