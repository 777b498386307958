"""Tests of tools/gallery on the emulated GPU: its table, its pictures, and what it makes of programs that go wrong."""

import argparse
import contextlib
import io
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "gallery"))

import show  # noqa: E402

BUILD = ROOT / "build"
SIDE = 512  # of the picture in the last row
# A program and what it prints at its end. Preloaded it may have another result, and it writes statistics.
MADE_UP = """#!/bin/sh
result="$0.native"
if [ -n "$KLAP_STATS" ]; then
  result="$0.preloaded"
  cp "$0.stats" "$KLAP_STATS"
fi
cat "$result"
grep -q '"wrong": 0' "$result"
"""


def gallery(build, *words):
    """The exit code of the command, and what it says."""
    command = [ROOT / "tools/gallery", "--no-build", "--emulated", "--build", build, *words]
    run = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    return run.returncode, run.stdout + run.stderr


def table(text):
    """The cells of a row behind the program's name, for each row."""
    rows = (re.split(" {2,}", line) for line in text.splitlines())
    return {words[0]: words[1:] for words in rows if len(words) in (6, 7) and not words[0].startswith("-")}


def read_png(path):
    """The width, and the colour of each pixel in rows. Rows of pictures with a palette have no filter."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind] = chunks.get(kind, b"") + body
        at += 12 + length
    width, height, depth, colour_type = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour_type) == (8, 3)
    values = zlib.decompress(chunks[b"IDAT"])
    rows = [values[i * (width + 1):(i + 1) * (width + 1)] for i in range(height)]
    assert len(values) == height * (width + 1) and all(row[0] == 0 for row in rows)
    palette = chunks[b"PLTE"]
    return width, [[tuple(palette[3 * value:3 * value + 3]) for value in row[1:]] for row in rows]


class Gallery(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.pictures = pathlib.Path(folder.name)
        cls.code, cls.text = gallery(BUILD, "--pictures", cls.pictures)
        cls.rows = table(cls.text)

    def test_all_children_are_saved_and_all_results_are_right(self):
        self.assertEqual(0, self.code, self.text)
        self.assertEqual(
            {"breadth-first search", "quadtree", "quicksort", "stream compaction", "Mandelbrot set",
             "Mandelbrot set, small squares"}, set(self.rows) - {"program"})
        for name, (children, native, preloaded, native_result, result) in self.rows.items():
            if name not in ("program", "Mandelbrot set, small squares"):
                self.assertGreater(int(children), 20)
                self.assertEqual([children, "0", "right", "right"], [native, preloaded, native_result, result])

    def test_natively_launches_are_lost(self):
        children, native, *others = self.rows["Mandelbrot set, small squares"]
        self.assertLess(int(native.replace(",", "")), int(children.replace(",", "")))
        self.assertEqual(["0", "wrong", "right"], others)

    def test_says_that_it_is_an_emulation(self):
        self.assertIn("THIS WAS AN EMULATION", self.text)
        self.assertIn(f"{self.pictures}/mandelbrot-native.png", self.text)

    def test_pictures(self):
        width, rows = read_png(self.pictures / "mandelbrot-preloaded.png")
        self.assertEqual((SIDE, SIDE), (width, len(rows)))
        origin = round(SIDE * 2.05 / 2.6)  # where both coordinates are 0
        self.assertEqual((0, 0, 0), rows[SIDE // 2][origin])
        outside = rows[0][0]
        self.assertGreater(outside[2], max(outside[0], outside[1]))
        self.assertEqual(rows[SIDE // 2][0], rows[SIDE // 2 + 1][0])
        native_width, native = read_png(self.pictures / "mandelbrot-native.png")
        self.assertEqual(width, native_width)
        self.assertNotEqual(rows, native)


class MadeUp(unittest.TestCase):
    """A program that is no CUDA program, in a folder that looks like a build."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        self.program = self.build / "bin/emulated/compaction"
        (self.build / "lib").mkdir()
        # The loader says that it cannot preload this, and goes on.
        (self.build / "lib/libklap_jit.so").touch()

    def make(self, native=0, preloaded=0, redirected=1, lost=None):
        """A program with so many wrong results, so many launches that are rewritten, and so many that are lost natively."""
        self.program.parent.mkdir(parents=True)
        for how, wrong, ms in ("native", native, 1.0), ("preloaded", preloaded, 0.25):
            result = {"right": 1 - wrong, "wrong": wrong, "ms": {"median": ms}} | ({"first_mistake": "3"} if wrong else {})
            result["lost_launches"] = lost if how == "native" else None
            report = {"child_launches": 7000, "launches_by_kernels": 5, "result": result}
            pathlib.Path(f"{self.program}.{how}").write_text(json.dumps(report), encoding="utf-8")
        statistics = {"launches": {"redirected": {"parent": redirected}}}
        pathlib.Path(f"{self.program}.stats").write_text(json.dumps(statistics), encoding="utf-8")
        self.program.write_text(MADE_UP, encoding="utf-8")
        self.program.chmod(0o755)

    def show(self, **made):
        """The exit code and the text for such a program."""
        self.make(**made)
        return gallery(self.build, "compaction")

    def row_on_a_gpu(self, **made):
        """The cells, where the program stands in for one on a GPU."""
        self.program = self.build / "bin/bench/compaction"
        self.make(**made)
        entries = [entry for entry in show.ENTRIES if entry.program == "compaction"]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual([], show.show(show.Place(self.build, False, self.build), entries))
        return table(said.getvalue())["stream compaction"]

    def test_times_on_a_gpu(self):
        self.assertEqual(["7,000", "1.000", "0.250", "4.0x", "right", "right"], self.row_on_a_gpu(lost=0))

    def test_lost_launches_on_a_gpu(self):
        self.assertEqual(["7,000", "1.000", "0.250", "-", "wrong, 6,000 lost", "right"], self.row_on_a_gpu(native=1, lost=6000))

    def test_all_is_right(self):
        code, text = self.show()
        self.assertEqual((0, ["7,000", "5", "5", "right", "right"]), (code, table(text)["stream compaction"]), text)

    def test_a_wrong_result(self):
        code, text = self.show(preloaded=1)
        self.assertEqual((1, ["7,000", "5", "5", "right", "wrong"]), (code, table(text)["stream compaction"]), text)
        self.assertIn("WRONG: stream compaction: 3", text)

    def test_a_wrong_result_natively_is_not_ours(self):
        code, text = self.show(native=1)
        self.assertEqual((0, ["7,000", "5", "5", "wrong", "right"]), (code, table(text)["stream compaction"]), text)

    def test_nothing_was_rewritten(self):
        code, text = self.show(redirected=0)
        self.assertEqual(1, code)
        self.assertIn("WRONG: stream compaction: no launch was rewritten", text)

    def test_a_program_that_fails(self):
        self.make()
        self.program.write_text("#!/bin/sh\necho no device >&2\nexit 3\n", encoding="utf-8")
        code, text = gallery(self.build, "compaction")
        self.assertEqual(1, code)
        self.assertIn("WRONG: stream compaction: exit code 3: no device", text)

    def test_a_program_that_is_not_built(self):
        code, text = gallery(self.build, "compaction")
        self.assertEqual((1, True), (code, f"not built: {self.program}" in text), text)

    def test_a_name_that_is_not_in_the_gallery(self):
        code, text = gallery(self.build, "bsf")
        self.assertEqual((2, True), (code, "bsf: not in the gallery, which has bfs, qt" in text), text)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    known, rest = parser.parse_known_args()
    BUILD = known.build.resolve()
    unittest.main(argv=[sys.argv[0], *rest])
