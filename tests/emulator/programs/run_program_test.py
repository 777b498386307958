"""Tests of what run_program.py believes, with made-up runs: it must find something wrong whenever something is."""

import argparse
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import run_program  # noqa: E402
from harness import process  # noqa: E402


def outcome(code=0, **result):
    result = {"right": 1, "wrong": 0, "lost_launches": 0, **result}
    return process.Outcome(["program"], code, "some line\n" + json.dumps({"result": result}) + "\n")


def stats(verdict="rewritten", launcher="host", redirected=1, reason=None, granularity="grid"):
    site = {"parent": "_Z6parentPi", "verdict": verdict, "launcher": launcher, "reason": reason,
            "granularity": granularity}
    return {"modules": [{"sites": [site]}], "launches": {"redirected": {"_Z6parentPi": redirected}}}


class JudgeResult(unittest.TestCase):
    def test_right(self):
        self.assertEqual(run_program.judge_result(outcome()), [])

    def test_wrong_results(self):
        wrong = run_program.judge_result(outcome(1, right=0, wrong=1, first_mistake="vertex 3"))
        self.assertIn("vertex 3", wrong[0])

    def test_nothing_compared(self):
        self.assertTrue(run_program.judge_result(outcome(right=0)))

    def test_lost_launches(self):
        self.assertEqual(run_program.judge_result(outcome(lost_launches=4)), ["4 launches lost"])

    def test_ends_with_an_error(self):
        run = process.Outcome(["program"], 3, "", "cudaMalloc failed\n")
        self.assertEqual(run_program.judge_result(run), ["exit code 3: cudaMalloc failed"])

    def test_killed(self):
        run = process.Outcome(["program"], -9, outcome().out, "", 120, True)
        self.assertTrue(run_program.judge_result(run))

    def test_prints_no_result(self):
        self.assertTrue(run_program.judge_result(process.Outcome(["program"], 0, "fine\n")))


class JudgeLaunches(unittest.TestCase):
    @staticmethod
    def said(kernels=3, parents=2, counted=3):
        report = {"parent_launches": parents, "result": {"host_launches": counted}}
        if kernels is not None:
            report["kernel_launches"] = kernels
        return process.Outcome(["program"], 0, json.dumps(report) + "\n")

    def test_kernels(self):
        self.assertEqual(run_program.judge_kernels(self.said(), {}), [])
        self.assertEqual(run_program.judge_kernels(self.said(kernels=None), {}), [])  # a library's
        for counted in (2, 4, None):
            with self.subTest(counted):
                self.assertTrue(run_program.judge_kernels(self.said(counted=counted), {}))

    def test_fewer_kernels(self):
        case = {"fewer_launches": True}
        self.assertEqual(run_program.judge_kernels(self.said(counted=2), case), [])
        self.assertTrue(run_program.judge_kernels(self.said(counted=4), case))

    def test_parents(self):
        def judge(redirected, left=(), sites=("parent<false>",), **case):
            stats = {"launches": {"redirected": redirected, "left": dict(left)}}
            expected = {"redirected": sites, "left_where_it_counts": case.pop("left_where_it_counts", False)}
            return run_program.judge_parents(self.said(), stats, {"expected": expected, **case})

        self.assertEqual(judge({}, sites=()), [])  # all sites are left
        self.assertTrue(judge({}))
        self.assertEqual(judge({"parent<false>": 2, "parent<true>": 2}), [])
        self.assertTrue(judge({"parent<false>": 2, "parent<true>": 1}))
        self.assertEqual(judge({"parent<false>": 1}, left={"parent<false>": 3}), [])
        self.assertEqual(judge({"parent<false>": 1, "parent<true>": 2}, fewer_launches=True), [])
        self.assertEqual(judge({"parent<false>": 2}, left_where_it_counts=True), [])
        self.assertTrue(judge({"parent<false>": 1}, left_where_it_counts=True))


class KeptOutcome(unittest.TestCase):
    def test_what_went_well_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kept", "one")
            self.assertIsNone(run_program.kept_outcome(path))
            for wrong in (process.Outcome(["program"], 1), process.Outcome(["program"], 0, timed_out=True)):
                run_program.keep_outcome(path, wrong)
                self.assertIsNone(run_program.kept_outcome(path))
            right = process.Outcome(["program"], 0, "PASS\n", "said\n", 1.5)
            run_program.keep_outcome(path, right)
            self.assertEqual(run_program.kept_outcome(path), right)


class ChosenSeeds(unittest.TestCase):
    @staticmethod
    def chosen(seeds, rotate=None, no_plain_run=False, **case):
        options = argparse.Namespace(seeds=seeds, rotate=rotate, first_seed=0, no_plain_run=no_plain_run)
        return list(run_program.chosen_seeds(options, case))

    def test_one_after_another(self):
        self.assertEqual(self.chosen(3), [0, 1, 2])

    def test_no_more_than_the_case_wants(self):
        self.assertEqual(self.chosen(20, most_seeds=1), [0])
        self.assertEqual(self.chosen(20, 5, most_seeds=2), [0, 6])

    def test_each_number_begins_elsewhere(self):
        self.assertEqual(self.chosen(3, 13), [0, 14, 1])
        self.assertEqual({seed for i in range(14) for seed in self.chosen(2, i)}, set(range(15)))

    def test_without_the_plain_run(self):
        self.assertEqual(self.chosen(1, 5, no_plain_run=True), [6])
        self.assertEqual(self.chosen(1, 5, no_plain_run=True, most_seeds=1), [0])
        self.assertEqual({seed for i in range(14) for seed in self.chosen(1, i, no_plain_run=True)}, set(range(1, 15)))

    def test_never_one_twice(self):
        self.assertEqual(len(set(self.chosen(20, 7))), 20)


class JudgeSites(unittest.TestCase):
    def test_as_expected(self):
        self.assertEqual(run_program.judge_sites({"sites": 1, "redirected": ["parent"]}, "host", stats()), [])

    def test_no_statistics(self):
        self.assertTrue(run_program.judge_sites({}, "host", {"missing": "no such file"}))

    def test_not_redirected(self):
        self.assertTrue(run_program.judge_sites({"redirected": ["parent"]}, "host", stats(redirected=0)))

    def test_slices(self):
        whole, sliced = stats(), stats()
        sliced["launches"]["sliced"] = {"_Z6parentPi": {"launches": 1, "slices": 3}}
        self.assertTrue(run_program.judge_sites({"redirected": [], "sliced": ["parent"]}, "host", whole))
        self.assertEqual(run_program.judge_sites({"redirected": [], "sliced": ["parent"]}, "host", sliced), [])

    def test_other_launcher(self):
        self.assertTrue(run_program.judge_sites({}, "device", stats(launcher="host")))

    def test_groups(self):
        self.assertEqual(run_program.judge_sites({}, "block", stats(launcher="device", granularity="block")), [])

    def test_other_granularity(self):
        self.assertTrue(run_program.judge_sites({}, "multiblock", stats(launcher="device", granularity="block")))

    def test_other_number_of_sites(self):
        self.assertTrue(run_program.judge_sites({"sites": 2}, "host", stats()))

    def test_left_for_another_reason(self):
        expected = {"left": {"parent": "child-barrier"}}
        left = stats("left", reason="site-in-loop")
        self.assertTrue(run_program.judge_sites(expected, "host", left))
        left = stats("left", reason="child-barrier")
        self.assertEqual(run_program.judge_sites(expected, "host", left), [])

    def test_rewritten_although_it_must_be_left(self):
        self.assertTrue(run_program.judge_sites({"left": {"parent": "child-barrier"}}, "host", stats()))


class Seeds(unittest.TestCase):
    def test_all_schedules_with_weak_memory(self):
        settings = [run_program.emulator_settings(seed) for seed in range(1, 8)]
        self.assertEqual(len({s["KLAP_EMULATOR_SCHEDULE"] for s in settings}), len(run_program.SCHEDULES))
        self.assertEqual({s["KLAP_EMULATOR_WEAK_MEMORY"] for s in settings}, {"1"})

    def test_every_case_has_expectations(self):
        for case in run_program.read_json(run_program.HERE, "cases.json")["cases"]:
            self.assertTrue(run_program.case_named(case["name"])["expected"])


if __name__ == "__main__":
    unittest.main()
