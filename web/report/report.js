// SPDX-License-Identifier: Apache-2.0
// Sections, colours and timeline of the HTML report (gpufl report --html). Embedded as it is; loads nothing. Texts of the
// session reach the page as canvas text and textContent only.
"use strict";
(() => {
    const root = document.documentElement;
    const button = document.getElementById("theme");
    const prefersLight = matchMedia("(prefers-color-scheme: light)");
    const isLight = () => root.classList.contains("light") || (!root.classList.contains("dark") && prefersLight.matches);
    const view = document.getElementById("timeline-view");
    const source = document.getElementById("timeline-data");
    let redraw = () => {}, redrawNow = () => {};

    const nav = document.createElement("nav");
    nav.setAttribute("aria-label", "Sections");
    for (const heading of document.querySelectorAll("h2")) {
        const link = document.createElement("a"), title = heading.firstChild.textContent.trim();
        const section = heading.parentNode;
        section.id = title.toLowerCase().replaceAll(" ", "-");
        link.href = `#${section.id}`;
        link.textContent = title;
        nav.append(link);
    }
    button.parentNode.after(nav);

    button.hidden = false;
    button.addEventListener("click", () => {
        root.className = isLight() ? "dark" : "light";
        redraw();
    });
    prefersLight.addEventListener("change", () => redraw());
    // What can be scrolled can be reached by the keyboard.
    const scrollersMark = () => {
        for (const scroller of document.querySelectorAll(".scroll")) {
            if (scroller.scrollWidth > scroller.clientWidth) scroller.tabIndex = 0;
            else scroller.removeAttribute("tabindex");
        }
    };
    addEventListener("resize", scrollersMark);
    scrollersMark();
    let classOnScreen = "";
    addEventListener("beforeprint", () => {
        classOnScreen = root.className;
        root.className = "light"; // as paper is
        redrawNow();
    });
    addEventListener("afterprint", () => {
        root.className = classOnScreen;
        redraw();
    });
    if (!view || !source) return;

    const data = JSON.parse(source.textContent);
    const span = data.span;
    const ROW = 20, GAP = 4, RULER = 20, LABEL_MARGIN = 4, CLICK = 4, SCROLL_PAUSE_MS = 400;

    const unitOf = (ns) => [["s", 1e9], ["ms", 1e6], ["us", 1e3]].find(([, size]) => Math.abs(ns) >= size) || ["ns", 1];
    // Three significant digits and a unit, as the report writes times.
    const time = (ns) => {
        const [unit, size] = unitOf(ns), value = ns / size;
        const digits = size === 1 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.max(1, Math.abs(value)))));
        return `${value.toFixed(digits)} ${unit}`;
    };
    // A point in time, with the digits that tell it from one that is resolution ns away.
    const timeAt = (ns, resolution, largest) => {
        const [unit, size] = unitOf(largest);
        const digits = Math.ceil(-Math.log10(Math.max(1, resolution) / size) - 1e-6);
        return `${(ns / size).toFixed(Math.min(9, Math.max(0, digits)))} ${unit}`;
    };
    const hash = (text) => {
        let value = 0x811c9dc5;
        for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
        value = Math.imul(value ^ (value >>> 15), 0x2c1b3c6d);
        return (value ^ (value >>> 12)) >>> 0;
    };
    const nameOf = (track, index) => data.names[index] || track.kind;
    const shortName = (track, index) => {
        const text = nameOf(track, index);
        return track.kind === "scopes" ? text.split(" > ").pop() : text;
    };
    // The colours of the dashboard (web/src/colour.ts).
    const copyHues = { H2D: 200, D2H: 320, D2D: 160, P2P: 160 };
    const colourOf = (track, index) => {
        const light = isLight() ? 0.62 : 0.72, name = shortName(track, index);
        if (track.kind === "syncs") return `oklch(${light} 0 0)`;
        if (track.kind === "memsets" || (track.kind === "copies" && !(name in copyHues)))
            return `oklch(${isLight() ? 0.55 : 0.68} 0.01 250)`;
        const hue = track.kind === "copies" ? copyHues[name] : data.hues[index] ?? hash(name) % 360;
        return `oklch(${light} ${track.kind === "scopes" ? 0.055 : 0.11} ${hue})`;
    };
    const known = (value) => value !== null && value !== undefined;
    const deviceCount = new Set(data.tracks.filter((track) => !known(track.thread)).map((track) => track.device)).size;
    // The longest label that fits is drawn, so that the numbers, by which rows differ, are never cut.
    const labelsOf = ({ kind, thread, device, stream }) => {
        if (known(thread)) return [`${kind} · thread ${thread}`, `${kind} ${thread}`];
        const gpu = known(device) ? `GPU ${device}` : "unknown GPU";
        if (!known(stream)) return [`${kind} · ${gpu}`];
        const short = deviceCount > 1 ? [`${kind} ${device ?? "?"}:${stream}`] : [`${kind} · stream ${stream}`, `${kind} ${stream}`];
        return [`${kind} · ${gpu} stream ${stream}`, ...short];
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
    // reach: the latest end so far, because an event may end after those that start later.
    const decode = (track) => {
        const isBlocks = track.blocks !== undefined, count = track.count;
        const next = numbersOf(isBlocks ? track.blocks : track.events);
        const row = { track, isBlocks, count, start: new Float64Array(count), end: new Float64Array(count),
                      reach: new Float64Array(count), name: new Uint32Array(count), busy: new Float32Array(count),
                      events: new Uint32Array(count), labels: labelsOf(track) };
        for (let i = 0, at = 0; i < count; i++) {
            at += next();
            const second = next();
            row.name[i] = next();
            row.start[i] = isBlocks ? (at * span) / track.block_count : at;
            row.end[i] = isBlocks ? ((at + 1) * span) / track.block_count : at + second;
            row.reach[i] = Math.max(row.end[i], i ? row.reach[i - 1] : 0);
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
        row.hasLabel = i === 0 || rows[i - 1].labels[0] !== row.labels[0];
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
    const state = { from: 0, to: span, width: 0, labels: 0, isPinned: false };
    const height = RULER + rows.length * ROW + GAP;
    const xOf = (ns) => state.labels + ((ns - state.from) / (state.to - state.from)) * (state.width - state.labels);
    const nsOf = (x) => state.from + ((x - state.labels) / (state.width - state.labels)) * (state.to - state.from);

    // The first item that, or one before which, ends at a time or later.
    const firstAfter = (row, ns) => {
        let low = 0, high = row.count;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (row.reach[middle] < ns) low = middle + 1;
            else high = middle;
        }
        return low;
    };
    const drawItem = (row, index, x0, x1, top) => {
        const tall = (ROW - GAP) * (row.isBlocks ? Math.max(0.15, row.busy[index]) : 1);
        context.fillStyle = colourOf(row.track, row.name[index]);
        context.fillRect(x0, top + ROW - GAP - tall, Math.max(1, x1 - x0 - (x1 - x0 > 3 ? 0.5 : 0)), tall);
        const left = Math.max(x0, state.labels);
        if (row.isBlocks || Math.min(x1, state.width) - left < 40) return;
        context.save();
        context.beginPath();
        context.rect(left, top, Math.min(x1, state.width) - left - 2, ROW);
        context.clip();
        context.fillStyle = "oklch(0.15 0 0)";
        context.fillText(shortName(row.track, row.name[index]), left + 3, top + ROW / 2 - GAP / 2);
        context.restore();
    };
    // Items narrower than two pixels are added up by pixel: how much of it was busy, in the colour of what took most.
    const drawRow = (row, top) => {
        const columns = Math.ceil(state.width - state.labels);
        const busy = new Float32Array(columns + 1), most = new Float32Array(columns + 1);
        const name = new Int32Array(columns + 1).fill(-1);
        for (let i = firstAfter(row, state.from); i < row.count && row.start[i] <= state.to; i++) {
            const x0 = xOf(row.start[i]), x1 = xOf(row.end[i]);
            if (x1 < state.labels) continue;
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
            context.fillStyle = colourOf(row.track, name[column]);
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
            const x = Math.round(xOf(at)) + 0.5, text = timeAt(at, step, state.to);
            context.beginPath();
            context.moveTo(x, RULER - 4);
            context.lineTo(x, height);
            context.stroke();
            if (x + 3 + context.measureText(text).width < state.width) context.fillText(text, x + 3, RULER / 2);
        }
    };
    const widthOf = (text) => context.measureText(text).width + 2 * LABEL_MARGIN;
    const drawLabel = (row, top, style) => {
        context.fillStyle = style.getPropertyValue("--panel");
        context.fillRect(0, top, state.labels, ROW);
        if (!row.hasLabel) return;
        const text = row.labels.find((label) => widthOf(label) <= state.labels) || row.labels.at(-1);
        context.fillStyle = style.getPropertyValue("--dim");
        context.fillText(text, LABEL_MARGIN, top + ROW / 2 - GAP / 2, state.labels - 2 * LABEL_MARGIN);
    };
    redrawNow = () => {
        const style = getComputedStyle(root), scale = devicePixelRatio || 1, font = "12px ui-sans-serif, system-ui, sans-serif";
        context.font = font;
        state.width = view.clientWidth;
        state.labels = Math.min(Math.ceil(Math.max(...rows.map((row) => widthOf(row.labels[0])))),
                                Math.round(state.width * 0.33));
        canvas.width = Math.round(state.width * scale);
        canvas.height = Math.round(height * scale);
        canvas.style.aspectRatio = `${state.width} / ${height}`; // on paper it is narrower
        context.setTransform(scale, 0, 0, scale, 0, 0);
        context.clearRect(0, 0, state.width, height);
        context.font = font;
        context.textBaseline = "middle";
        drawRuler(style);
        rows.forEach((row, i) => {
            const top = RULER + i * ROW;
            drawRow(row, top);
            drawLabel(row, top, style);
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
            redrawNow();
        });
    };
    const itemAt = (x, y) => {
        const number = Math.floor((y - RULER) / ROW), row = rows[number];
        if (!row || x < state.labels || y < RULER) return null;
        const slack = (state.to - state.from) / (state.width - state.labels), ns = nsOf(x);
        for (let i = firstAfter(row, ns - slack); i < row.count && row.start[i] <= ns + slack; i++)
            if (row.end[i] >= ns - slack) return { row, number, index: i };
        return null;
    };
    const describe = ({ row, index }) => {
        const name = nameOf(row.track, row.name[index]), length = row.end[index] - row.start[index];
        const start = timeAt(row.start[index], Math.min(length, (state.to - state.from) / 1000), row.start[index]);
        if (!row.isBlocks) return `${name}\n${time(length)}, at ${start}\n${row.labels[0]}`;
        const events = row.events[index];
        return `${events} event${events === 1 ? "" : "s"}, mostly ${name}\n` +
            `busy ${(100 * row.busy[index]).toFixed(1)} % of ${time(length)}, at ${start}\n${row.labels[0]}`;
    };
    // Below the row, so that it covers nothing that it describes.
    const tipShow = (event, isPinned) => {
        const box = canvas.getBoundingClientRect(), x = event.clientX - box.left;
        const item = itemAt(x, event.clientY - box.top);
        tip.hidden = !item;
        state.isPinned = Boolean(item) && isPinned;
        tip.classList.toggle("is-pinned", state.isPinned);
        if (!item) return;
        tip.textContent = describe(item);
        tip.style.left = `${Math.max(0, Math.min(x + 12, state.width - tip.offsetWidth - 4))}px`;
        tip.style.top = `${RULER + (item.number + 1) * ROW}px`;
    };
    const tipHide = () => {
        state.isPinned = false;
        tip.hidden = true;
    };

    const show = (from, to) => {
        const size = Math.min(span, Math.max(to - from, 100));
        state.from = Math.min(Math.max(0, from), span - size);
        state.to = state.from + size;
        tipHide();
        redraw();
    };
    const zoom = (factor, at) => show(at - (at - state.from) * factor, at + (state.to - at) * factor);
    const pan = (share) => show(state.from + share * (state.to - state.from), state.to + share * (state.to - state.from));

    const pointers = new Map();
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
        moved = pointers.size ? CLICK : 0;
        pointers.set(event.pointerId, event.clientX);
        canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => {
        pointers.delete(event.pointerId);
        if (moved < CLICK) tipShow(event, true);
    });
    canvas.addEventListener("pointercancel", (event) => pointers.delete(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
        const before = pointers.get(event.pointerId);
        if (before === undefined) {
            if (!state.isPinned) tipShow(event, false);
            return;
        }
        moved += Math.abs(event.clientX - before);
        if (moved < CLICK) return;
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
        if (!state.isPinned) tipHide();
    });

    // The wheel scrolls the page as long as it turns since it began outside, and where there is nothing to zoom out of.
    let scrolledAt = -Infinity;
    addEventListener("wheel", (event) => {
        if (event.target !== canvas) scrolledAt = event.timeStamp;
    }, { passive: true });
    canvas.addEventListener("wheel", (event) => {
        const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
        const isWhole = state.to - state.from >= span && event.deltaY > 0 && !isSideways && !event.ctrlKey;
        if (isWhole || event.timeStamp - scrolledAt < SCROLL_PAUSE_MS) {
            scrolledAt = event.timeStamp;
            return;
        }
        event.preventDefault();
        const x = event.clientX - canvas.getBoundingClientRect().left;
        if (isSideways) pan(event.deltaX / 1000);
        else zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) / 300), nsOf(Math.max(x, state.labels)));
    }, { passive: false });

    const middle = () => (state.from + state.to) / 2;
    const zoomIn = () => zoom(0.7, middle()), zoomOut = () => zoom(1 / 0.7, middle()), showAll = () => show(0, span);
    const left = () => pan(-0.2), right = () => pan(0.2);
    const everywhere = { w: zoomIn, "+": zoomIn, s: zoomOut, "-": zoomOut, a: left, d: right, f: showAll, Escape: tipHide };
    // Elsewhere these scroll the page.
    const focused = { ArrowUp: zoomIn, ArrowDown: zoomOut, ArrowLeft: left, ArrowRight: right, Home: showAll };
    addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
        const action = everywhere[key] || (event.target === canvas && focused[key]);
        if (!action) return;
        event.preventDefault();
        action();
    });
    addEventListener("resize", redraw);
    redrawNow();
})();
