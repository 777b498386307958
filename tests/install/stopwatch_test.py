"""Tests of tools/install/stopwatch: which lines of tools/demo end a step, and that a demo that fails is no measurement."""

import argparse
import contextlib
import importlib.machinery
import importlib.util
import io
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADER = importlib.machinery.SourceFileLoader("stopwatch", str(ROOT / "tools/install/stopwatch"))
stopwatch = importlib.util.module_from_spec(importlib.util.spec_from_loader("stopwatch", LOADER))
LOADER.exec_module(stopwatch)

EMULATED = ["installing the Debian packages that are missing\n", "[1/800] Building\n", "[800/800] Linking\n",
            "no CUDA GPU: none\n", "\n", "== launch sites of bfs, and what would be done with each\n",
            "== rewritten and linked for a real GPU\n",
            "== run natively on the emulated GPU\n", "distances: right\n", "== run with LD_PRELOAD=libklap_jit.so\n",
            "distances: right\n", "\n", "Same, right result. Kernels launched by kernels: 1500 natively, 0 preloaded.\n"]
ON_GPU = ["[1/300] Building\n", "breadth-first search, 10,000 vertices, 10 million edges, on a GPU\n",
          "the same executable, preloaded: 3.1 times faster, every result checked against the CPU\n"]


class Stopwatch(unittest.TestCase):
    def follow(self, lines):
        """Whether the last step came, and the names of steps with their times, where each line takes a second."""
        moment = 0

        def passing():
            nonlocal moment
            for moment, line in enumerate(lines):
                yield line

        watch = stopwatch.Stopwatch(lambda: moment)
        with contextlib.redirect_stdout(io.StringIO()):
            return stopwatch.follow(watch, passing(), stopwatch.DEMO_STEPS), watch.steps

    def test_on_the_emulator(self):
        is_complete, steps = self.follow(EMULATED)
        self.assertTrue(is_complete)
        self.assertEqual([name for name, _ in stopwatch.DEMO_STEPS], [name for name, _ in steps])
        self.assertEqual([1, 4, 1, 1, 2, 3], [seconds for _, seconds in steps])

    def test_on_a_gpu(self):
        is_complete, steps = self.follow(ON_GPU)
        self.assertTrue(is_complete)
        self.assertEqual([0, 1, 1], [seconds for _, seconds in steps])

    def test_without_a_result(self):
        self.assertFalse(self.follow(EMULATED[:-1])[0])
        self.assertFalse(self.follow([])[0])

    def test_the_lines_are_those_of_the_demonstration(self):
        files = [ROOT / "tools/demo", ROOT / "tools/gpu_checks/demo.py"]
        said = "".join(file.read_text(encoding="utf-8") for file in files)
        said = said.replace('step "', "== ").replace("printf '\\nSame", "Same")
        for _, pattern in stopwatch.DEMO_STEPS[1:]:
            for alternative in pattern.split("|"):
                self.assertIn(alternative, said)

    def make_demo(self, *lines):
        """A folder with a demonstration that does only this."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        demo = pathlib.Path(folder.name) / "tools/demo"
        demo.parent.mkdir()
        demo.write_text("\n".join(["#!/bin/sh", *lines]) + "\n", encoding="utf-8")
        demo.chmod(0o755)
        return pathlib.Path(folder.name)

    def run_demo(self, *lines):
        said = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            is_right = stopwatch.run_demo(stopwatch.Stopwatch(), self.make_demo(*lines), stopwatch.DEMO_STEPS)
        for path in said.getvalue().split()[-1:]:
            pathlib.Path(path).unlink()
        return is_right, said.getvalue()

    def test_runs_the_demonstration(self):
        self.assertEqual((True, ""), self.run_demo("echo 'Same, right result'"))

    def test_a_demonstration_that_fails(self):
        is_right, said = self.run_demo("echo 'Same, right result'", "exit 3")
        self.assertFalse(is_right)
        self.assertIn("tools/demo ended with 3", said)

    def test_a_demonstration_without_a_result(self):
        self.assertFalse(self.run_demo("echo something")[0])

    def test_a_fresh_clone(self):
        folder = self.make_demo('[ $# = 0 ] && [ -d .git ] && echo "Same, right result"')
        git = ["git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b.c"]
        for words in ["init", "--quiet"], ["add", "."], ["commit", "--quiet", "--message", "All"]:
            subprocess.run([*git, *words], check=True)
        said = io.StringIO()
        with mock.patch.object(stopwatch, "ROOT", folder), contextlib.redirect_stdout(said):
            self.assertEqual(0, stopwatch.measure_clone(argparse.Namespace(reuse=False)))
        self.assertRegex(said.getvalue(), r" s  cloning\n.* s  the rewritten program's result\n.* s  from a fresh clone")


if __name__ == "__main__":
    unittest.main()
