"""Tests of how benchmarks/run is called: which rows and variants it runs, and that it leaves no process behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from made_up_programs import ROOT, WithPrograms  # noqa: E402
from harness import offered, results, rows, variants  # noqa: E402


class RowsTest(WithPrograms):
    def read(self, **files):
        for name, text in files.items():
            self.write(f"benchmarks/{name}/rows.json", text if isinstance(text, str) else json.dumps({"rows": text}))
        return rows.read_all(os.path.join(self.folder, "benchmarks"))

    def row(self, name, **more):
        return {"paper": "KLAP", "name": name, "arguments": [], **more}

    def test_choice(self):
        found = self.read(bfs=[self.row("bfs", quick=True), self.row("bfs-big")], mst=[self.row("mst", paper="Wu")])
        names = lambda *how, **more: [row.name for row in rows.choose(found, list(how), **more)]  # noqa: E731
        self.assertEqual(names("bfs*"), ["bfs", "bfs-big"])
        self.assertEqual(names(paper="wu"), ["mst"])
        self.assertEqual(names(quick=True), ["bfs"])
        self.assertEqual(names(everything=True), ["bfs", "bfs-big", "mst"])
        for wrong in ({"patterns": ["nix"]}, {"patterns": []}, {"patterns": [], "paper": "X"}):
            self.assertRaises(rows.BadInput, rows.choose, found, **wrong)

    def test_parts_are_all_rows_once(self):
        found = self.read(a=[self.row(f"r{i}") for i in range(11)])
        earlier = {"r0": 30.0, "r5": 29.0}
        parts = [rows.part_of(found, i, 3, earlier) for i in (1, 2, 3)]
        self.assertEqual(sorted(row.name for part in parts for row in part), sorted(row.name for row in found))
        loads = [sum(rows.expected_seconds(row, earlier) for row in part) for part in parts]
        self.assertLess(max(loads) - min(loads), 15)
        for wrong in ("0/3", "4/3", "2", "a/b"):
            self.assertRaises(rows.BadInput, rows.parse_part, wrong)

    def test_mistakes_name_the_file(self):
        for text, message in (("{", "no list of rows"), ("[]", "no list of rows"), ('{"rows": 3}', "not a list"),
                              ([{"name": "x"}], "no paper"), ([self.row("x", arguments="y")], "list of strings"),
                              ([self.row("x"), self.row("x")], "x is in a/rows.json already"), ([3], "an object")):
            with self.assertRaisesRegex(rows.BadInput, message) as caught:
                self.read(a=text)
            self.assertIn("a/rows.json", str(caught.exception))

    def test_list_and_missing_programs(self):
        self.program()
        self.assertIn("fake", self.main("--list", "--benchmarks", os.path.join(self.folder, "benchmarks"))[1])
        os.remove(os.path.join(self.folder, "build/bin/bench/fake"))
        code, _, err = self.main(*self.words("--all"))
        self.assertEqual((code, err), (2, "benchmarks/run: the build folder build has no fake\n"))
        # It says which granularities and launchers there are.
        os.remove(os.path.join(self.folder, "build/bin/klap-ptx"))
        code, _, err = self.main(*self.words("--all"))
        self.assertEqual((code, err), (2, "benchmarks/run: the build folder build has no klap-ptx, fake\n"))

    def test_too_few_repetitions(self):
        self.program()
        self.assertEqual(self.main(*self.words("--all", "--reps", "3"))[0], 2)

    def test_rows_without_time_are_not_run(self):
        self.program("one")
        self.program("two")
        code, text, content = self.measure("--all", "--budget", "0.01")
        self.assertEqual((code, content["not_run"], content["rows"]), (1, ["one", "two"], []))
        self.assertIn("not run: one, two", text)

    def test_the_repository_s_own_rows(self):
        found = rows.read_all(os.path.join(ROOT, "benchmarks"))
        for row in found:
            self.assertTrue(os.path.isdir(os.path.join(ROOT, "benchmarks", row.folder)))


class InterruptTest(WithPrograms):
    """Nothing may be left on a GPU that someone else pays for."""

    def start(self):
        """A run that hangs in its second row; returns it and the process ids of its programs."""
        self.program("one")
        self.program("two", native={"limits": {"2048": {"do": "hang"}}})
        words = [sys.executable, os.path.join(ROOT, "benchmarks", "run"), *self.words("--all"), "--timeout", "60"]
        # Killed at once it leaves its temporary folder behind.
        running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=dict(os.environ, TMPDIR=self.folder))
        self.addCleanup(running.stdout.close)
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            time.sleep(0.02)
            with contextlib.suppress(FileNotFoundError):
                if os.path.exists(self.out) and self.log()[-1][2] == "run 2048" and self.log()[-2][2] != "run 2048":
                    return running, self.pids()
        running.kill()
        return self.fail("the second row was not reached: " + running.communicate()[0])

    def test_ctrl_c(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(how.name):
                running, pids = self.start()
                running.send_signal(how)
                text = running.communicate(timeout=10)[0]
                self.assertEqual(running.returncode, 130, text)
                self.assertTrue(self.gone(pids))
                content = results.read(self.out)
                self.assertEqual([row["name"] for row in content["rows"]], ["one", "two"])
                self.assertTrue(content["interrupted"])
                self.assertIn("interrupted", content["rows"][1]["cut_short"])
                self.assertIn("12.0x", text)
            os.remove(self.out)
            os.remove(os.path.join(self.folder, "build/bin/bench/log.txt"))

    def test_killed_harness(self):
        running, pids = self.start()
        running.kill()
        running.wait()
        self.assertTrue(self.gone(pids))


class ThresholdTest(unittest.TestCase):
    def planned(self, patterns):
        with mock.patch.object(offered, "variants_of", lambda program: ["cdp", "flat"]):
            return {variant.name: variant.settings for variant in variants.planned("p", [("grid", "host")], patterns)}

    def test_are_there_to_be_asked_for(self):
        found = self.planned(["grid/host threshold *"])
        self.assertEqual({"grid/host threshold 4": "4", "grid/host threshold 8": "8", "grid/host threshold 32": "32"},
                         {name: settings["KLAP_THRESHOLD"] for name, settings in found.items()})
        self.assertEqual("off", self.planned(["*without threshold"])["grid/host without threshold"]["KLAP_THRESHOLD"])

    def test_are_not_among_those_that_are_told_apart_by_default(self):
        self.assertFalse([name for name in self.planned([]) if "threshold" in name])

    def test_every_optimisation_is_measured_with_and_without(self):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as page:
            page.write("| `KLAP_POOL` | `[defaults] pool` | auto | auto | Text |\n"
                       "| `flatten` | on \\| off | on | Text |\n| `preload` | on \\| off | off | Text |\n")
            page.flush()
            self.assertEqual({"flatten": "on", "preload": "off"}, variants.read_optimisations(page.name))
        self.assertEqual("-flatten", self.planned(["*without flatten"])["grid/host without flatten"]["KLAP_OPTIMISE"])
        found = self.planned(["*with preload_arguments"])["grid/host with preload_arguments"]
        self.assertEqual("+preload_arguments", found["KLAP_OPTIMISE"])


if __name__ == "__main__":
    unittest.main()
