"""Tests of the tables of floors and costs, from results made up for it.

A floor is a claim about what nobody can beat, and a ratio to it one about what is left to gain. So these tests ask
whether every number follows from what was measured: a consumer counted where there is none, a wrong result with a
ratio, a curve called a line.
"""

import importlib.util
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from made_up_programs import KLAP_PTX, ROOT, WithPrograms  # noqa: E402
from harness import costs, floors, results  # noqa: E402

HEADER = {"device": "made up", "driver": "1", "toolkit": "2", "commit": "abc", "date": "2026-01-01T00:00:00+00:00"}
GRID = {"verdict": "rewritten", "granularity": "grid"}
CHAIN = {"verdict": "rewritten", "granularity": "promotion"}
LEFT = {"verdict": "left", "reason": "child-barrier"}


def a_variant(name, us, kind="preloaded", verdict="right", sites=(GRID,), redirected=20, **more):
    found = {"name": name, "kind": kind, "limit": 2048, "verdict": verdict, "why": "", "first_mistake": "",
             "median_ms": us / 1000, "samples": [], "right": 9, "wrong": 1, **more}
    if kind == "preloaded":
        found |= {"sites": list(sites), "redirected": redirected}
    return found


def flat(us, **description):
    return a_variant("flat", us, "plain", description={"parent_launches": 0, **description})


def a_row(name, *variants, program="fake", breakdown=None, **description):
    found = {"name": name, "paper": "made up", "program": program, "description": description, "best_limit": None,
             "limits": [], "cut_short": "", "explained": {"sites_rewritten": 1, "sites_left": {}},
             "variants": list(variants)}
    return found | ({"breakdown": breakdown} if breakdown else {})


def a_result(*rows, usual="auto/auto"):
    return {"kind": results.KIND, "schema": results.SCHEMA, **HEADER, "settings": {"usual": usual}, "rows": list(rows)}


def cells(table):
    """{row: {heading: cell}}"""
    return {line[0]: dict(zip(table[0][1:], line[1:])) for line in table[1:]}


class FloorTest(unittest.TestCase):
    """43 MB take 10 us; launches take 5.6 us and 3.4 us for each further one."""

    WORK = {"bytes_to_move": 43000000, "kernel_launches": 3, "parent_launches": 2, "fills": 0, "host_reads": 0}

    def floor(self, *variants, **changes):
        content = a_result(a_row("one", *variants, **(self.WORK | changes)))
        return cells(floors.floor_rows(content))["one"]

    def test_every_cell(self):
        found = self.floor(flat(38, kernel_launches=2), a_variant("grid/host", 100), a_variant("auto/auto", 81))
        self.assertEqual(found, {
            "bytes, us": "10.0", "launches, flat": "2", "launches, preloaded": "3 + 2", "floor, flat": "19.0",
            "floor, preloaded": "29.2", "flat, us": "38.0", "grid/host, us": "100", "auto/auto, us": "81.0",
            "flat / floor": "2.00x", "auto/auto / floor": "2.77x"})

    def test_fills_are_launches(self):
        found = self.floor(flat(38, kernel_launches=1, fills=2), a_variant("auto/auto", 81), fills=4)
        self.assertEqual((found["launches, flat"], found["launches, preloaded"]), ("3", "7 + 2"))
        self.assertEqual((found["floor, flat"], found["floor, preloaded"]), ("22.4", "42.8"))

    def test_arithmetic_counts_where_it_takes_longer_than_the_bytes(self):
        for operations, us, floor in ((300000000, "5.00", "29.2"), (1200000000, "20.0", "39.2")):
            with self.subTest(us):
                found = self.floor(a_variant("auto/auto", 81), float_operations=operations)
                self.assertEqual((found["arithmetic, us"], found["floor, preloaded"]), (us, floor))

    def test_only_what_is_aggregated_has_a_consumer(self):
        for sites, launches in (([GRID], "3 + 2"), ([CHAIN], "3"), ([LEFT], "3"), ([CHAIN, LEFT], "3"),
                                ([CHAIN, GRID], "3 + 2"), ([], "3")):
            with self.subTest(sites):
                self.assertEqual(self.floor(a_variant("auto/auto", 81, sites=sites))["launches, preloaded"], launches)

    def test_sites_that_nobody_knows(self):
        unknown = a_variant("auto/auto", 81)
        del unknown["sites"]
        found = self.floor(unknown)
        self.assertEqual((found["launches, preloaded"], found["auto/auto / floor"]), ("-", "-"))

    def test_wrong_results_have_no_ratio(self):
        found = self.floor(flat(38, verdict="right"), a_variant("auto/auto", 81, verdict="wrong"))
        self.assertEqual((found["auto/auto, us"], found["auto/auto / floor"]), ("-", "-"))
        self.assertEqual(found["floor, preloaded"], "29.2")

    def test_programs_that_do_not_say_how_many_kernels_they_launch(self):
        content = a_result(a_row("one", flat(38), a_variant("auto/auto", 81), bytes_to_move=43000000))
        found = cells(floors.floor_rows(content))["one"]
        self.assertEqual((found["launches, flat"], found["launches, preloaded"]), ("-", "at least 2 + 2"))
        self.assertEqual((found["floor, flat"], found["flat / floor"]), ("-", "-"))
        self.assertEqual(found["floor, preloaded"], "25.8")  # 20 were redirected in 10 runs

    def test_at_the_limit_that_the_row_needs(self):
        content = a_result(a_row("one", a_variant("auto/auto", 1, verdict="hangs"),
                                 a_variant("auto/auto at best limit", 292), **self.WORK))
        found = cells(floors.floor_rows(content))["one at best limit"]
        self.assertEqual((found["auto/auto, us"], found["auto/auto / floor"]), ("292", "10.0x"))

    def test_means(self):
        rows = [a_row(name, a_variant("auto/auto", us), **self.WORK) for name, us in (("one", 58.4), ("two", 233.6))]
        wrong = a_row("three", a_variant("auto/auto", 1, verdict="wrong"), **self.WORK)
        found = cells(floors.floor_rows(a_result(*rows, wrong)))["geometric mean (rows)"]
        self.assertEqual((found["flat / floor"], found["auto/auto / floor"]), ("-", "4.00x (2)"))

    def test_one_choice_is_no_two_columns(self):
        content = a_result(a_row("one", a_variant("grid/host", 81), **self.WORK), usual="grid/host")
        self.assertEqual([name for name in floors.floor_rows(content)[0] if name.endswith(", us")],
                         ["bytes, us", "flat, us", "grid/host, us"])


class RestTest(unittest.TestCase):
    BREAKDOWN = {"verdict": "right", "runs": 5, "run_ms": [9.0, 0.1, 0.1, 0.1, 0.1],
                 "gpu_ms": {"parents": {"a": 0.1, "b": 0.05}, "consumers": {"a": 0.2}, "launches": {"a": 5}}}

    def row(self, *variants, **more):
        return a_row("one", flat(38, kernel_launches=2), a_variant("grid/host", 80), a_variant("auto/auto", 81),
                     *variants, **(FloorTest.WORK | more))

    def test_every_cell(self):
        more = [a_variant("grid/host without flatten", 95), a_variant("grid/host without dependent_launch", 79.5)]
        content = a_result(self.row(*more, breakdown=self.BREAKDOWN))
        self.assertEqual(cells(floors.rest_rows(content))["one"], {
            "auto/auto over its floor": "51.8", "flat over its floor": "19.0", "auto/auto over flat": "43.0",
            "of these, floor of more launches": "10.2", "parents": "30.0", "consumers": "40.0", "outside": "30.0",
            "without flatten": "15.0", "without dependent_launch": "-0.50"})

    def test_what_was_not_measured_right_is_left_out(self):
        wrong = a_variant("grid/host without flatten", 95, verdict="wrong")
        content = a_result(self.row(wrong, breakdown=self.BREAKDOWN | {"verdict": "wrong"}))
        self.assertEqual(set(floors.rest_rows(content)[0]) & {"parents", "without flatten", "host reads"}, set())

    def test_host_reads_are_worth_what_they_are_in_the_same_file(self):
        def micro(name, us, **said):
            return a_row(name, flat(us), program="micro", children=0, parents=1, **said)

        rows = [self.row(host_reads=3), micro("micro-none-1", 6, rounds=1, host_reads=0),
                micro("micro-rounds-11", 36, rounds=11, host_reads=0),
                micro("micro-reads-11", 91, rounds=11, host_reads=11)]
        content = a_result(*rows)
        self.assertEqual(floors.launch_costs(content), {"first": 6, "next": 3, "read": 5})
        self.assertEqual(cells(floors.rest_rows(content))["one"]["host reads"], "15.0")
        self.assertIn("an empty kernel 6.00 us, each further kernel behind it 3.00 us, a host's read behind each 5.00",
                      floors.text_of(content))
        self.assertNotIn("read", floors.launch_costs(a_result(*rows[:3])))
        self.assertEqual(floors.launch_costs(a_result(rows[0], *rows[2:])), {"read": 5})

    def test_parents_that_did_not_run_rewritten(self):
        self.assertEqual(floors.differing_parents(a_result(self.row())), [])
        content = a_result(a_row("one", a_variant("auto/auto", 81, redirected=15), **FloorTest.WORK))
        self.assertEqual(floors.differing_parents(content), ["one auto/auto 1.5 of 2"])
        self.assertIn("one auto/auto 1.5 of 2", floors.text_of(content))


def a_child_row(name, children, us, blocks=1, parents_us=None, consumers_us=None, **more):
    breakdown = None
    if parents_us is not None:
        breakdown = {"verdict": "right", "runs": 2, "run_ms": [1, 1],
                     "gpu_ms": {"parents": {"a": 2 * parents_us / 1000}, "consumers": {"a": 2 * consumers_us / 1000}}}
    return a_row(name, flat(us / 2), a_variant("auto/auto", us, **more), program="micro", breakdown=breakdown,
                 children=children, parents=max(children, 1), blocks=blocks, rounds=1, host_reads=0)


class CostsTest(unittest.TestCase):
    def line(self, *units, ns=2.0, start=10.0, name="children"):
        """Rows on a straight line, the largest first: the order in a file says nothing."""
        return [a_child_row(f"micro-{name}-{n}", n, start + ns * n / 1000, parents_us=5 + 0.5 * n / 1000,
                            consumers_us=4 + 1.5 * n / 1000) for n in sorted(units, reverse=True)]

    def test_a_line_is_found(self):
        series = costs.Series(a_result(*self.line(1000, 10000, 100000, 1000000, 10000000)), "children")
        slope, start = series.line
        self.assertAlmostEqual(slope * 1e6, 2)
        self.assertAlmostEqual(start * 1e3, 10)
        self.assertAlmostEqual(series.slope_of("parents"), 0.5)
        self.assertAlmostEqual(series.slope_of("consumers"), 1.5)
        self.assertAlmostEqual(series.off_the_line(), 0)
        self.assertEqual(series.text(),
                         "2 ns each and 10.0 us for none, at most 0 % off that line from 1% of the most on")

    def test_a_curve_is_off_the_line(self):
        rows = self.line(1000, 10000, 100000, 1000000) + [a_child_row("micro-children-10m", 10000000, 40010)]
        series = costs.Series(a_result(*rows), "children")
        self.assertGreater(series.off_the_line(), 0.2)
        # What few children are off is the launches'; it is in the time for none.
        rows = self.line(100000, 1000000, 10000000) + [a_child_row("micro-children-1k", 1000, 30)]
        self.assertLess(costs.Series(a_result(*rows), "children").off_the_line(), 0.1)

    def test_few_children_count_as_much_as_many(self):
        points = [(1000, 0.012), (1000000, 2.010), (10000000, 22.010)]  # the last is a tenth over the others' line
        slope, start = costs.line_through(points)
        self.assertLess(abs((slope * 1000 + start) / 0.012 - 1), 0.02)

    def test_wrong_results_are_no_points(self):
        rows = self.line(1000, 10000) + [a_child_row("micro-children-100k", 100000, 1, verdict="wrong")]
        series = costs.Series(a_result(*rows), "children")
        self.assertEqual([units for units, _ in series.points], [1000, 10000])
        self.assertIsNone(costs.Series(a_result(*rows[1:]), "children").line)

    def test_table(self):
        rows = self.line(1000, 10000)
        rows[0]["variants"][1]["slices"] = 3
        content = a_result(*rows)
        found = cells(costs.series_rows(costs.Series(content, "children"), content))
        self.assertEqual(found["10,000"], {
            "flat, us": "15", "auto/auto, us": "30", "ns each": "3", "to the row before": "0.25x",
            "ns for each more": "2", "parents, ns each": "1", "consumers, ns each": "1.9", "slices": "3"})
        self.assertEqual((found["1,000"]["to the row before"], found["1,000"]["slices"]), ("-", "1"))

    def test_blocks_are_counted_over_all_children(self):
        rows = [a_child_row(f"micro-blocks-{n}", 1000, 20 + n, blocks=n) for n in (1, 10, 100)]
        slope, start = costs.Series(a_result(*rows), "blocks").line
        self.assertAlmostEqual(slope * 1e6, 1)
        self.assertAlmostEqual(start * 1e3, 20)

    def test_the_four_costs(self):
        blocks = [a_child_row(f"micro-blocks-{n}", 1000, 20 + n, blocks=n) for n in (1, 10)]
        nothing = a_child_row("micro-none-64k", 0, 14)
        text = costs.text_of(a_result(nothing, *blocks, *self.line(1000, 10000), a_row("other", program="fake")))
        for line in ("a record: 0.5 ns (the parents' own time)",
                     "a child of one thread: 2 ns each and 10.0 us for none",
                     "a child of a warp: not measured", "a virtual block: 1 ns each and 20.0 us for none",
                     "an empty consumer: 7.00 us (a parent of one thread; without the launch 7.00 us)"):
            self.assertIn(line, text)

    def test_empty_consumers_one_after_another(self):
        row = a_row("micro-rounds-4", flat(16), a_variant("auto/auto", 36), program="micro", children=0, parents=1,
                    rounds=4, host_reads=0)
        self.assertIn("an empty consumer: 5.00 us (a parent of one thread, 4 launches of it one after another; without "
                      "the launch 4.00 us)", costs.text_of(a_result(row)))

    def test_nothing_measured(self):
        self.assertIn("no rows of benchmarks/micro", costs.text_of(a_result(a_row("other"))))
        text = costs.text_of(a_result(a_child_row("micro-none-64k", 0, 14, verdict="wrong")))
        self.assertIn("an empty consumer: not measured", text)


class CommandTest(WithPrograms):
    def file(self, name, content):
        return self.write(name, json.dumps(content))

    def test_floors_of_several_files(self):
        files = [self.file(f"{name}.json", a_result(a_row(name, a_variant("auto/auto", 81), **FloorTest.WORK)))
                 for name in ("one", "two")]
        code, out, _ = self.main("--floors", *files)
        self.assertEqual((code, out.count("made up, driver 1")), (0, 2))
        self.assertIn("3 + 2", out)
        code, out, _ = self.main("--floors", files[0], "--markdown")
        self.assertEqual(code, 0)
        self.assertIn("| one | 10.0 | - | 3 + 2 | - | 29.2 | - | - | 81.0 | - | 2.77x |", out)
        self.assertEqual(self.main("--floors", self.write("bad.json", "{"))[0], 2)
        self.assertEqual(self.main("--floors", self.file("none.json", a_result()))[0], 0)

    def test_costs(self):
        path = self.file("one.json", a_result(a_child_row("micro-none-64k", 0, 14)))
        code, out, _ = self.main("--costs", path)
        self.assertEqual(code, 0)
        self.assertIn("an empty consumer: 7.00 us", out)

    def test_figure(self):
        if importlib.util.find_spec("matplotlib") is None:
            self.skipTest("no matplotlib")
        rows = [a_child_row(f"micro-{name}-{n}", n, 10 + n / 500)
                for name in ("children", "warps") for n in (1000, 10000)]
        rows[1]["variants"][1]["slices"] = 2
        folder = os.path.join(self.folder, "figures")
        code, out, err = self.main("--figures", folder, self.file("one.json", a_result(*rows)))
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(os.listdir(folder)), ["costs.png", "costs.svg"])
        self.assertIn("speed-up", out)

    def test_rows_without_a_limit_that_is_large_enough(self):
        """Not natively, whatever is asked for; and the library's kernels are measured nevertheless."""
        timing = {"variable": "KLAP_TIMING", "values": "0 | 1", "default": "0"}
        self.write("build/bin/klap-ptx", KLAP_PTX.replace('"host"}]', '"host"}, ' + json.dumps(timing) + "]"), 0o755)
        self.program()
        path = os.path.join(self.folder, "benchmarks/fake/rows.json")
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
        rows["rows"][0]["native"] = False
        self.write(path, json.dumps(rows))
        code, text, content = self.measure("--all", "--variants", "native,native best,flat,grid/host")
        self.assertEqual(code, 0, text)
        row = content["rows"][0]
        self.assertEqual([v["name"] for v in row["variants"]], ["flat", "grid/host"])
        self.assertEqual((row["limits"], row["best_limit"], row["breakdown"]["runs"]), ([], None, 5))
        # What the row says of itself is what it is with launches.
        self.assertEqual(row["description"]["variant"], "grid/host")

    def test_slices_are_kept(self):
        sliced = {"expand": {"launches": 2, "slices": 5}, "other": {"launches": 4, "slices": 8}}
        self.program(stats={"modules": [], "launches": {"redirected": {"expand": 3}, "sliced": sliced}})
        _, _, content = self.measure()
        self.assertEqual(self.variant(content, "grid/host")["slices"], 2.5)

    def test_micro_costs(self):
        self.program("micro-none-1", **{"auto/auto": {}})
        self.write("build/bin/klap-ptx", KLAP_PTX.replace('"default": "grid"', '"default": "auto"')
                   .replace('"default": "host"', '"default": "auto"'), 0o755)
        words = [sys.executable, os.path.join(ROOT, "benchmarks", "micro_costs"), *self.words()]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        content = results.read(self.out)
        self.assertEqual({v["name"] for v in content["rows"][0]["variants"]},
                         {"native", "flat", "grid/host", "auto/auto"})
        self.assertIn("no rows of benchmarks/micro", done.stdout.split("written to")[1])


if __name__ == "__main__":
    unittest.main()
