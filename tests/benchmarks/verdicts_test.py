"""Tests of what benchmarks/run says of a result: right, wrong, hangs or failed, and which launch sites were left."""

import os
import re
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from made_up_programs import LEFT, PROGRAM, SITE, STATS, WITH_A_SITE_LEFT, WithPrograms  # noqa: E402
from harness import offered, report, statistics_file, variants  # noqa: E402


class VerdictTest(WithPrograms):
    def test_wrong_preloaded_result(self):
        self.program(**{"grid/device": {"ms": 0.1, "mistake": "cell 7", "good_runs": 8}})
        code, text, content = self.measure()
        self.assertEqual(code, 1)
        self.assertIn("WRONG: fake: preloaded grid/device: wrong (cell 7)", text)
        found = self.variant(content, "grid/device")
        self.assertEqual((found["right"], found["wrong"], found["first_mistake"]), (8, 4, "cell 7"))
        self.assertIsNone(report.time_of(content["rows"][0], "grid/device"))

    def test_preloaded_process_that_hangs(self):
        self.program(**{"grid/host": {"do": "hang"}})
        code, text, _ = self.measure()
        self.assertEqual(code, 1)
        self.assertIn("preloaded grid/host: hangs", text)

    def test_wrong_flat_result(self):
        self.program(flat={"mistake": "cell 7"})
        code, text, _ = self.measure()
        self.assertEqual(code, 1)
        self.assertIn("WRONG: fake: flat: wrong (cell 7)", text)

    def test_library(self):
        self.program(variants=["cdp", "flat", "library"], library={"ms": 1.25})
        code, text, content = self.measure()
        self.assertEqual((code, self.variant(content, "library")["median_ms"]), (0, 1.25))
        self.assertIn("library: faster by", text)

    def test_library_that_is_not_available(self):
        self.program(variants=["cdp", "flat", "library"], library={"start": 4})
        code, text, content = self.measure()
        self.assertEqual((code, self.variant(content, "library")["verdict"]), (0, "not available"))
        self.assertIn("not available", text)

    def test_library_that_fails(self):
        self.program(variants=["cdp", "flat", "library"], library={"start": 3})
        code, text, _ = self.measure()
        self.assertEqual(code, 1)
        self.assertIn("library: failed (exit code 3: cannot be had here)", text)

    def test_aggregated_by_hand(self):
        self.program(variants=["cdp", "flat", "klap"], klap={"ms": 1.25})
        self.program("other")
        code, text, _ = self.measure()
        header, _, *rows = [re.split(r" {2,}", line) for line in text[text.index("row "):].splitlines()[:4]]
        fake, other = (dict(zip(header, row)) for row in rows)
        self.assertEqual((code, header.index("klap")), (0, header.index("flat") + 1))
        self.assertEqual((fake["klap"], fake["time / klap"], fake["time / flat"]), ("1.250", "0.40x", "0.25x"))
        self.assertEqual((other["klap"], other["time / klap"], other["time / flat"]), ("-", "-", "0.25x"))
        self.assertIn("klap: faster by", text)
        self.assertRegex(text, r"preloaded time / klap +0\.40x \(1\)")

    def test_no_column_for_what_no_program_has(self):
        self.program()
        _, text, _ = self.measure()
        self.assertNotIn("klap", text)

    def test_wrong_result_of_aggregation_by_hand(self):
        self.program(variants=["cdp", "flat", "klap"], klap={"mistake": "cell 7"})
        code, text, _ = self.measure()
        self.assertEqual(code, 1)
        self.assertIn("WRONG: fake: klap: wrong (cell 7)", text)

    def test_fallback_is_not_success(self):
        self.program(stats=dict(STATS, launches={"redirected": {}}))
        code, text, _ = self.measure()
        self.assertEqual(code, 1)
        self.assertIn("preloaded grid/host: no launch was redirected", text)

    def test_no_statistics(self):
        self.program(**{"grid/host": {"no_statistics": True}})
        code, text, _ = self.measure()
        self.assertEqual(code, 1)
        self.assertIn("preloaded grid/host: no statistics", text)

    def test_sites_left_need_the_best_limit(self):
        """With a site left, the preloaded program needs a limit that works just as the native one does."""
        self.explain([SITE, LEFT])
        # The made-up program hangs at the default limit however it is started; at another it does not.
        hangs = {"ms": 0.75, "limits": {"2048": {"do": "hang"}}}
        self.program(native=dict(hangs, ms=6), stats=WITH_A_SITE_LEFT, **{"grid/host": hangs, "grid/device": hangs})
        code, text, content = self.measure()
        self.assertEqual(code, 0, text)
        self.assertEqual(self.variant(content, "grid/host")["verdict"], "hangs")
        at_best = self.variant(content, "grid/host at best limit")
        self.assertEqual((at_best["limit"], at_best["median_ms"]), (4096, 0.75))
        self.assertEqual(at_best["sites_left"], {"child-barrier": 1})
        self.assertIn("8.00x", text)
        self.assertIn("1/1 child-barrier", text)

    def test_sites_left_excuse_nothing_where_native_is_right(self):
        self.explain([LEFT])
        self.program(stats=WITH_A_SITE_LEFT, **{"grid/host": {"mistake": "cell 7"}})
        code, text, _ = self.measure()
        self.assertEqual(code, 1)
        self.assertIn("preloaded grid/host: wrong", text)

    def test_no_gpu(self):
        self.program(flat={"start": 3})
        path = os.path.join(self.folder, "build/bin/bench/fake")
        with open(path, encoding="utf-8") as file:
            text = file.read().replace("cannot be had here", "fake: no usable CUDA device: none")
        self.write("build/bin/bench/fake", text, 0o755)
        code, out, err = self.main(*self.words("--all"))
        self.assertEqual((code, out, err.splitlines()[-1]),
                         (77, "", "benchmarks/run: no CUDA GPU: fake: no usable CUDA device: none"))

    def test_answers_that_are_none(self):
        self.program()
        path = "build/bin/bench/fake"
        self.write(path, PROGRAM.replace("{python}", sys.executable).replace("reply(ms=", 'print("oh"); reply(ms='),
                   0o755)
        code, text, _ = self.measure("--all", "--variants", "flat")
        self.assertEqual(code, 1)
        self.assertIn("flat: failed (the answer is not a line of JSON: 'oh')", text)


class SitesTest(unittest.TestCase):
    def test_the_counting_instance_of_a_parent_is_no_second_site(self):
        self.assertEqual(statistics_file.program_sites(STATS["modules"][0]["sites"]), (1, {}))

    def test_two_sites_of_one_parent_are_two(self):
        self.assertEqual(statistics_file.program_sites([SITE, SITE, LEFT, LEFT]), (2, {"child-barrier": 2}))

    def test_settings_without_json(self):
        text = "| `KLAP_GRANULARITY` | x | none \\| warp \\| grid | grid | How |\n| `KLAP_LOG` |  | a | b | c |"
        known = offered.settings_from_text(text)
        self.assertEqual(offered.combinations(known), ([("grid", "host")], ("grid", "host")))

    def test_groups_of_blocks_are_not_measured_for_the_host(self):
        known = {"KLAP_GRANULARITY": {"values": ["none", "grid", "block"], "default": "grid"},
                 "KLAP_LAUNCHER": {"values": ["host", "device"], "default": "host"}}
        self.assertEqual(offered.combinations(known)[0],
                         [("grid", "host"), ("grid", "device"), ("block", "device")])

    def test_reading_back_is_measured_where_it_is_asked_for(self):
        known = {"KLAP_GRANULARITY": {"values": ["grid", "block"], "default": "grid"},
                 "KLAP_LAUNCHER": {"values": ["host", "device", "host-readback"], "default": "host"}}
        self.assertEqual(offered.combinations(known)[0], [("grid", "host"), ("grid", "device"),
                                                          ("grid", "host-readback"), ("block", "device")])
        self.assertFalse(variants.is_wanted("grid/host-readback", []))
        self.assertTrue(variants.is_wanted("grid/host", []))
        self.assertTrue(variants.is_wanted("grid/host-readback", ["grid/*"]))


if __name__ == "__main__":
    unittest.main()
