"""Tests of the table of the guard's decisions, which benchmarks/run --guard prints."""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from made_up_programs import STATS, WithPrograms  # noqa: E402
from harness import statistics_file, variants  # noqa: E402

NATIVE_LOSES = {"ms": 6, "lost": 0, "limits": {"2048": {"ms": 1, "lost": 7}}}


def guard(choice, lost_ms=0.0, launches=10, **more):
    return {"launches": launches, "children": 5, "choice": choice, "from": "earlier runs", "earlier_runs": 6,
            "variant_ms": 1.0, "original_ms": 2.0, "trials": 1, "lost_ms": lost_ms, **more}


def stats(variant=0, original=0, guards=()):
    """Statistics of a process with so many launches of each form."""
    left = {"expand": {"original is faster": original}} if original else {}
    return dict(STATS, launches={"redirected": {"expand": variant} if variant else {}, "left": left},
                parents={"expand": {"engine": "executor at grid by the host", "variant_launches": variant,
                                    "original_launches": original, "guard": list(guards)}})


class DecisionsTest(WithPrograms):
    def line(self, **plan):
        """The row's line of the table, and the sentence below it."""
        self.program(**plan)
        code, text, _ = self.measure("--all", "--guard")
        self.assertEqual(code, 0, text)
        lines = text.splitlines()
        header = next(i for i, line in enumerate(lines) if line.startswith("row") and "runs as" in line)
        sentence = next(line for line in lines if line.startswith("The guard"))
        return [cell.strip() for cell in lines[header + 2].split("  ") if cell.strip()], sentence

    def plans(self, on, off=1.0, native=6, **statistics):
        return {"native": {"ms": native}, "grid/host process": {"ms": off}, "grid/host off": {"ms": off},
                "grid/host on": {"ms": on, "stats": stats(**statistics)}}

    def test_the_variant_is_faster(self):
        line, sentence = self.line(**self.plans(1.0, variant=10, guards=[guard("variant", lost_ms=0.07)]))
        self.assertEqual(line, ["fake", "executor at grid by the host", "variant", "1.000", "1.000", "6.000", "2.000",
                                "right", "0.7 %"])
        self.assertEqual(sentence, "The guard's decision is right in 1 of 1 rows (100 %); trials took 0.7 % of a row's "
                                   "launches at most.")

    def test_the_original_is_faster(self):
        line, _ = self.line(**self.plans(0.7, native=0.7, original=10, guards=[guard("original")]))
        self.assertEqual(line[1:3] + line[7:], ["-", "native, by the guard", "right", "0.0 %"])

    def test_wrong_decisions(self):
        line, sentence = self.line(**self.plans(1.0, native=0.7, variant=10, guards=[guard("variant")]))
        self.assertEqual(line[7], "WRONG")
        self.assertIn("right in 0 of 1 rows (0 %)", sentence)
        line, _ = self.line(**self.plans(0.7, off=0.5, native=0.7, original=10, guards=[guard("original")]))
        self.assertEqual(line[7], "WRONG")
        line, _ = self.line(**self.plans(1.0, native=0.7, variant=10, guards=[guard("open", original_ms=0)]))
        self.assertEqual(line[7], "WRONG, not tried")

    def test_three_percent_are_no_difference(self):
        line, _ = self.line(**self.plans(1.0, native=0.98, variant=10, guards=[guard("variant")]))
        self.assertEqual(line[7], "right")

    def test_no_choice_where_launches_are_lost(self):
        plans = self.plans(1.0, variant=10, guards=[guard("open", original_ms=0)])
        line, sentence = self.line(**dict(plans, native=NATIVE_LOSES))
        self.assertEqual(line[5:8], ["-", "2.000", "no choice"])
        self.assertEqual(sentence, "The guard had no choice in any row.")

    def test_earlier_runs_come_first_and_share_a_cache(self):
        self.program(**self.plans(1.0, variant=10, guards=[guard("variant", lost_ms=0.1)]))
        _, _, content = self.measure("--all", "--guard")
        found = self.variant(content, "grid/host with earlier runs")
        processes = 1 + variants.HOW_MANY_EARLIER
        self.assertAlmostEqual(found["trying"]["lost_ms"], 0.1 * processes)
        self.assertAlmostEqual(found["trying"]["spent_ms"], 10.0 * processes)
        self.assertEqual(found["settings"]["KLAP_GUARD"], "on")
        names = [variant["name"] for variant in content["rows"][0]["variants"]]
        self.assertEqual(sorted(names), ["flat", "grid/host", "grid/host with earlier runs", "grid/host without guard",
                                         "native"])

    def test_the_table_comes_again_from_the_file(self):
        self.program(**self.plans(1.0, variant=10, guards=[guard("variant")]))
        _, text, _ = self.measure("--all", "--guard")
        _, again, _ = self.main("--table", self.out)
        self.assertIn(again.strip(), text)
        self.assertIn("runs as", again)
        self.assertIn("| fake | executor at grid by the host | variant |", self.main("--table", self.out, "--markdown")[1])

    def test_other_runs_have_no_such_table(self):
        self.program()
        self.assertNotIn("runs as", self.measure()[1])

    def test_nothing_tried_costs_nothing(self):
        self.assertEqual(statistics_file.trying([{}, stats(variant=3)]), {"lost_ms": 0, "spent_ms": 0})


if __name__ == "__main__":
    unittest.main()
