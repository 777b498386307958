"""Tests of the project's pages: the commands of README.md and of the emulator's page run, and every link leads to a file.

`./app` of the pages is a small search on the emulated GPU, so that nothing here needs a real one.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
SKIPPED_FOLDERS = {".git", "results"}  # results are kept as they were written
HELPED = ("tools/demo", "tools/test")  # they build and install: only their --help is run


def pages():
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS and not f.startswith("build")]
        yield from (pathlib.Path(folder) / name for name in sorted(files) if name.endswith(".md"))


def command_lines(page):
    """The lines of code blocks that name no language, without their comments."""
    lines = []
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for block in (text for language, text in blocks if not language):
        lines += [line for line in (re.sub(r"\s#.*", "", line).strip() for line in block.splitlines()) if line]
    return lines


def without_code(text):
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(page):
    """The names that a page's headings can be reached by, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page):
    """Relative links of a page that lead to no file, or to no heading of it."""
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = urllib.parse.unquote(target).partition("#")
        path = page.parent / file if file else page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            broken.append(target)
    return broken


class Links(unittest.TestCase):
    def test_every_link_leads_to_a_file(self):
        for page in pages():
            self.assertEqual([], broken_links(page), f"broken links in {page.relative_to(ROOT)}")

    def test_a_broken_link_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text("# Two words\n[a](page.md) [b](#two-words) [c](https://x.y) `[d](none)`\n"
                            "[e](none.md) [f](page.md#none)\n", encoding="utf-8")
            self.assertEqual(["none.md", "page.md#none"], broken_links(page))


class Commands(unittest.TestCase):
    """Runs commands in a folder that looks like the root of the project after a build."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "build").symlink_to(BUILD)
        (self.folder / "tools").symlink_to(ROOT / "tools")
        (self.folder / "app").symlink_to(BUILD / "bin" / "emulated" / "shapes")

    def run_line(self, line, **environment):
        driver = {"LD_LIBRARY_PATH": str(BUILD / "lib" / "emulator"), "KLAP_LINKER": "driver",
                  "KLAP_CACHE_DIR": str(self.folder / "cache")}
        run = subprocess.run(["bash", "-c", line], cwd=self.folder, env={**os.environ, **driver, **environment},
                             capture_output=True, text=True, timeout=200, check=False)
        self.assertEqual(0, run.returncode, f"{line}\n{run.stdout}{run.stderr}")
        return run.stdout + run.stderr

    def check(self, page):
        lines = command_lines(page)
        self.assertTrue(lines, f"{page} has no commands")
        for line in lines:
            with self.subTest(line):
                self.check_line(line)

    def check_line(self, line):
        words = shlex.split(line)
        if words[0] in HELPED:
            self.assertIn(words[0], self.run_line(f"{words[0]} --help"))
        elif words[:2] == ["build/bin/klap", "explain"]:
            self.assertIn("launch site", self.run_line(line))
        elif words[:2] == ["build/bin/klap", "doctor"]:
            self.assertIn("is fine", self.run_line(line))
        elif words[:2] == ["build/bin/klap", "run"] or "LD_PRELOAD" in line:
            self.assertIn("PASS", self.run_line(line))
            if "--report stats.json" in line:
                statistics = json.loads((self.folder / "stats.json").read_text(encoding="utf-8"))
                self.assertGreater(statistics["sites"]["rewritten"], 0)
        else:
            self.fail("this test does not know how to check that command; teach it")

    def test_readme(self):
        self.check(ROOT / "README.md")

    def test_emulator(self):
        self.check(ROOT / "src" / "emulator" / "README.md")

    def check_options(self, name, page):
        """Each option in a page's commands is in the help of its subcommand."""
        for line in command_lines(page):
            program, *words = line.split()
            self.assertEqual(name, program)
            with self.subTest(line):
                subcommands = list(itertools.takewhile(lambda word: re.fullmatch(r"[a-z]+", word), words))
                shown = self.run_line(f"build/bin/{name} {' '.join(subcommands)} --help")
                for option in re.findall(r" (--[a-z-]+)", re.sub(r" \./app .*", "", line)):
                    self.assertTrue(option in shown, f"{option} is no option of {' '.join(subcommands)}")

    def test_klap_ptx(self):
        self.check_options("klap-ptx", ROOT / "tools" / "klap_ptx" / "README.md")

    def test_klap(self):
        self.check_options("klap", ROOT / "tools" / "klap" / "README.md")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=str(BUILD))
    known, rest = parser.parse_known_args()
    BUILD = pathlib.Path(known.build).resolve()
    unittest.main(argv=[sys.argv[0], *rest])
