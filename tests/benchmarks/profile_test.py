"""Tests of benchmarks/run --profile: what it makes of what ncu prints."""

import json
import os
import sys
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from made_up_programs import STATS, WithPrograms  # noqa: E402
from harness import kernel_profile  # noqa: E402


# Prints what ncu prints: its own lines, then one line of CSV for each kernel and metric.
NCU = r"""#!/bin/sh
echo "$@" > "$0.words"
echo '==PROF== Connected to process 1'
{then}
echo '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
kernel() {{
  echo "\"$1\",\"expand(int *, int)\",\"smsp__thread_inst_executed_per_inst_executed.ratio\",\"\",\"$2\""
  echo "\"$1\",\"expand(int *, int)\",\"gpu__time_duration.sum\",\"nsecond\",\"$3\""
  echo "\"$1\",\"expand(int *, int)\",\"dram__bytes_read.sum\",\"byte\",\"4,000\""
}}
kernel 0 32 1,000
kernel 1 8 3,000
"""


class ProfileTest(WithPrograms):
    def profile(self, variant, then=""):
        self.program()
        ncu = self.write("tools/ncu", NCU.format(then=then), 0o755)
        with mock.patch.object(kernel_profile, "find", lambda: ncu):
            return self.main(*self.words("--profile", "fake", "--variant", variant))

    def test_launches_of_a_kernel_are_weighted_by_time(self):
        code, out, err = self.profile("flat")
        self.assertEqual(code, 0, err)
        with open(self.out, encoding="utf-8") as file:
            record = json.load(file)
        kernel = record["kernels"][0]
        self.assertEqual((kernel["launches"], kernel["time_us"], kernel["dram_read_bytes"]), (2, 4, 8000))
        self.assertEqual(kernel["warp_execution_efficiency_pct"], (32 * 1 + 8 * 3) / 4 / 32 * 100)
        self.assertEqual((kernel["dram_gb_per_s"], kernel["achieved_occupancy_pct"]), (2, None))
        self.assertIn("expand(int *, int)", out)
        self.assertEqual(record["profiled"], "flat")

    def test_native_profile_is_not_shown_as_preloaded(self):
        code, out, err = self.profile("grid/host")
        self.assertEqual(code, 0, err)
        self.assertIn("NOT a preloaded profile", out)
        with open(self.out, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["profiled"], "native")

    def test_preloaded_profile(self):
        code, out, err = self.profile("grid/host", f"""echo '{json.dumps(STATS)}' > "$KLAP_STATS" """)
        self.assertEqual(code, 0, err)
        self.assertNotIn("NOT", out)

    def test_counters_that_are_not_permitted(self):
        code, out, err = self.profile("native", "echo '==ERROR== ERR_NVGPUCTRPERM'; exit 1")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("administrators only", err)

    def test_no_kernels_and_no_such_variant(self):
        code, _, err = self.profile("native", "echo 'nothing to see' >&2; exit 9")
        self.assertEqual(code, 2)
        self.assertIn("exit code 9", err)
        self.assertIn("there are native, flat, grid/host, grid/device", self.profile("nix")[2])

    def test_missing_ncu(self):
        self.program()
        with mock.patch.object(kernel_profile.shutil, "which", lambda _: None), \
                mock.patch.object(kernel_profile.os, "access", lambda *_: False):
            code, _, err = self.main(*self.words("--profile", "fake"))
        self.assertEqual(code, 2)
        self.assertIn("needs ncu", err)


if __name__ == "__main__":
    unittest.main()
