// SPDX-License-Identifier: Apache-2.0
// Draws rows as pixels. A canvas takes longer than a frame for tens of thousands of rectangles; summing them by column
// and writing the pixels directly takes a few milliseconds for any number of events.

export const HATCHED = -1;

export class Raster {
    readonly width: number;
    readonly height: number;
    readonly pixels: Uint32Array;
    /** Busy share of each column; may exceed 1 where events overlap. */
    readonly busy: Float32Array;
    private readonly best: Float32Array;
    private readonly colour: Uint32Array;
    /** By column: all bits set where it is hatched. */
    private readonly hatch: Int32Array;
    private readonly keptBusy: Float32Array;
    private readonly keptColour: Uint32Array;
    private readonly keptHatch: Int32Array;
    private readonly top: Uint16Array;
    private readonly buffer: Uint8ClampedArray<ArrayBuffer>;

    constructor(width: number, height: number) {
        this.width = Math.max(1, Math.floor(width));
        this.height = Math.max(1, Math.floor(height));
        this.buffer = new Uint8ClampedArray(this.width * this.height * 4);
        this.pixels = new Uint32Array(this.buffer.buffer);
        this.busy = new Float32Array(this.width);
        this.best = new Float32Array(this.width);
        this.colour = new Uint32Array(this.width);
        this.hatch = new Int32Array(this.width);
        this.keptBusy = new Float32Array(this.width);
        this.keptColour = new Uint32Array(this.width);
        this.keptHatch = new Int32Array(this.width);
        this.top = new Uint16Array(this.width);
    }

    image(): ImageData {
        return new ImageData(this.buffer, this.width, this.height);
    }

    clear(colour: number): void {
        this.pixels.fill(colour);
    }

    fillRows(top: number, bottom: number, colour: number): void {
        const first = Math.max(0, Math.round(top)),
            last = Math.min(this.height, Math.round(bottom));
        if (last > first) this.pixels.fill(colour, first * this.width, last * this.width);
    }

    rowBegin(): void {
        this.busy.fill(0);
        this.best.fill(0);
    }

    /** From column left to column right, including fractions; density: busy share; hatch: HATCHED or 0. */
    add(left: number, right: number, density: number, colour: number, hatch = 0): void {
        const from = left < 0 ? 0 : left,
            to = right > this.width ? this.width : right;
        if (!(to > from)) return;
        const first = Math.floor(from),
            last = Math.min(this.width - 1, Math.ceil(to) - 1);
        if (first >= last) {
            this.column(first, (to - from) * density, colour, hatch);
            return;
        }
        this.column(first, (first + 1 - from) * density, colour, hatch);
        for (let x = first + 1; x < last; x++) this.column(x, density, colour, hatch);
        this.column(last, (to - last) * density, colour, hatch);
    }

    private column(x: number, share: number, colour: number, hatch: number): void {
        this.busy[x]! += share;
        if (share > this.best[x]!) {
            this.best[x] = share;
            this.colour[x] = colour;
            this.hatch[x] = hatch;
        }
    }

    /** Several tracks in one row: mergeBegin, for each track rowBegin, add and mergeRow, then mergeEnd. Shows the
     * busiest one. */
    mergeBegin(): void {
        this.keptBusy.fill(0);
    }

    mergeRow(): void {
        for (let x = 0; x < this.width; x++)
            if (this.busy[x]! > this.keptBusy[x]!) {
                this.keptBusy[x] = this.busy[x]!;
                this.keptColour[x] = this.colour[x]!;
                this.keptHatch[x] = this.hatch[x]!;
            }
    }

    mergeEnd(): void {
        this.busy.set(this.keptBusy);
        this.colour.set(this.keptColour);
        this.hatch.set(this.keptHatch);
    }

    /** Columns whose height is their busy share, at the row's lower edge; any work is at least one pixel high. */
    rowDraw(top: number, bottom: number): void {
        const height = bottom - top;
        let isEmpty = true;
        for (let x = 0; x < this.width; x++) {
            const share = this.busy[x]!;
            this.top[x] = share > 0 ? bottom - Math.min(height, Math.max(1, Math.round(share * height))) : 65535;
            isEmpty &&= share <= 0;
        }
        if (isEmpty) return;
        /* No branch on the heights: they are unpredictable, and a misprediction costs more than the pixel. */
        const { pixels, colour, hatch, top: tops, width } = this,
            last = Math.min(bottom, this.height);
        for (let y = Math.max(0, top); y < last; y++) {
            const line = y * width;
            for (let x = 0; x < width; x++) {
                const isCovered = (tops[x]! - y - 1) >> 31,
                    isInk = ~hatch[x]! | ((((x + y) & 7) - 4) >> 31);
                const under = pixels[line + x]!;
                pixels[line + x] = under ^ ((under ^ colour[x]!) & isCovered & isInk);
            }
        }
    }
}

/** Byte order of ImageData on little-endian machines, which all machines with a browser are. */
export function packColour([red, green, blue]: readonly [number, number, number]): number {
    return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** A colour between two others. */
export function mixColour(from: number, to: number, share: number): number {
    let mixed = 0;
    for (let shift = 0; shift < 32; shift += 8) {
        const a = (from >>> shift) & 255,
            b = (to >>> shift) & 255;
        mixed |= Math.round(a + (b - a) * share) << shift;
    }
    return mixed >>> 0;
}
