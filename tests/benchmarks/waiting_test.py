"""Tests of the table of programs that wait for their children, which benchmarks/run --waits prints."""

import json
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from made_up_programs import WithPrograms  # noqa: E402
from harness import texts  # noqa: E402


class WaitingTest(WithPrograms):
    """The folder `both` has one row, of two programs: `tail` and `waiting`."""

    def measure_both(self, *arguments, **waits):
        self.program("other")
        self.program("tail", native={"ms": 6})
        self.program("waiting", variants=["cdp"], waits={"ms": 1.5, **waits})
        for name in ("tail", "waiting"):
            os.remove(os.path.join(self.folder, f"benchmarks/{name}/rows.json"))
        row = {"paper": "waits", "name": "sort", "program": "tail", "waits": "waiting", "arguments": []}
        self.write("benchmarks/both/rows.json", json.dumps({"rows": [row]}))
        return self.measure(*(arguments or ["--waits"]))

    def lines(self, text):
        """The table's lines, each as its cells."""
        lines = text.splitlines()
        header = next(i for i, line in enumerate(lines) if line.startswith("row") and "tail launches" in line)
        return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines[header + 2:header + 4]]

    def test_ratios(self):
        code, text, content = self.measure_both()
        self.assertEqual(code, 0, text)
        self.assertEqual(self.lines(text), [["sort", "6,000", "2048", "2,000", "1,500", "4.00x", "0.75x"],
                                            ["geometric mean (rows)", "4.00x (1)", "0.75x (1)"]])
        self.assertEqual([row["name"] for row in content["rows"]], ["sort"])
        self.assertEqual([found["name"] for found in content["rows"][0]["variants"]], ["flat", "native", "waits"])

    def test_what_is_wrong_has_no_ratio(self):
        code, text, _ = self.measure_both(mistake="value 3 is 5, not 4")
        self.assertEqual(code, 1)
        self.assertEqual(self.lines(text)[0], ["sort", "6,000", "2048", "2,000", "wrong", "-", "-"])
        self.assertIn("WRONG: sort: preloaded waits: wrong (value 3 is 5, not 4)", text)

    def test_is_a_column_of_every_run(self):
        code, text, content = self.measure_both("--all")
        self.assertEqual(code, 0, text)
        names = {row["name"]: [found["name"] for found in row["variants"]] for row in content["rows"]}
        self.assertIn("waits", names["sort"])
        self.assertIn("grid/host", names["sort"])
        self.assertNotIn("waits", names["other"])

    def test_a_program_that_is_not_built(self):
        self.measure_both()
        os.remove(os.path.join(self.folder, "build/bin/bench/waiting"))
        code, _, err = self.main(*self.words("--waits"))
        self.assertEqual((code, err), (2, "benchmarks/run: the build folder build has no waiting\n"))

    def test_texts_are_the_folder_s(self):
        self.measure_both()
        page = self.write("benchmarks/both/README.md", f"{texts.BEGIN}\n{texts.END}\n")
        code, out, err = self.main("--texts", self.out, "--benchmarks", os.path.join(self.folder, "benchmarks"))
        self.assertEqual((code, out), (0, "1 texts rewritten\n"), err)
        with open(page, encoding="utf-8") as file:
            self.assertIn("| sort | 5,000 |", file.read())


if __name__ == "__main__":
    unittest.main()
