#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""docs/ and the pages beside it as a book of static HTML that needs no server and no other host.

usage: build_book.py [--check] [--root DIRECTORY] [OUTPUT]    OUTPUT: build/book; --check: say what is wrong, write none

docs/SUMMARY.md is the order of the pages. A page that is not in it, a link to a page, heading or file that is not
there, and a picture that is too large are errors. Markdown is read by cmark-gfm: pages look as they do on GitHub.
"""
import argparse
import dataclasses
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUMMARY = "docs/SUMMARY.md"
FRONT = "README.md"  # becomes index.html
PICTURE_BYTES_MAX = 150_000
PICTURES_MAX = 8
OUTSIDE = re.compile(r"^(https?|mailto):")
HEADING = re.compile(r"<h([1-6])>(.*?)</h\1>", re.S)
LINK = re.compile(r'(<(?:a href|img src)=")([^"]*)(")')
COMMENT_LANGUAGES = "sh|console|python|yaml|ini|cmake|toml"


@dataclasses.dataclass
class Page:
    name: str  # of the source, from the root
    title: str
    part: str
    body: str = ""
    anchors: list = dataclasses.field(default_factory=list)

    @property
    def file(self):
        return "index.html" if self.name == FRONT else self.name[:-3] + ".html"


def text_of(fragment):
    return html.unescape(re.sub(r"<[^>]+>", "", fragment)).strip()


def slug(text, taken):
    """The anchor that GitHub gives a heading."""
    base = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    result, number = base, 0
    while result in taken:
        number += 1
        result = f"{base}-{number}"
    return result


def comments_remove(text):
    """Without comments; fenced code stays as it is."""
    parts = re.split(r"(^```.*?^```[^\n]*\n)", text, flags=re.S | re.M)
    return "".join(part if part.startswith("```") else re.sub(r"<!--.*?-->\n?", "", part, flags=re.S) for part in parts)


def markdown_read(text):
    done = subprocess.run(["cmark-gfm", "-e", "table", "-e", "strikethrough"], input=comments_remove(text), text=True,
                          capture_output=True, check=True)
    return done.stdout


def comments_dim(match):
    """A block of code whose comments step back."""
    lines = [re.sub(r"((?:^|\s{2,})#.*)$", r'<span class="dim">\1</span>', line) for line in match.group(2).split("\n")]
    return match.group(1) + "\n".join(lines) + "</code></pre>"


def entries_of(root, line):
    """(title, name) of the pages that a line of the summary stands for; a folder stands for its pages, by their
    headings."""
    entry = re.match(r"\s*- \[(.+)\]\(([^)#]+)\)$", line)
    if not entry:
        return []
    name = os.path.normpath(pathlib.PurePath(SUMMARY).parent / entry.group(2))
    if not (root / name).is_dir():
        return [(entry.group(1), name)]
    return [(path.read_text().partition("\n")[0].lstrip("# "), path.relative_to(root).as_posix())
            for path in sorted((root / name).glob("*.md"))]


class Book:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.pages = {}
        self.files = set()  # beside pages: what they link to
        self.folders = set()
        self.summary_read()
        for page in self.pages.values():
            self.page_read(page)
        for page in self.pages.values():
            page.body = LINK.sub(lambda match, at=page: self.link_resolve(at, match), page.body)
        self.pictures_check()

    def problem(self, place, text):
        self.problems.append(f"{place}: {text}")

    def summary_read(self):
        part = ""
        for number, line in enumerate((self.root / SUMMARY).read_text().splitlines(), 1):
            if line.startswith("## "):
                part = line[3:].strip()
            entries = entries_of(self.root, line)
            if line.strip() and not entries and not line.startswith("#"):
                self.problem(f"{SUMMARY}:{number}", "neither a part (## …) nor a page (- [title](file))")
            for title, name in entries:
                if not (self.root / name).is_file():
                    self.problem(f"{SUMMARY}:{number}", f"there is no {name}")
                elif name in self.pages:
                    self.problem(f"{SUMMARY}:{number}", f"{name} is there twice")
                else:
                    self.pages[name] = Page(name, title, part)
        for path in sorted([*self.root.glob("*.md"), *(self.root / "docs").rglob("*.md")]):
            name = path.relative_to(self.root).as_posix()
            if name not in self.pages and name != SUMMARY:
                self.problem(name, f"not in {SUMMARY}")

    def page_read(self, page):
        body = markdown_read((self.root / page.name).read_text())

        def anchored(match):
            anchor = slug(text_of(match.group(2)), page.anchors)
            page.anchors.append(anchor)
            return (f'<h{match.group(1)} id="{anchor}"><a class="anchor" href="#{anchor}">{match.group(2)}</a>'
                    f"</h{match.group(1)}>")
        body = HEADING.sub(anchored, body)
        body = re.sub(r"<code>([^<]{1,40})</code>", r'<code class="short">\1</code>', body)  # kept on one line
        body = re.sub(r"(<table>.*?</table>)", r'<div class="wide" tabindex="0">\1</div>', body, flags=re.S)
        block = rf'(<pre><code class="language-(?:{COMMENT_LANGUAGES})">)(.*?)</code></pre>'
        # What can be scrolled must be reachable from the keyboard.
        page.body = re.sub(block, comments_dim, body, flags=re.S).replace("<pre>", '<pre tabindex="0">')

    def link_resolve(self, page, match):
        target = html.unescape(match.group(2))
        if OUTSIDE.match(target):
            return match.group()
        path, _, anchor = target.partition("#")
        name = os.path.normpath(pathlib.PurePath(page.name).parent / path) if path else page.name
        inside = [one for one in self.pages if one.startswith(name + "/")]
        if inside and (self.root / name).is_dir():
            name = inside[0]
        if name in self.pages:
            if anchor and anchor not in self.pages[name].anchors:
                self.problem(page.name, f"{target}: {name} has no such heading")
            name = self.pages[name].file
        elif (self.root / name).is_file() and not name.startswith(".."):
            self.files.add(name)
        elif (self.root / name).is_dir() and not name.startswith("."):
            self.folders.add(name)
            name += "/index.html"
        else:
            self.problem(page.name, f"{target}: there is no {name}")
        relative = os.path.relpath(name, os.path.dirname(page.file) or ".")
        return match.group(1) + html.escape(relative + (f"#{anchor}" if anchor else "")) + match.group(3)

    def pictures_check(self):
        folder = self.root / "docs" / "pictures"
        pictures = sorted(path for path in folder.glob("*")) if folder.is_dir() else []
        if len(pictures) > PICTURES_MAX:
            self.problem("docs/pictures", f"{len(pictures)} pictures; {PICTURES_MAX} are enough")
        for path in pictures:
            name = path.relative_to(self.root).as_posix()
            if path.stat().st_size > PICTURE_BYTES_MAX:
                self.problem(name, f"{path.stat().st_size} bytes; at most {PICTURE_BYTES_MAX}")
            if name not in self.files:
                self.problem(name, "no page shows it")

    def contents(self, here):
        """The list of all pages, as seen from one of them."""
        lines, part = [], None
        for page in self.pages.values():
            if page.part != part:
                part = page.part
                lines.append(f"<h2>{html.escape(part)}</h2>")
            where = os.path.relpath(page.file, os.path.dirname(here.file) or ".")
            current = ' aria-current="page"' if page is here else ""
            lines.append(f'<a href="{html.escape(where)}"{current}>{html.escape(page.title)}</a>')
        return "\n".join(lines)

    @staticmethod
    def outline(page):
        """The list of a page's headings, or nothing if it has fewer than two."""
        found = re.findall(r'<h([23]) id="([^"]*)"><a[^>]*>(.*?)</a></h[23]>', page.body)
        links = [f'<a class="level-{level}" href="#{anchor}">{text}</a>' for level, anchor, text in found]
        return "\n".join(['<aside aria-label="On this page">', *links, "</aside>"]) if len(links) > 1 else ""

    def neighbours(self, here):
        names = list(self.pages)
        if here.name not in names:
            return ""
        at = names.index(here.name)
        links = []
        for words, number in (("Before", at - 1), ("Next", at + 1)):
            if 0 <= number < len(names):
                page = self.pages[names[number]]
                where = os.path.relpath(page.file, os.path.dirname(here.file) or ".")
                title = f'<span class="dim">{words}</span> {html.escape(page.title)}'
                links.append(f'<a href="{html.escape(where)}">{title}</a>')
        return "\n".join(links)

    def search_index(self):
        """One entry per heading: [page file, page title, anchor, heading, text]."""
        entries = []
        for page in self.pages.values():
            pieces = re.split(r'<h[1-6] id="([^"]*)"><a[^>]*>(.*?)</a></h[1-6]>', page.body)
            for anchor, heading, text in zip(pieces[1::3], pieces[2::3], pieces[3::3]):
                words = re.sub(r"\s+", " ", text_of(re.sub(r"</(td|th|p|li|code)>", " ", text)))
                entries.append([page.file, page.title, anchor, text_of(heading), words])
        return entries

    def folder_page(self, name):
        """A list of a folder's files; those that are not too large are copied."""
        lines = [f"<h1>{html.escape(name)}</h1>", "<ul>"]
        for path in sorted((self.root / name).iterdir()):
            if not path.is_file() or path.is_symlink():
                continue
            word = f"<code>{html.escape(path.name)}</code>"
            if path.stat().st_size <= PICTURE_BYTES_MAX:
                self.files.add(f"{name}/{path.name}")
                word = f'<a href="{html.escape(path.name)}">{word}</a>'
            lines.append(f"<li>{word}</li>")
        return Page(f"{name}/index.md", name, "", "\n".join([*lines, "</ul>"]))

    def write(self, output):
        shutil.rmtree(output, ignore_errors=True)
        parts = pathlib.Path(__file__).resolve().parent / "book"
        template = (parts / "page.html").read_text()
        for page in [*self.pages.values(), *map(self.folder_page, sorted(self.folders))]:
            file = output / page.file
            file.parent.mkdir(parents=True, exist_ok=True)
            base = os.path.relpath(".", os.path.dirname(page.file) or ".")
            values = {"title": html.escape(page.title), "base": base, "contents": self.contents(page),
                      "body": page.body, "neighbours": self.neighbours(page), "outline": self.outline(page)}
            file.write_text(re.sub(r"\{\{(\w+)\}\}", lambda match, v=values: v[match.group(1)], template))
        for name in self.files:
            (output / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / name, output / name)
        (output / "book.css").write_text(tokens_read(ROOT / "web/src/style.css") + (parts / "book.css").read_text())
        for name in ("book.js", "code.js"):
            shutil.copyfile(parts / name, output / name)
        index = json.dumps(self.search_index(), ensure_ascii=False, separators=(",", ":"))
        (output / "search.js").write_text(f"window.bookIndex = {index};\n")


def tokens_read(style):
    """The dashboard's colours, so that there is one list of them."""
    rules = re.findall(r'^:root(?:\[data-theme="light"\])? \{.*?^\}\n', style.read_text(), re.S | re.M)
    if len(rules) != 2:
        raise SystemExit(f"build_book: {style} does not begin with the colours of both themes")
    return "".join(rules)


def main():
    parser = argparse.ArgumentParser(description="docs/ as a book of static HTML")
    parser.add_argument("--check", action="store_true", help="say what is wrong, write nothing")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="the tree whose book it is")
    parser.add_argument("output", type=pathlib.Path, nargs="?", default=ROOT / "build" / "book")
    options = parser.parse_args()
    if not shutil.which("cmark-gfm"):
        raise SystemExit("build_book: cmark-gfm is missing (Debian: cmark-gfm)")
    book = Book(options.root)
    for text in book.problems:
        print(f"build_book: {text}", file=sys.stderr)
    if book.problems:
        return 1
    if not options.check:
        book.write(options.output)
        print(f"{len(book.pages)} pages: {options.output / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
