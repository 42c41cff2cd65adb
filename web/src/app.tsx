// SPDX-License-Identifier: Apache-2.0
// The frame around every page: top bar, side list, connection problems, keyboard help.
import { signal } from "@preact/signals";
import type { ComponentType, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { connection } from "./api";
import * as format from "./format";
import { keysBound, keysVersion, useKeys, type Key } from "./keys";
import { liveState } from "./live";
import { pageOf, pages, type Page } from "./pages";
import { useSession } from "./query";
import { href, navigate, onLinkClick, route } from "./route";
import { Search } from "./search";
import type { SessionSummary } from "./session";
import { isDark, themeSet } from "./theme";
import { Guard } from "./ui/guard";
import { Empty, Failed, Loading } from "./ui/states";
import { tipHide, TooltipLayer } from "./ui/tooltip";

const SIDE_NAME = "gpufl.side";
const isSideNarrow = signal(false);
const isHelpOpen = signal(false);
try {
    isSideNarrow.value = window.localStorage.getItem(SIDE_NAME) === "narrow";
} catch {
    // wide, then
}

function sideFold(): void {
    isSideNarrow.value = !isSideNarrow.value;
    try {
        window.localStorage.setItem(SIDE_NAME, isSideNarrow.value ? "narrow" : "wide");
    } catch {
        // not kept
    }
}

const loaded = new Map<string, ComponentType>();

function PageView({ page }: { page: Page }): JSX.Element {
    const key = `${page.isOfSession} ${page.name}`;
    const [, redraw] = useState(0);
    const [problem, setProblem] = useState<string | null>(null);
    useEffect(() => {
        if (loaded.has(key)) return;
        let isGone = false;
        let timer = 0;
        const load = (): void => {
            page.load().then(
                (part) => {
                    loaded.set(key, part.default);
                    setProblem(null);
                    if (!isGone) redraw((count) => count + 1);
                },
                () => {
                    setProblem("This page could not be loaded from the server.");
                    if (!isGone) timer = window.setTimeout(load, 2000);
                },
            );
        };
        load();
        return () => {
            isGone = true;
            window.clearTimeout(timer);
        };
    }, [key]);
    const Component = loaded.get(key);
    if (Component) return <Component key={route.value.session ?? ""} />;
    if (problem)
        return (
            <Page_>
                <Failed problem={{ status: 0, code: "page", message: problem, hint: "The page retries automatically." }} />
            </Page_>
        );
    return (
        <Page_>
            <Loading />
        </Page_>
    );
}

function Page_({ children }: { children: JSX.Element }): JSX.Element {
    return <div class="page">{children}</div>;
}

function Crumbs({ page }: { page: Page | undefined }): JSX.Element {
    const { session } = route.value;
    const summary = useSession<SessionSummary>(session, "");
    const entry = summary.data?.catalog;
    return (
        <nav class="crumbs" aria-label="where you are">
            {session === null ? null : (
                <>
                    {entry?.host ? (
                        <>
                            <a class="host" href={href("sessions", { host: entry.host })}>
                                {entry.host}
                            </a>
                            <span class="sep">›</span>
                        </>
                    ) : null}
                    <a href={href("overview", {}, session)} title={session}>
                        {entry?.app ?? format.middleCut(session, 16)}
                    </a>
                    <span>›</span>
                </>
            )}
            <span class="here">{page?.title ?? route.value.page}</span>
        </nav>
    );
}

function LiveDot(): JSX.Element | null {
    const [, tick] = useState(0);
    const { state, since } = connection.value;
    const live = liveState.value;
    const isLost = state === "down" || live.state === "lost";
    useEffect(() => {
        if (!isLost) return;
        const timer = window.setInterval(() => tick((count) => count + 1), 1000);
        return () => window.clearInterval(timer);
    }, [isLost]);
    const from = state === "down" ? since : live.since;
    const words = isLost
        ? `no connection for ${format.time((Date.now() - from) * 1e6)}`
        : live.state === "live"
          ? "live"
          : "";
    return (
        <div
            class={`live${isLost ? " is-lost" : live.state === "live" ? " is-live" : ""}`}
            role="status"
            title={words || "no live updates"}
        >
            <i class="dot" />
            <span class="words">{words}</span>
        </div>
    );
}

function Banner(): JSX.Element | null {
    if (connection.value.state !== "down") return null;
    return (
        <div class="banner amber" role="alert">
            No connection since {format.instant(connection.value.since * 1e6)}: {connection.value.message}. Trying
            again; what you see is from before.
        </div>
    );
}

function SideLink({ page, session }: { page: Page; session: string | null }): JSX.Element {
    const isHere = route.value.page === page.name && (route.value.session !== null) === page.isOfSession;
    const link = useRef<HTMLAnchorElement>(null);
    useEffect(() => {
        // On a phone the list is wider than the screen.
        if (isHere) link.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
    }, [isHere]);
    return (
        <a
            ref={link}
            href={href(page.name, {}, session)}
            aria-current={isHere ? "page" : undefined}
            title={page.keys ? `${page.title} (${page.keys})` : page.title}
        >
            <span class="short" aria-hidden="true">
                {page.short}
            </span>
            <span class="long">{page.title}</span>
        </a>
    );
}

function Side(): JSX.Element {
    const { session } = route.value;
    return (
        <nav class="side" aria-label="pages">
            {pages
                .filter((page) => page.isListed && !page.isOfSession)
                .map((page) => (
                    <SideLink key={page.name} page={page} session={null} />
                ))}
            {session === null ? null : (
                <>
                    <div class="group">Session</div>
                    {pages
                        .filter((page) => page.isListed && page.isOfSession)
                        .map((page) => (
                            <SideLink key={page.name} page={page} session={session} />
                        ))}
                </>
            )}
            <button
                type="button"
                class="plain fold"
                onClick={sideFold}
                title="fold the side list (b)"
                aria-label="fold the side list"
            >
                {isSideNarrow.value ? "»" : "« fold"}
            </button>
        </nav>
    );
}

function Help(): JSX.Element {
    void keysVersion.value;
    const groups = new Map<string, Key[]>();
    for (const key of keysBound()) {
        const name = key.group ?? "This page";
        groups.set(name, [...(groups.get(name) ?? []), key]);
    }
    return (
        <div class="overlay" onClick={() => (isHelpOpen.value = false)}>
            <div role="dialog" aria-modal="true" aria-label="keyboard" onClick={(event) => event.stopPropagation()}>
                <div class="row">
                    <h2 class="grow">Keyboard</h2>
                    <button type="button" autofocus onClick={() => (isHelpOpen.value = false)}>
                        close
                    </button>
                </div>
                {[...groups].map(([name, keys]) => (
                    <section class="section" key={name}>
                        <h3>{name}</h3>
                        <dl class="facts">
                            {keys.map((key) => [
                                <dt key={key.keys}>
                                    {key.keys.split(" ").map((part) => (
                                        <kbd key={part}>{part}</kbd>
                                    ))}
                                </dt>,
                                <dd key={`${key.keys} about`}>{key.about}</dd>,
                            ])}
                        </dl>
                    </section>
                ))}
            </div>
        </div>
    );
}

function globalKeys(): Key[] {
    const go = pages
        .filter((page) => page.keys)
        .map((page) => ({
            keys: page.keys ?? "",
            about: `go to ${page.title}`,
            group: "Everywhere",
            run: () => (page.isOfSession && route.value.session === null ? navigate("sessions") : navigate(page.name)),
        }));
    return [
        ...go,
        { keys: "?", about: "show all keys", group: "Everywhere", run: () => (isHelpOpen.value = !isHelpOpen.value) },
        { keys: "b", about: "fold the side list", group: "Everywhere", run: sideFold },
        {
            keys: "Escape",
            about: "close, unpin, leave a field",
            group: "Everywhere",
            run: () => {
                isHelpOpen.value = false;
                tipHide(true);
                (document.activeElement as HTMLElement | null)?.blur();
            },
        },
    ];
}

export function App(): JSX.Element {
    const { page: name, session } = route.value;
    const page = pageOf(name, session !== null);
    useKeys(globalKeys());
    useEffect(() => {
        document.title = `${page?.title ?? "Not found"} · gpufl`;
        tipHide(true);
    }, [page, session]);
    return (
        <div class={isSideNarrow.value ? "frame is-narrow-side" : "frame"} onClick={onLinkClick}>
            <a class="skip" href="#main">
                skip to the page
            </a>
            <header class="top">
                <a class="product" href="/sessions">
                    gpufl
                </a>
                <Guard what="where you are">
                    <Crumbs page={page} />
                </Guard>
                <Search />
                <LiveDot />
                <button
                    type="button"
                    class="plain"
                    onClick={() => themeSet(isDark.value ? "light" : "dark")}
                    title="light or dark"
                    aria-label={isDark.value ? "use light colours" : "use dark colours"}
                >
                    {isDark.value ? "◐" : "◑"}
                </button>
            </header>
            <Side />
            <main class="main" id="main" tabIndex={-1}>
                <Banner />
                {page ? (
                    <Guard what="this page" key={`${page.isOfSession} ${page.name} ${session}`}>
                        <PageView page={page} />
                    </Guard>
                ) : (
                    <Page_>
                        <Empty title="No such page.">
                            <a href="/sessions">All sessions</a>
                        </Empty>
                    </Page_>
                )}
            </main>
            <TooltipLayer />
            {isHelpOpen.value ? <Help /> : null}
        </div>
    );
}
