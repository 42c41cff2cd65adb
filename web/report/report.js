// SPDX-License-Identifier: Apache-2.0
// The timeline of the HTML report (gpufl report --html). Embedded as it is; loads nothing. Texts of the session reach the
// page as canvas text and textContent only.
"use strict";
(() => {
    const root = document.documentElement;
    const button = document.getElementById("theme");
    const prefersLight = matchMedia("(prefers-color-scheme: light)");
    const isLight = () => root.classList.contains("light") || (!root.classList.contains("dark") && prefersLight.matches);
    const view = document.getElementById("timeline-view");
    const source = document.getElementById("timeline-data");
    let redraw = () => {};
    button.hidden = false;
    button.addEventListener("click", () => {
        const wanted = isLight() ? "dark" : "light";
        root.classList.remove("light", "dark");
        root.classList.add(wanted);
        redraw();
    });
    prefersLight.addEventListener("change", () => redraw());
    if (!view || !source) return;

    const data = JSON.parse(source.textContent);
    const span = data.span;
    const ROW = 20, GAP = 4, RULER = 20, LABEL_MAX = 170;

    // Three significant digits and a unit, as the report writes times.
    const time = (ns) => {
        const units = [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]];
        let unit = units[0];
        for (const one of units) if (Math.abs(ns) >= one[1]) unit = one;
        const value = ns / unit[1];
        const digits = unit[1] === 1 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.max(1, Math.abs(value)))));
        return `${value.toFixed(digits)} ${unit[0]}`;
    };
    const hash = (text) => {
        let value = 0x811c9dc5;
        for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
        value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
        return (value ^ (value >>> 12)) >>> 0;
    };
    const copyHues = { HtoD: 200, DtoH: 320, DtoD: 160 };
    const colourOf = (track, name) => {
        const light = isLight() ? 0.62 : 0.72;
        if (track.kind === "syncs") return `oklch(${light} 0 0)`;
        if (track.kind === "memsets") return `oklch(${light} 0.06 90)`;
        const hue = track.kind === "copies" && name in copyHues ? copyHues[name] : hash(name) % 360;
        return `oklch(${light} ${track.kind === "scopes" ? 0.055 : 0.11} ${hue})`;
    };
    const known = (value) => value !== null && value !== undefined;
    const labelOf = (track) => {
        if (known(track.thread)) return `${track.kind} · thread ${track.thread}`;
        const gpu = known(track.device) ? `GPU ${track.device}` : "unknown GPU";
        return `${track.kind} · ${gpu}${known(track.stream) ? ` stream ${track.stream}` : ""}`;
    };
    // LEB128 in base64: seven bits a byte, the lowest first.
    const numbersOf = (text) => {
        const bytes = atob(text);
        let at = 0;
        return () => {
            let value = 0, factor = 1, byte;
            do {
                byte = bytes.charCodeAt(at++);
                value += (byte & 0x7f) * factor;
                factor *= 128;
            } while (byte & 0x80);
            return value;
        };
    };
    // Events and blocks alike: starts, ends, names; blocks also know how busy they were and how many events they hold.
    const decode = (track) => {
        const isBlocks = track.blocks !== undefined, count = track.count;
        const next = numbersOf(isBlocks ? track.blocks : track.events);
        const row = { track, isBlocks, count, start: new Float64Array(count), end: new Float64Array(count),
                      name: new Uint32Array(count), busy: new Float32Array(count), events: new Uint32Array(count),
                      label: labelOf(track) };
        for (let i = 0, at = 0; i < count; i++) {
            at += next();
            const second = next();
            row.name[i] = next();
            row.start[i] = isBlocks ? (at * span) / track.block_count : at;
            row.end[i] = isBlocks ? ((at + 1) * span) / track.block_count : at + second;
            row.busy[i] = isBlocks ? second / 1000 : 1;
            row.events[i] = isBlocks ? next() : 1;
        }
        return row;
    };
    const order = (row) => {
        const track = row.track, isHost = known(track.thread);
        return [isHost ? 0 : 1, isHost ? track.thread : track.device ?? -1, isHost ? 0 : track.stream ?? -1,
                ["scopes", "syncs", "kernels", "copies", "memsets", "graphs"].indexOf(track.kind), track.depth ?? 0];
    };
    const rows = data.tracks.map(decode).sort((a, b) => {
        const left = order(a), right = order(b);
        const differs = left.findIndex((value, i) => value !== right[i]);
        return differs < 0 ? 0 : left[differs] - right[differs];
    });
    rows.forEach((row, i) => {
        row.hasLabel = i === 0 || rows[i - 1].label !== row.label;
    });

    const canvas = document.createElement("canvas");
    const tip = document.createElement("div");
    tip.id = "timeline-tip";
    tip.hidden = true;
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Timeline of ${time(span)} with ${rows.length} rows`);
    view.append(canvas, tip);
    const context = canvas.getContext("2d");
    const state = { from: 0, to: span, width: 0, labels: 0 };
    const height = RULER + rows.length * ROW + GAP;
    const xOf = (ns) => state.labels + ((ns - state.from) / (state.to - state.from)) * (state.width - state.labels);
    const nsOf = (x) => state.from + ((x - state.labels) / (state.width - state.labels)) * (state.to - state.from);

    // The first item that ends after a time. Items of a row are by start; an earlier one may end later, so this is exact
    // for rows without overlap and shows a little less for others.
    const firstAfter = (row, ns) => {
        let low = 0, high = row.count;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (row.end[middle] < ns) low = middle + 1;
            else high = middle;
        }
        return low;
    };
    const shortName = (row, index) => {
        const text = data.names[row.name[index]] || row.track.kind;
        return row.track.kind === "scopes" ? text.split(" > ").pop() : text;
    };
    const drawItem = (row, index, x0, x1, top) => {
        const tall = (ROW - GAP) * (row.isBlocks ? Math.max(0.15, row.busy[index]) : 1);
        context.fillStyle = colourOf(row.track, data.names[row.name[index]] || "");
        context.fillRect(x0, top + ROW - GAP - tall, Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 0.5 : 0)), tall);
        const left = Math.max(x0, state.labels);
        if (row.isBlocks || Math.min(x1, state.width) - left < 40) return;
        context.save();
        context.beginPath();
        context.rect(left, top, Math.min(x1, state.width) - left - 2, ROW);
        context.clip();
        context.fillStyle = "oklch(0.15 0 0)";
        context.fillText(shortName(row, index), left + 3, top + ROW / 2 - GAP / 2);
        context.restore();
    };
    // Items narrower than two pixels are added up by pixel: how much of it was busy, in the colour of what took most.
    const drawRow = (row, top) => {
        const columns = Math.ceil(state.width - state.labels);
        const busy = new Float32Array(columns + 1), most = new Float32Array(columns + 1);
        const name = new Int32Array(columns + 1).fill(-1);
        for (let i = firstAfter(row, state.from); i < row.count && row.start[i] <= state.to; i++) {
            const x0 = xOf(row.start[i]), x1 = xOf(row.end[i]);
            if (x1 - x0 >= 2) {
                drawItem(row, i, Math.max(x0, state.labels), Math.min(x1, state.width), top);
                continue;
            }
            const column = Math.floor(x0 - state.labels);
            if (column < 0 || column > columns) continue;
            const share = Math.max(0.05, (x1 - x0) * row.busy[i]);
            busy[column] += share;
            if (share > most[column]) {
                most[column] = share;
                name[column] = row.name[i];
            }
        }
        for (let column = 0; column <= columns; column++) {
            if (name[column] < 0) continue;
            const tall = (ROW - GAP) * Math.min(1, Math.max(0.15, busy[column]));
            context.fillStyle = colourOf(row.track, data.names[name[column]] || "");
            context.fillRect(state.labels + column, top + ROW - GAP - tall, 1, tall);
        }
    };
    const drawRuler = (style) => {
        const wanted = (state.to - state.from) / Math.max(2, (state.width - state.labels) / 110);
        const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
        const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= wanted) || power * 10;
        context.strokeStyle = style.getPropertyValue("--line");
        context.fillStyle = style.getPropertyValue("--dim");
        for (let at = Math.ceil(state.from / step) * step; at <= state.to; at += step) {
            const x = Math.round(xOf(at)) + 0.5;
            context.beginPath();
            context.moveTo(x, RULER - 4);
            context.lineTo(x, height);
            context.stroke();
            if (x + 3 + context.measureText(time(at)).width < state.width) context.fillText(time(at), x + 3, RULER / 2);
        }
    };
    const draw = () => {
        const style = getComputedStyle(root), scale = devicePixelRatio || 1;
        state.width = view.clientWidth;
        state.labels = Math.min(LABEL_MAX, Math.round(state.width * 0.33));
        canvas.width = Math.round(state.width * scale);
        canvas.height = Math.round(height * scale);
        canvas.style.height = `${height}px`;
        context.setTransform(scale, 0, 0, scale, 0, 0);
        context.clearRect(0, 0, state.width, height);
        context.font = "12px ui-sans-serif, system-ui, sans-serif";
        context.textBaseline = "middle";
        drawRuler(style);
        rows.forEach((row, i) => {
            const top = RULER + i * ROW;
            drawRow(row, top);
            context.fillStyle = style.getPropertyValue("--panel");
            context.fillRect(0, top, state.labels, ROW);
            if (!row.hasLabel) return;
            context.fillStyle = style.getPropertyValue("--dim");
            context.save();
            context.beginPath();
            context.rect(0, top, state.labels - 4, ROW);
            context.clip();
            context.fillText(row.label, 4, top + ROW / 2 - GAP / 2);
            context.restore();
        });
        view.dataset.from = String(Math.round(state.from));
        view.dataset.to = String(Math.round(state.to));
    };
    let isDue = false;
    redraw = () => {
        if (isDue) return;
        isDue = true;
        requestAnimationFrame(() => {
            isDue = false;
            draw();
        });
    };
    const show = (from, to) => {
        const size = Math.min(span, Math.max(to - from, 100));
        state.from = Math.min(Math.max(0, from), span - size);
        state.to = state.from + size;
        redraw();
    };
    const zoom = (factor, at) => show(at - (at - state.from) * factor, at + (state.to - at) * factor);
    const pan = (share) => show(state.from + share * (state.to - state.from), state.to + share * (state.to - state.from));

    const itemAt = (x, y) => {
        const row = rows[Math.floor((y - RULER) / ROW)];
        if (!row || x < state.labels || y < RULER) return null;
        const slack = (state.to - state.from) / (state.width - state.labels), ns = nsOf(x);
        for (let i = firstAfter(row, ns - slack); i < row.count && row.start[i] <= ns + slack; i++)
            if (row.end[i] >= ns - slack) return { row, index: i };
        return null;
    };
    const describe = ({ row, index }) => {
        const name = data.names[row.name[index]] || row.track.kind, start = time(row.start[index]);
        const length = time(row.end[index] - row.start[index]);
        if (!row.isBlocks) return `${name}\n${length}, at ${start}\n${row.label}`;
        const events = row.events[index];
        return `${events} event${events === 1 ? "" : "s"}, mostly ${name}\n` +
            `busy ${(100 * row.busy[index]).toFixed(1)} % of ${length}, at ${start}\n${row.label}`;
    };
    const hover = (event) => {
        const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
        const item = itemAt(x, y);
        tip.hidden = !item;
        if (!item) return;
        tip.textContent = describe(item);
        tip.style.left = `${Math.max(0, Math.min(x + 12, state.width - tip.offsetWidth - 4))}px`;
        tip.style.top = `${y + 16}px`;
    };

    const pointers = new Map();
    canvas.addEventListener("pointerdown", (event) => {
        pointers.set(event.pointerId, event.clientX);
        canvas.setPointerCapture(event.pointerId);
    });
    const release = (event) => pointers.delete(event.pointerId);
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointermove", (event) => {
        const before = pointers.get(event.pointerId);
        if (before === undefined) {
            hover(event);
            return;
        }
        tip.hidden = true;
        const others = [...pointers].filter(([id]) => id !== event.pointerId).map(([, x]) => x);
        pointers.set(event.pointerId, event.clientX);
        const left = canvas.getBoundingClientRect().left;
        if (others.length) {
            const factor = Math.abs(before - others[0]) / Math.max(1, Math.abs(event.clientX - others[0]));
            zoom(factor, nsOf(others[0] - left));
        } else {
            pan((before - event.clientX) / (state.width - state.labels));
        }
    });
    canvas.addEventListener("pointerleave", () => {
        tip.hidden = true;
    });
    canvas.addEventListener("wheel", (event) => {
        event.preventDefault();
        const x = event.clientX - canvas.getBoundingClientRect().left;
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan(event.deltaX / 1000);
        else zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 300), nsOf(Math.max(x, state.labels)));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const middle = (state.from + state.to) / 2;
        const actions = {
            w: () => zoom(0.7, middle), "+": () => zoom(0.7, middle), ArrowUp: () => zoom(0.7, middle),
            s: () => zoom(1 / 0.7, middle), "-": () => zoom(1 / 0.7, middle), ArrowDown: () => zoom(1 / 0.7, middle),
            a: () => pan(-0.2), ArrowLeft: () => pan(-0.2), d: () => pan(0.2), ArrowRight: () => pan(0.2),
            f: () => show(0, span), Home: () => show(0, span),
        };
        const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
        if (!action) return;
        event.preventDefault();
        action();
    });
    addEventListener("resize", redraw);
    draw();
})();
