#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The check for plain English finds each phrase of its list, wherever it is written, and accepts ordinary English."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import wording  # noqa: E402

BAD = """The client is told.
The host is not heard of.
changes below this are none
what is no address is refused
every so many cycles
small deliveries are melted
the keeper ends the session
the courier sends it
on the next beat
a wish of the user
a hole in the numbers
JSON for machines
the option stands above
a thread of its own
what is not to be had
the driver lets go of it
the client gives up
Theme: as the system
Browsers and other strangers
the server speaks HTTP
both run by turns
written whole or not at all"""
GOOD = """The client is notified. There is none. It is None. None of them is missing.
the heartbeat of the service, ClickHouse Keeper, a stand-in for docker, X stands for unknown
the run was so slow; as the system call returns; its own thread"""


class Phrases(unittest.TestCase):
    def setUp(self):
        self.rules = wording.Wording(ROOT)

    def test_each_listed_phrase_is_found_once(self):
        for line in BAD.splitlines():
            with self.subTest(line=line):
                self.assertTrue(self.rules.text_check("a.md", line))

    def test_ordinary_english_passes(self):
        self.assertEqual(self.rules.text_check("a.md", GOOD), [])

    def test_identifiers_are_split_into_words(self):
        for text in ("struct session_keeper *k;", "class WishList {", "int BEAT_MS = 1;", "void segment_melt(void);"):
            with self.subTest(text=text):
                self.assertEqual(len(self.rules.text_check("a.c", text)), 1)

    def test_a_phrase_that_continues_on_the_next_line_is_found_on_its_first(self):
        for text in ("/* one\n * a thread of\n * its own */", "# one\n# a thread of its\n# own\n", "// one\n// thread of its own"):
            with self.subTest(text=text):
                (problem,) = self.rules.text_check("a.c", text)
                self.assertTrue(problem.startswith("a.c:2: 'of its own'"), problem)

    def test_a_finding_names_what_to_write_instead(self):
        (problem,) = self.rules.text_check("docs/x.md", "line\nfor machines\n")
        self.assertEqual(problem, "docs/x.md:2: 'for machines': write as JSON")


class Lists(unittest.TestCase):
    def test_pending_folders_and_data_are_left_out_and_exceptions_must_be_needed(self):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            rules = {"phrases": [{"not": "hole", "pattern": "\\bhole\\b", "write": "gap"}], "pending": ["late"], "data": ["data/"],
                     "exceptions": [{"file": "a.md", "phrase": "hole", "reason": "a hole in a struct"},
                                    {"file": "b.md", "phrase": "hole", "reason": "none"}]}
            for name, text in {wording.LIST: json.dumps(rules), "a.md": "hole", "late/x.c": "hole", "later.c": "hole",
                               "data/x.md": "hole", "picture.png": "hole"}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            check = wording.Wording(root)
            names = ["a.md", "late/x.c", "later.c", "data/x.md", "picture.png"]
            self.assertEqual(check.check(names), ["later.c:1: 'hole': write gap"])
            self.assertEqual(len(check.check(names, with_pending=True)), 2)
            self.assertEqual(check.idle_exceptions(), [f"{wording.LIST}: the exception for 'hole' in b.md is not needed"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
