"""Tests of the fit by which children run in their blocks, and of the limits that the library has.

The limits in the library must be those that the fit finds in the committed measurement.
"""

import contextlib
import glob
import importlib.util
import io
import json
import os
import re
import sys
import tempfile
import unittest
from importlib.machinery import SourceFileLoader

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "benchmarks", "fit_forms")
MEASURED = sorted(glob.glob(os.path.join(ROOT, "benchmarks", "results", "archive", "*-forms", "forms-*.json.xz")))

sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
loader = SourceFileLoader("fit_forms", TOOL)
fit_forms = importlib.util.module_from_spec(importlib.util.spec_from_loader("fit_forms", loader))
sys.dont_write_bytecode = True
loader.exec_module(fit_forms)


def a_row(block, lanes, blocks, chosen=1.0):
    forms = None if lanes is None else {"lanes_used": lanes}
    return {"block": block, "forms": forms, "wrong": [0],
            "ms": {"flat": [1.0, 1.1], "blocks": [blocks], "chosen": [chosen]}}


def fit(*rows):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "rows.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump({"rows": {str(i): row for i, row in enumerate(rows)}}, out)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            best = fit_forms.fit([file])
    return best, said.getvalue()


class FitForms(unittest.TestCase):
    def test_takes_the_limit_that_gains_most(self):
        best, _ = fit(a_row(64, 0.2, 2.0), a_row(64, 0.5, 1.02), a_row(64, 0.7, 0.9), a_row(64, 0.9, 0.8))
        self.assertEqual((0.55, 64), best[2:])
        self.assertAlmostEqual((0.9 * 0.8) ** 0.25, best[0])

    def test_lets_no_row_lose_more_than_3_percent(self):
        best, _ = fit(a_row(64, 0.7, 1.05), a_row(64, 0.7, 0.5), a_row(64, 0.9, 0.95))
        self.assertAlmostEqual(0.95 ** (1 / 3), best[0])
        self.assertGreater(best[2], 0.7)

    def test_leaves_out_large_blocks_where_they_lose(self):
        best, _ = fit(a_row(64, 0.8, 0.9), a_row(1024, 0.8, 1.2))
        self.assertLess(best[3], 1024)

    def test_names_wrong_results(self):
        row = a_row(64, 0.8, 0.9)
        row["wrong"] = [0, 1]
        self.assertIn("WRONG", fit(row)[1])

    def test_found_the_limits_of_the_library(self):
        with open(os.path.join(ROOT, "src", "jit", "data", "form_model.h"), encoding="utf-8") as file:
            header = file.read()
        with contextlib.redirect_stdout(io.StringIO()):
            best = fit_forms.fit(MEASURED)
        self.assertEqual(int(re.search(r"kMostThreadsInBlocks = (\d+)", header).group(1)), best[3])
        self.assertAlmostEqual(float(re.search(r"kLeastLanesUsed = ([\d.]+)", header).group(1)), best[2])


if __name__ == "__main__":
    unittest.main()
