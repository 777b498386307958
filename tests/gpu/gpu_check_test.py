"""Tests of tools/gpu_check with programs made up for it, so that they need no GPU.

The harness decides what is believed about real hardware; what matters is therefore that it says "wrong" whenever
something is: different output, a fallback that looks like success, a program that never ends, a sanitizer that did
not look.
"""

import json
import os
import runpy
import unittest
from unittest import mock

# It puts the tools on the path.
from gpu_check_fixture import ENTRY, ROOT, SITE, STATS, TOOLS, WithBuild, WithCommand, bench, quiet, write_stats
from gpu_checks import programs, promotion, sanitizer, start_up
from harness import process, statistics_file


class ProgramsTest(WithBuild):
    def check(self, natively, preloaded, entry=None, repeats=2):
        self.program("gpu", "p", natively, preloaded)
        return programs.check(self.where, entry or ENTRY, repeats, quiet)["wrong"]

    def test_right(self):
        same = "echo code 9; echo PASS p"
        self.assertEqual(self.check(same, f"{same}; {write_stats(STATS)}"), [])

    def test_order_of_lines_does_not_matter(self):
        self.assertEqual(self.check("echo a; echo b; echo PASS p",
                                    f"echo b; echo a; echo PASS p; {write_stats(STATS)}"), [])

    def test_other_output(self):
        wrong = self.check("echo code 9; echo PASS p", f"echo code 0; echo PASS p; {write_stats(STATS)}", repeats=1)
        self.assertEqual(len(wrong), 1)
        self.assertIn("natively: 'code 9'; preloaded: 'code 0'", wrong[0])

    def test_fallback_is_not_success(self):
        idle = dict(STATS, launches={"redirected": {"_Z12other_parentPi": 3}})
        wrong = self.check("echo PASS p", f"echo PASS p; {write_stats(idle)}", repeats=1)
        self.assertEqual(wrong, ["preloaded run 1: no launch of parent was redirected"])

    def test_number_of_children(self):
        fewer = dict(STATS, children_aggregated=11)
        wrong = self.check("echo PASS p", f"echo PASS p; {write_stats(fewer)}", repeats=1)
        self.assertEqual(wrong, ["preloaded run 1: 11 children aggregated instead of 12"])

    def test_slices(self):
        entry = dict(ENTRY, sliced=["parent"], settings={"KLAP_POOL_BYTES": "2K"})
        sliced = dict(STATS, launches=dict(STATS["launches"], sliced={"_Z6parentPi": {"launches": 1, "slices": 3}}))
        heard = f"test \"$KLAP_POOL_BYTES\" = 2K && echo PASS p; {write_stats(sliced)}"
        self.assertEqual(self.check("echo PASS p", heard, entry), [])
        wrong = self.check("echo PASS p", f"echo PASS p; {write_stats(STATS)}", entry, repeats=1)
        self.assertEqual(wrong, ["preloaded run 1: no launch of parent ran in slices"])

    def test_arguments(self):
        entry = dict(ENTRY, name="p_twice", program="p", arguments=["2", "times"])
        heard = "test \"$*\" = '2 times' && echo PASS p"
        self.assertEqual(self.check(heard, f"{heard}; {write_stats(STATS)}", entry), [])
        self.assertNotEqual(self.check(heard, f"{heard}; {write_stats(STATS)}", dict(entry, arguments=["2"])), [])

    def test_native_run_that_loses_launches(self):
        entry = dict(ENTRY, loses_launches=True, granularities=["grid"])
        failing = "echo FAIL p: cells; exit 1"
        self.assertEqual(self.check(failing, f"echo PASS p; {write_stats(STATS)}", entry), [])
        by_warp = f"[ \"$KLAP_GRANULARITY\" != warp ] && echo PASS p; {write_stats(STATS)}"
        self.assertEqual(self.check(failing, by_warp, entry), [])
        self.assertNotEqual(self.check(failing, by_warp, dict(entry, granularities=["warp"])), [])

    def test_no_statistics(self):
        wrong = self.check("echo PASS p", "echo PASS p", repeats=1)
        self.assertIn("no statistics", wrong[0])

    def test_failing_program(self):
        wrong = self.check("echo PASS p", "echo FAIL p: cells; exit 1", repeats=1)
        self.assertEqual(wrong, ["preloaded run 1: exit code 1: FAIL p: cells"])

    def test_silent_success_is_none(self):
        self.assertIn("no verdict printed", self.check("echo PASS p", "true", repeats=1)[0])

    def test_hanging_program(self):
        with mock.patch.object(programs, "LIMIT", 0.5):
            wrong = self.check("echo PASS p", "sleep 60", repeats=3)
        self.assertEqual(len(wrong), 1)
        self.assertIn("killed", wrong[0])

    def test_a_program_that_hangs_natively_is_not_run_so(self):
        entry = dict(ENTRY, hangs_natively=True)
        with mock.patch.object(programs, "LIMIT", 5):
            self.assertEqual(self.check("sleep 60", f"echo PASS p; {write_stats(STATS)}", entry, 1), [])

    def test_lines_a_preloaded_run_must_print(self):
        entry = {"name": "p", "compare": False, "preloaded_lines": ["ptx: right"]}
        natively = "echo ptx: refused; echo PASS p"
        self.assertEqual(self.check(natively, f"echo ptx: right; echo PASS p; {write_stats(STATS)}", entry), [])
        wrong = self.check(natively, f"echo ptx: refused; echo PASS p; {write_stats(STATS)}", entry, 1)
        self.assertEqual(wrong, ["preloaded run 1: did not print 'ptx: right'"])

    def test_disabled_must_redirect_nothing(self):
        entry = dict(ENTRY, also_disabled=True)
        wrong = self.check("echo PASS p", f"echo PASS p; {write_stats(STATS)}", entry, 1)
        self.assertEqual(wrong, ["with KLAP_DISABLE=1: launches were redirected although KLAP_DISABLE is set"])

    def test_device_launcher_with_other_output(self):
        wrong = self.check("echo PASS p", f"echo ${{KLAP_LAUNCHER:+code 9}}; echo PASS p; {write_stats(STATS)}",
                           dict(ENTRY, compare=False, preloaded_lines=[""]), 1)
        self.assertEqual(wrong, [f"{way}: did not print ''" for way in
                                 [*(f"{g}, launcher device" for g in programs.GRANULARITIES), "launcher fused"]])

    def test_device_launcher_that_was_not_heard(self):
        deaf = dict(STATS, modules=[{"how": "rewritten", "sites": [dict(SITE, launcher="host")]}])
        wrong = self.check("echo PASS p", f"echo PASS p; {write_stats(deaf)}", repeats=1)
        self.assertEqual(wrong, [f"{g}, launcher device: rewritten for {g}/host" for g in programs.GRANULARITIES])

    def test_kernel_names(self):
        self.assertTrue(statistics_file.is_kernel("_Z6parentPi", "parent"))
        self.assertTrue(statistics_file.is_kernel("parent", "parent"))
        self.assertFalse(statistics_file.is_kernel("_Z13parent_forgetPi", "parent"))


class SanitizerTest(unittest.TestCase):
    def judge(self, text, stats=None, code=0, tool="memcheck"):
        outcome = process.Outcome([], code, text, "")
        return sanitizer.judge(tool, outcome, STATS if stats is None else stats)

    def test_clean(self):
        self.assertEqual(self.judge("========= ERROR SUMMARY: 0 errors\n"), (True, ""))

    def test_findings(self):
        self.assertEqual(self.judge("========= ERROR SUMMARY: 2 errors\n", code=86), (True, "2 findings"))

    def test_hazards(self):
        text = "========= RACECHECK SUMMARY: {} hazard{} displayed ({} errors, 0 warnings)\n"
        self.assertEqual(self.judge(text.format(0, "s", 0), tool="racecheck"), (True, ""))
        self.assertEqual(self.judge(text.format(1, "", 1), code=86, tool="racecheck"), (True, "1 findings"))
        self.assertFalse(self.judge("========= ERROR SUMMARY: 0 errors\n", tool="racecheck")[0])

    def test_racecheck_is_given_no_device_runtime(self):
        where = process.Installation("build")
        for how in ("inside", "outside"):
            with mock.patch.object(sanitizer, "find", lambda: "compute-sanitizer"):
                self.assertEqual("0", sanitizer.start(where, how, "racecheck", ["p"], "s")[1]["KLAP_DEVICE_RUNTIME"])
                self.assertNotIn("KLAP_DEVICE_RUNTIME", sanitizer.start(where, how, "memcheck", ["p"], "s")[1])

    def test_programs_with_nothing_to_rewrite_are_not_checked(self):
        names = {os.path.basename(job.program) for job in sanitizer.benchmark_jobs(process.Installation("build"), ROOT)}
        self.assertLessEqual({"bfs", "qt", "sp", "td"}, names)
        self.assertNotIn("pd", names)

    def test_programs_are_checked_with_their_arguments_and_settings(self):
        jobs = runpy.run_path(os.path.join(TOOLS, "gpu_check"))["sanitizer_jobs"]
        entry = {"name": "p_twice", "program": "p", "arguments": ["2"], "settings": {"A": "b"}, "sanitize": ["memcheck"]}
        where = process.Installation("build")
        self.assertIn(sanitizer.Job("memcheck", where.program("gpu", "p"), ["2"], {"A": "b"}), jobs(where, [entry]))
        more = dict(entry, sanitize_arguments=["allowed"])
        self.assertIn(sanitizer.Job("memcheck", where.program("gpu", "p"), ["2", "allowed"], {"A": "b"}), jobs(where, [more]))

    def test_sanitizer_that_did_not_look(self):
        self.assertFalse(self.judge("PASS p\n")[0])

    def test_library_that_was_not_there(self):
        self.assertFalse(self.judge("========= ERROR SUMMARY: 0 errors\n", stats={"missing": "no file"})[0])


class StartUpTest(unittest.TestCase):
    RUN = {"code": 0, "redirected": 3, "toolchain_calls": {"nvrtc": 0, "nvjitlink": 0}}

    def test_right(self):
        runs = [{"how": "native", "code": 0}, dict(self.RUN, how="cold"), dict(self.RUN, how="warm")]
        self.assertEqual([], start_up.judge(runs, 1.0, 100.0))

    def test_warm_start_that_compiled(self):
        runs = [dict(self.RUN, how="warm", toolchain_calls={"nvrtc": 0, "nvjitlink": 1})]
        self.assertIn("called the toolchain", start_up.judge(runs, 1.0, 100.0)[0])

    def test_no_statistics(self):
        self.assertEqual(1, len(start_up.judge([dict(self.RUN, how="warm", toolchain_calls=None)], 1.0, 100.0)))

    def test_slow_starts(self):
        self.assertEqual(2, len(start_up.judge([], 5.0, 400.0)))


class CommandTest(WithCommand):
    """The command as a whole, on one program."""

    def test_results_are_written(self):
        self.program("gpu", "p", "echo PASS p", f"echo PASS p; {write_stats(STATS)}")
        results = os.path.join(self.where.build, "results")
        code, out = self.run_command("--only", "p", "--out", results, "--commit", "abc")
        self.assertEqual(code, 0, out)
        with open(os.path.join(results, "programs.json"), encoding="utf-8") as file:
            content = json.load(file)
        self.assertEqual(content["commit"], "abc")
        self.assertEqual(len(content["programs"][0]["preloaded"]), 3)

    def test_anything_wrong_fails(self):
        self.program("gpu", "p", "echo PASS p", "echo FAIL p: why; exit 1")
        code, out = self.run_command("--only", "p")
        self.assertEqual(code, 1)
        self.assertIn("FAIL p: why", out)

    def test_what_no_time_was_left_for_fails(self):
        self.program("gpu", "p", "echo PASS p", f"echo PASS p; {write_stats(STATS)}")
        code, out = self.run_command("--only", "p", "--budget", "1")
        self.assertEqual(code, 1)
        self.assertIn("p was not run", out)

    def test_missing_program(self):
        code, out = self.run_command("--one", "p")
        self.assertEqual(code, 1)
        self.assertIn("not built", out)

    def test_one(self):
        self.program("gpu", "p", "echo PASS p", f"echo PASS p; {write_stats(STATS)}")
        self.assertEqual(self.run_command("--one", "p")[0], 0)


class AllSectionsTest(WithCommand):
    """The whole run, and the demonstration, with programs that behave as they should."""

    # Starts what it is given and reports no findings, as compute-sanitizer would.
    SANITIZER = """#!/bin/sh
while [ "$1" != --error-exitcode ]; do shift; done
shift 2
"$@" > /dev/null && echo '========= ERROR SUMMARY: 0 errors
========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)'
"""

    def setUp(self):
        super().setUp()
        right = f"echo PASS p; {write_stats(STATS)}"
        self.program("gpu", "p", "echo PASS p", right)
        for name in ("bfs", "spmv2d", "pagerank", "qt", "sp"):
            self.program("bench", name, bench(3), f"{bench(0.5)}; {write_stats(STATS)}")
        # Of the other benchmark programs nothing is rewritten, in any way.
        for job in sanitizer.benchmark_jobs(self.where, ROOT):
            if not os.path.exists(job.program):
                name = os.path.basename(job.program)
                self.program("bench", name, bench(3), f"{bench(0.5)}; {write_stats(dict(STATS, launches={}))}")
        times = json.dumps({key: 1.0 for key in ("context_ms", "load_ms", "first_launch_ms", "launch_us", "whole_ms")}
                           | {"right": True})
        for name in ("no_launches", "no_launches_rdc"):
            self.program("bench", name, f"echo '{times}'", f"echo '{times}'")
        self.tool = os.path.join(self.where.build, "compute-sanitizer")
        with open(self.tool, "w", encoding="utf-8") as file:
            file.write(self.SANITIZER)
        os.chmod(self.tool, 0o755)

    def test_all_sections(self):
        results = os.path.join(self.where.build, "results")
        # What loading a file that is no library costs says nothing; the time of doing so must not decide the test.
        with mock.patch.object(sanitizer, "find", lambda: self.tool), \
                mock.patch("gpu_checks.no_launches.ALLOWED_MS", 1000):
            code, out = self.run_command("--out", results)
        self.assertEqual(code, 0, out)
        self.assertIn("everything right", out)
        self.assertRegex(out, r"memcheck +bfs +clean +clean +clean +clean +clean +clean")
        self.assertRegex(out, r"memcheck +sssp +left +left +left +left +left")
        self.assertRegex(out, r"racecheck +qt +clean")
        self.assertEqual(sorted(os.listdir(results)),
                         ["no_launches.json", "programs.json", "sanitizer.json", "start.json"])

    def test_demo(self):
        code, out = self.run_command("--demo")
        self.assertEqual(code, 0, out)
        self.assertIn("6.0 times faster", out)
        self.assertIn("parent(int*) launching child(int*): rewritten", out)

    def test_demo_with_wrong_results(self):
        self.program("bench", "bfs", bench(3), f"{bench(0.5, 'distance 7')}; {write_stats(STATS)}")
        code, out = self.run_command("--demo")
        self.assertEqual(code, 1)
        self.assertIn("WRONG: preloaded grid/host: wrong (distance 7)", out)
        self.assertNotIn("times faster", out)

    def test_demo_that_rewrote_nothing(self):
        idle = dict(STATS, modules=[], launches={"redirected": {}})
        self.program("bench", "bfs", bench(3), f"{bench(0.5)}; {write_stats(idle)}")
        code, out = self.run_command("--demo")
        self.assertEqual(code, 1)
        self.assertIn("WRONG: no launch was redirected", out)
        self.assertNotIn("times faster", out)


class PromotionTest(unittest.TestCase):
    """What is believed about a run of a promoted chain."""

    RIGHT = {"wrong": 0, "ms": {"median": 1.0}}

    def judged(self, mode, detail, links=9, result=None, code=0, granularity="promotion"):
        outcome = process.Outcome([], code)
        site = {"granularity": granularity, "detail": detail, "verdict": "rewritten"}
        stats = {"modules": [{"sites": [site, dict(site)]}], "links_promoted": links}
        return promotion.judge(mode, 9, outcome, self.RIGHT if result is None else result, stats)

    def test_right_runs(self):
        self.assertEqual(self.judged("PA", "one link after another, block 64x1x1"), ("PA", []))
        self.assertEqual(self.judged("lookback", "overlapping, block 64x1x1"), ("PAO", []))
        self.assertEqual(self.judged("auto", "look-back, block 64x1x1"), ("lookback", []))
        self.assertEqual(self.judged("P", "one link after another by device launches, block 64x1x1"), ("P", []))
        self.assertEqual(self.judged("PO", "overlapping by device launches, block 64x1x1"), ("PO", []))
        self.assertEqual(self.judged("PO", "one link after another by device launches, block 64x1x1"), ("P", []))

    def test_what_is_wrong(self):
        self.assertTrue(self.judged("PA", "overlapping, block 64x1x1")[1])
        self.assertTrue(self.judged("P", "overlapping by device launches, block 64x1x1")[1])
        self.assertTrue(self.judged("P", "one link after another, block 64x1x1")[1])
        self.assertTrue(self.judged("PA", "one link after another by device launches, block 64x1x1")[1])
        self.assertTrue(self.judged("auto", "overlapping by device launches, block 64x1x1")[1])
        self.assertTrue(self.judged("PA", "one link after another, block", links=8)[1])
        self.assertTrue(self.judged("PA", "one link after another, block", granularity="grid")[1])
        self.assertTrue(self.judged("PA", "one link after another, block", code=1)[1])
        self.assertTrue(self.judged("PA", "one link after another, block", result={"wrong": 1})[1])
        self.assertTrue(self.judged("PA", "one link after another, block", result={})[1])
        self.assertTrue(promotion.judge("PA", 9, process.Outcome([], 0), self.RIGHT, {"missing": "no file"})[1])
        self.assertTrue(promotion.judge("PA", 9, process.Outcome([], -9, timed_out=True), self.RIGHT, {})[1])

    def test_links(self):
        self.assertEqual(promotion.links("8192", 25174016), 3073)
        self.assertEqual(promotion.links("512", 204800), 400)

    def test_long_chains_of_launches_are_run_a_few_times(self):
        for mode in ("P", "PO"):
            self.assertEqual(promotion.repeats_of(mode, 400, 20), 20)
            self.assertEqual(promotion.repeats_of(mode, 3073, 20), 3)
            self.assertEqual(promotion.repeats_of(mode, 3073, 2), 2)
        self.assertEqual(promotion.repeats_of("PAO", 3073, 20), 20)

    def test_racecheck_takes_no_launches(self):
        where = type("Where", (), {"program": staticmethod(lambda folder, name: f"{folder}/{name}")})()
        jobs = promotion.sanitizer_jobs(where, sanitizer.Job)
        modes = {tool: {job.settings["KLAP_PROMOTION"] for job in jobs if job.tool == tool}
                 for tool in ("memcheck", "racecheck")}
        self.assertEqual(modes, {"memcheck": {"P", "PA", "PO", "PAO", "lookback"}, "racecheck": {"PA", "PAO", "lookback"}})


if __name__ == "__main__":
    unittest.main()
