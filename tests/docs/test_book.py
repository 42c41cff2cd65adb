#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The book is whole: every page is in it, every link leads somewhere, nothing comes from another host. And the check
finds what it is there to find."""
import json
import pathlib
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import build_book  # noqa: E402
import gen_options  # noqa: E402


class Whole(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory(prefix="gpufl-book-")
        cls.addClassCleanup(cls.directory.cleanup)
        cls.book = build_book.Book(ROOT)
        cls.output = pathlib.Path(cls.directory.name) / "book"
        cls.book.write(cls.output)

    def test_every_page_is_in_it_and_every_link_is_alive(self):
        self.assertEqual(self.book.problems, [])

    def test_what_was_written_links_to_what_was_written(self):
        broken = []
        for file in self.output.rglob("*.html"):
            text = file.read_text()
            for target in re.findall(r'(?:href|src)="([^"]*)"', text):
                path, _, anchor = target.partition("#")
                if build_book.OUTSIDE.match(target):
                    continue
                other = (file.parent / path).resolve() if path else file
                if not other.is_file() or anchor and f'id="{anchor}"' not in other.read_text():
                    broken.append(f"{file.relative_to(self.output)}: {target}")
        self.assertEqual(broken, [])

    def test_nothing_is_loaded_from_another_host(self):
        for file in self.output.rglob("*"):
            if file.suffix in (".html", ".css"):
                loading = r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(?:https?:)?//|url\(|@import'
                self.assertEqual(re.findall(loading, file.read_text()), [], file)

    def test_the_index_holds_headings_with_their_text(self):
        text = (self.output / "search.js").read_text()
        index = json.loads(text.removeprefix("window.bookIndex = ").rstrip().rstrip(";"))
        titles = {(entry[1], entry[3]) for entry in index}
        self.assertIn(("Troubleshooting", "Kernels without a scope"), titles)
        reasons = [entry for entry in index if "pc_buffer_full" in entry[4]]
        self.assertTrue(reasons)
        self.assertFalse(any("<" in entry[3] for entry in index))

    def test_instructions_to_the_runner_are_not_shown(self):
        for file in self.output.rglob("*.html"):
            self.assertNotIn("&lt;!--", re.sub(r"<pre.*?</pre>", "", file.read_text(), flags=re.S), file)


class Faults(unittest.TestCase):
    def problems(self, **pages):
        """What is wrong with a book of a front page, a summary and these."""
        with tempfile.TemporaryDirectory(prefix="gpufl-book-") as directory:
            root = pathlib.Path(directory)
            files = {"README.md": "# Front\n",
                     "docs/SUMMARY.md": "# Book\n\n## Part\n\n- [Front](../README.md)\n- [A](a.md)\n",
                     "docs/a.md": "# A\n", **{name.replace("__", "/") + ".md": text for name, text in pages.items()}}
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return build_book.Book(root).problems

    def test_a_whole_book_has_none(self):
        page = "# A\n\n## Part `x`, two\n\n[up](../README.md) [here](#part-x-two)\n"
        self.assertEqual(self.problems(docs__a=page), [])

    def test_dead_links_are_found(self):
        for link, word in (("b.md", "no docs/b.md"), ("../README.md#none", "no such heading"),
                           ("#none", "no such heading"), ("../../outside", "there is no"),
                           ("../nowhere/", "there is no")):
            with self.subTest(link=link):
                found = self.problems(docs__a=f"# A\n\n[x]({link})\n")
                self.assertEqual(len(found), 1, found)
                self.assertIn(word, found[0])

    def test_links_in_code_are_ignored(self):
        self.assertEqual(self.problems(docs__a="# A\n\n```text\n[x](nowhere.md)\n```\n"), [])

    def test_orphans_doubles_and_odd_lines_are_found(self):
        self.assertIn("not in docs/SUMMARY.md", self.problems(docs__orphan="# O\n")[0])
        summary = "# Book\n\n- [Front](../README.md)\n- [A](a.md)\n"
        folder = self.problems(docs__SUMMARY=summary + "- [All](b)\n", docs__b__one="# One\n", docs__b__two="# Two\n")
        self.assertEqual(folder, [])
        self.assertIn("twice", self.problems(docs__SUMMARY=summary + "- [B](a.md)\n")[0])
        self.assertIn("neither", self.problems(docs__SUMMARY=summary + "words\n")[0])


class Options(unittest.TestCase):
    SOURCE = (ROOT / gen_options.SOURCE).read_text()

    def test_an_option_without_words_and_words_without_an_option_are_refused(self):
        words = json.loads((ROOT / gen_options.WORDS).read_text())
        for change in (lambda w: w.pop("app_name"), lambda w: w.update(no_such_option={"meaning": "x"})):
            changed = dict(words)
            change(changed)
            with self.assertRaises(SystemExit):
                gen_options.tables_make(self.SOURCE, changed)

    def test_ranges_and_defaults_are_those_of_the_code(self):
        words = json.loads((ROOT / gen_options.WORDS).read_text())
        source = self.SOURCE.replace("-1, 5, 31}", "-1, 6, 30}").replace(".enable_synchronization = true,", "")
        tables = "".join(gen_options.tables_make(source, words).values())
        self.assertIn("| `pc_sampling_period` | 6 to 30 |", tables)
        self.assertIn("| `enable_synchronization` | switch | off |", tables)


if __name__ == "__main__":
    unittest.main(verbosity=2)
