"""Runs a program again and again on the emulated driver, until the guard knows from earlier runs that the original is faster.

The emulated device counts steps instead of time, so every run takes the same, and the program's kernels are faster as they
are. Each run launches them ten times. That is too short for a trial within one run.
"""

import argparse
import os
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))

from harness import process, statistics_file  # noqa: E402

LAUNCHES = 10
PROGRAM = ["channels", "--pictures", "3", "--width", "16", "--height", "8", "--warmup", "2", "--reps", str(LAUNCHES - 2)]
LIMIT = 120
MOST_RUNS = 8
options = argparse.Namespace(build="build")


class EarlierRunsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_program(self, **settings):
        """What the statistics say of the parent that ran."""
        where = process.Installation(os.path.abspath(options.build))
        stats = os.path.join(self.folder, "stats.json")
        cache = os.path.join(self.folder, "cache")
        environment = where.preloaded(stats, **{"KLAP_LINKER": "driver", "KLAP_CACHE_DISABLE": "0",
                                                "KLAP_CACHE_DIR": cache} | settings)
        environment.update(LD_LIBRARY_PATH=os.path.join(where.build, "lib", "emulator"), KLAP_EMULATOR_QUIET="1",
                           KLAP_EMULATOR_SCHEDULE="fast")
        if "KLAP_NVRTC" in os.environ:
            environment["KLAP_NVRTC"] = os.environ["KLAP_NVRTC"]
        outcome = process.run([where.program("emulated", PROGRAM[0]), *PROGRAM[1:]], environment, LIMIT)
        self.assertEqual(outcome.code, 0, outcome.out + outcome.err)
        [parent] = statistics_file.read(stats)["parents"].values()
        self.assertEqual(parent["variant_launches"] + parent["original_launches"], LAUNCHES)
        return parent

    def profiles(self):
        return [name for name in os.listdir(os.path.join(self.folder, "cache")) if name.endswith(".profile")]

    def test_the_original_runs_from_the_first_launch_on(self):
        first = self.run_program()
        self.assertEqual((first["original_launches"], first["guard"][0]["choice"]), (0, "open"))
        self.assertEqual(len(self.profiles()), 1)
        for number in range(1, MOST_RUNS):
            later = self.run_program()
            if later["guard"][0]["from"] == "earlier runs":
                break
            self.assertEqual(later["guard"][0]["earlier_runs"], number)
        self.assertEqual((later["original_launches"], later["guard"][0]["choice"]), (LAUNCHES, "original"))
        self.assertLess(later["guard"][0]["original_ms"], later["guard"][0]["variant_ms"])
        self.assertEqual(len(self.profiles()), 1)
        for guard, known in (("process", 1), ("off", 0)):
            alone = self.run_program(KLAP_GUARD=guard)
            self.assertEqual((alone["original_launches"], len(alone["guard"])), (0, known))

    def test_without_a_cache_there_is_no_profile(self):
        for _ in range(2):
            self.assertEqual(self.run_program(KLAP_CACHE_DISABLE="1")["guard"][0]["earlier_runs"], 0)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "cache")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.parse_known_args(namespace=options)
    unittest.main(argv=sys.argv[:1])
