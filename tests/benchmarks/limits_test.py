"""Tests of how benchmarks/run measures: which limits of pending launches work, and in which order variants run."""

import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from made_up_programs import HARD, LEFT, WithPrograms  # noqa: E402
from harness import limits, measure, report  # noqa: E402


class LimitTest(WithPrograms):
    """Native: which limits work, and what became of the default one."""

    def test_search(self):
        self.program(native={"limits": HARD})
        code, text, content = self.measure()
        self.assertEqual(code, 0, text)
        row = content["rows"][0]
        self.assertEqual([(r["limit"], r["verdict"]) for r in row["limits"]],
                         [(2048, "right"), (4096, "wrong"), (8192, "hangs"), (16384, "right"), (32768, "right"),
                          (65536, "right")])
        self.assertEqual(row["limits"][1]["why"], "distance 3 is 5, not 4")
        self.assertEqual(row["best_limit"], 32768)
        self.assertEqual(self.variant(content, "native best")["samples"], [6] * 5)
        self.assertEqual(self.variant(content, "native best")["limit"], 32768)
        self.assertEqual(row["cut_short"], "")

    def test_a_hang_is_followed_by_a_fresh_process(self):
        self.program(native={"limits": HARD})
        self.measure()
        asked = {words.split()[1]: pid for _, pid, words in self.log() if words.startswith("limit ")}
        self.assertEqual(asked["4096"], asked["8192"])
        self.assertNotEqual(asked["8192"], asked["16384"])
        self.assertEqual(asked["16384"], asked["65536"])
        self.assertTrue(self.gone(self.pids()))

    def test_lost_launches_make_a_limit_not_work(self):
        self.program(native={"ms": 6, "limits": {"2048": {"ms": 1, "lost": 1}}})
        code, text, content = self.measure()
        self.assertEqual(code, 0, text)
        self.assertEqual(content["rows"][0]["best_limit"], 4096)
        self.assertEqual(self.variant(content, "native")["lost_launches"], 1)
        self.assertIn("1.000 (1 lost)", text)
        self.assertIn("12.0x", text)  # against limit 4,096, not against the default one

    def test_default_limit_may_be_the_best(self):
        self.program()
        code, text, content = self.measure()
        self.assertEqual((code, content["rows"][0]["best_limit"]), (0, 2048), text)
        self.assertNotIn("native best", [v["name"] for v in content["rows"][0]["variants"]])
        self.assertIn("12.0x", text)

    def test_hang_at_the_default_limit(self):
        self.program(native={"ms": 6, "limits": {"2048": {"do": "hang"}}})
        code, text, content = self.measure()
        self.assertEqual(code, 0, text)
        found = self.variant(content, "native")
        self.assertEqual((found["verdict"], found["samples"]), ("hangs", []))
        self.assertIn("0.4 s, killed", found["why"])
        self.assertIn("hangs", report.default_cell(content["rows"][0]))

    def test_wrong_and_crash_at_the_default_limit_are_only_reported(self):
        for what, verdict in (({"mistake": "cell 1"}, "wrong"), ({"do": "crash"}, "failed")):
            with self.subTest(verdict):
                self.program(native={"ms": 6, "limits": {"2048": what}})
                code, text, content = self.measure()
                self.assertEqual(code, 0, text)
                self.assertEqual(self.variant(content, "native")["verdict"], verdict)
                self.assertIsNone(report.time_of(content["rows"][0], "native"))
        self.assertIn("SIGSEGV", self.variant(content, "native")["why"])

    def test_a_crash_later_keeps_its_verdict(self):
        self.program(native={"ms": 6, "limits": {"2048": {"lost": 3, "do": "crash", "good_runs": 4}}})
        code, _, content = self.measure()
        self.assertEqual((code, self.variant(content, "native")["verdict"]), (0, "failed"))

    def test_right_at_no_limit(self):
        self.program(native={"mistake": "cell 1"})
        code, text, content = self.measure()
        self.assertEqual((code, len(content["rows"][0]["limits"])), (1, 10))
        self.assertIn("WRONG: fake: natively right at no limit", text)
        self.assertEqual(content["wrong"], ["fake: natively right at no limit"])

    def test_best_limit_that_is_wrong_later(self):
        self.program(native={"ms": 6, "mistake": "cell 1", "good_runs": 5})
        code, text, _ = self.measure()
        self.assertEqual(code, 1)
        self.assertIn("native at limit 2048: wrong (cell 1)", text)

    def test_patience_shrinks_after_a_hang(self):
        self.assertEqual(limits.patience(10, 10000, False), 10)
        self.assertAlmostEqual(limits.patience(10, 10000, True), 3.2)
        self.assertEqual(limits.patience(10, None, True), 10)
        self.explain([LEFT])
        hangs = {"do": "hang"}
        self.program(native={"limits": {"2048": hangs, "4096": hangs}}, **{"grid/host": {"limits": {"2048": hangs}}})
        with mock.patch.object(limits, "SECONDS_AFTER_A_HANG", 0.1):  # and 0.1 s for the 5,000 launches
            _, _, content = self.measure()
        waited = [record["why"] for record in content["rows"][0]["limits"][:2]]
        waited.append(self.variant(content, "grid/host")["why"])
        self.assertEqual([why.split("within ")[1] for why in waited],
                         ["0.4 s, killed", "0.2 s, killed", "0.2 s, killed"])

    def test_search_is_cut_short(self):
        self.program(native={"do": "hang"})
        code, text, content = self.measure("--all", "--row-seconds", "1")
        self.assertEqual(code, 0, text)  # nobody knows whether a larger limit would have been right
        self.assertRegex(content["rows"][0]["cut_short"], r"limits from \d+ on were not tried")
        self.assertIn("not found", text)


class RoundsTest(WithPrograms):
    def rounds(self):
        """The names of the variants in the order in which they were told to run, without the limit search."""
        log = self.log()
        started = max(i for i, (_, _, words) in enumerate(log) if words.startswith(("start", "lost")))
        return [name for name, _, words in log[started:] if words.startswith("run")]

    def test_one_of_each_in_turn(self):
        self.program(native={"limits": HARD})
        self.measure()
        order = ["flat", "native", "grid/host", "grid/device", "native"]
        counted = [name for name in order for _ in range(2)]  # an uncounted run right before each counted one
        self.assertEqual(self.rounds(), order * 2 + counted * 5)

    def test_without_priming(self):
        self.program(native={"limits": HARD})
        self.measure("--all", "--no-prime")
        self.assertEqual(self.rounds(), ["flat", "native", "grid/host", "grid/device", "native"] * 7)

    def test_long_runs_are_not_primed(self):
        self.program(native={"ms": 101, "limits": {"2048": {"lost": 1}}})
        self.measure()
        self.assertEqual(self.rounds().count("native"), 2 * (2 + 5))

    def test_very_long_runs_are_fewer(self):
        self.program(flat={"ms": 2001})
        _, _, content = self.measure()
        self.assertEqual([self.variant(content, name)["repetitions"] for name in ("flat", "grid/host")], [3, 5])

    def test_the_first_process_is_alone_until_it_is_ready(self):
        self.program(flat={"start": 3})
        self.measure()
        # The input is not there for the others before the first one has ended or said that it is ready.
        self.assertEqual(self.log()[0][0], "flat")

    def test_every_variant_is_measured_once_even_when_the_time_is_over(self):
        self.program()
        with mock.patch.object(measure, "SHORT_ROUND_SECONDS", 0):
            _, text, content = self.measure("--all", "--row-seconds", "0.01")
        row = content["rows"][0]
        self.assertIn("1 of 5 repetitions", row["cut_short"])
        self.assertEqual([v["repetitions"] for v in row["variants"]], [1, 1, 1, 1])
        self.assertIn("cut short", text)

    def test_short_repetitions_are_made_although_the_time_is_over(self):
        self.program()
        _, text, content = self.measure("--all", "--row-seconds", "0.01")
        self.assertEqual([v["repetitions"] for v in content["rows"][0]["variants"]], [5, 5, 5, 5], text)

    def test_only_some_variants(self):
        self.program(native={"limits": HARD})
        _, _, content = self.measure("--all", "--variants", "native best, none")
        self.assertEqual([v["name"] for v in content["rows"][0]["variants"]], ["native", "none", "native best"])


if __name__ == "__main__":
    unittest.main()
