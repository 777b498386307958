"""Tests of benchmarks/run with programs made up for it, so that they need no GPU.

What it prints is what the project claims about itself. So these tests ask above all whether anything but the truth
could be printed: a limit that lost launches taken for a working one, a program that hung left out of the account, a
wrong result that gets a ratio, files of different machines mixed.
"""

import contextlib
import importlib.util
import io
import json
import lzma
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))

from harness import (command, figures, kernel_profile, limits, offered, report, results, rows,  # noqa: E402
                     statistics_file, texts, variants)

# A program that speaks the --serve protocol and behaves as the file beside it says. What it is told it appends to a
# log, one line for a command with the name of the variant it is run as.
PROGRAM = r"""#!{python} -SE
import json, os, sys, time
me = os.path.abspath(__file__)
plan = json.load(open(me + ".json"))
words = sys.argv[1:]
if "--help" in words:
    print("  --variant " + "|".join(plan.get("variants", ["cdp", "flat"])) + " what\n  --serve\n  --input-cache TEXT")
    sys.exit(0)
option = lambda name, usual: words[words.index(name) + 1] if name in words else usual
limit = int(option("--pending-limit", "2048"))
name = option("--variant", "native")
if "LD_PRELOAD" in os.environ:
    name = os.environ["KLAP_GRANULARITY"] + "/" + os.environ["KLAP_LAUNCHER"]
def log(text):
    with open(os.path.join(os.path.dirname(me), "log.txt"), "a") as file:
        file.write(f"{name} {os.getpid()} {text}\n")
def reply(**answer):
    print(json.dumps(answer), flush=True)
def do(what):
    if what == "hang":
        time.sleep(100)
    if what == "crash":
        os.kill(os.getpid(), 11)
part = plan.get(name, {})
log(f"start {limit}")
if part.get("start"):
    if isinstance(part["start"], int):
        print("cannot be had here", file=sys.stderr)
        sys.exit(part["start"])
    do(part["start"])
reply(program="fake", variant=name, child_launches=5000 if name == "native" else 0, bytes_to_move=4000000)
runs = 0
for line in sys.stdin:
    line = line.strip()
    if line == "quit":
        break
    log(line + (f" {limit}" if name == "native" else ""))
    now = dict(part, **part.get("limits", {}).get(str(limit), {}))
    if line.startswith("limit "):
        limit = int(line[6:])
        reply(limit=limit)
    elif line == "lost":
        reply(lost_launches=now.get("lost", 0))
    elif line == "run":
        runs += 1
        if runs > now.get("good_runs", 0):
            do(now.get("do"))
        mistake = now.get("mistake", "") if runs > now.get("good_runs", 0) else ""
        reply(ms=now.get("ms", 1.0), mistake=mistake)
if "KLAP_STATS" in os.environ and not part.get("no_statistics"):
    json.dump(part.get("stats", plan["stats"]), open(os.environ["KLAP_STATS"], "w"))
"""

KLAP_PTX = r"""#!/bin/sh
case "$1" in
  settings) echo '[{"variable": "KLAP_GRANULARITY", "values": "none | grid", "default": "grid"},
                   {"variable": "KLAP_LAUNCHER", "values": "host | device", "default": "host"}]' ;;
  explain) cat "$0.explain.json" ;;
esac
"""

SITE = {"parent_demangled": "void expand<false>(int*)", "child_demangled": "visit(int*)", "verdict": "rewritten",
        "granularity": "grid", "launcher": "host"}
LEFT = {"parent_demangled": "other(int*)", "child_demangled": "visit(int*)", "verdict": "left",
        "reason": "child-barrier"}
STATS = {"modules": [{"sites": [SITE, dict(SITE, parent_demangled="void expand<true>(int*)")]}],
         "launches": {"redirected": {"expand": 3}}}
WITH_A_SITE_LEFT = {"modules": [{"sites": [SITE, LEFT]}], "launches": {"redirected": {"expand": 3}}}

# 2,048 loses launches, 4,096 is wrong, 8,192 hangs, 16,384 works and 32,768 is faster, 65,536 is not.
HARD = {"2048": {"ms": 1, "lost": 7}, "4096": {"ms": 1, "mistake": "distance 3 is 5, not 4"}, "8192": {"do": "hang"},
        "16384": {"ms": 8}, "32768": {"ms": 6}, "65536": {"ms": 6.5}, "131072": {"ms": 1}}
EASY = {"ms": 6}


class WithPrograms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.out = os.path.join(self.folder, "out.json")
        for cached in (offered.help_of, offered.sites_of):
            cached.cache_clear()
        self.write("build/lib/libklap_jit.so", "not a library: the dynamic linker warns and goes on\n")
        self.write("build/bin/klap-ptx", KLAP_PTX, 0o755)
        self.explain([])

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def explain(self, sites):
        self.write("build/bin/klap-ptx.explain.json", json.dumps({"sites": sites}))

    def program(self, name="fake", paper="KLAP", **plan):
        plan.setdefault("native", EASY)
        plan.setdefault("flat", {"ms": 2})
        plan.setdefault("grid/host", {"ms": 0.5})
        plan.setdefault("grid/device", {"ms": 1.5})
        plan.setdefault("stats", STATS)
        self.write(f"build/bin/bench/{name}", PROGRAM.replace("{python}", sys.executable), 0o755)
        self.write(f"build/bin/bench/{name}.json", json.dumps(plan))
        entry = {"rows": [{"paper": paper, "name": name, "arguments": [], "quick": True}]}
        self.write(f"benchmarks/{name}/rows.json", json.dumps(entry))

    def words(self, *arguments):
        return ["--assume-gpu", "--no-build", "--build", os.path.join(self.folder, "build"), "--benchmarks",
                os.path.join(self.folder, "benchmarks"), "--out", self.out, "--commit", "abc", "--reps", "5",
                "--timeout", "0.4", *arguments]

    def main(self, *arguments):
        """(exit code, standard output, standard error)."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main(list(arguments))
        return code, out.getvalue(), err.getvalue()

    def measure(self, *arguments):
        """(exit code, what was printed, the result file's content)."""
        code, out, err = self.main(*self.words(*(arguments or ["--all"])))
        self.assertTrue(os.path.exists(self.out), out + err)
        return code, out + err, results.read(self.out)

    def log(self):
        with open(os.path.join(self.folder, "build/bin/bench/log.txt"), encoding="utf-8") as file:
            return [line.split(" ", 2) for line in file.read().splitlines()]

    def pids(self):
        """Every process that was started."""
        return {int(pid) for _, pid, _ in self.log()}

    def gone(self, pids):
        """Whether none of the processes is there after a short while."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and any(os.path.exists(f"/proc/{pid}") for pid in pids):
            time.sleep(0.02)
        return not any(os.path.exists(f"/proc/{pid}") for pid in pids)

    def variant(self, content, name, row=0):
        return next(v for v in content["rows"][row]["variants"] if v["name"] == name)


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
        _, text, content = self.measure("--all", "--row-seconds", "0.01")
        row = content["rows"][0]
        self.assertIn("1 of 5 repetitions", row["cut_short"])
        self.assertEqual([v["repetitions"] for v in row["variants"]], [1, 1, 1, 1])
        self.assertIn("cut short", text)

    def test_only_some_variants(self):
        self.program(native={"limits": HARD})
        _, _, content = self.measure("--all", "--variants", "native best, none")
        self.assertEqual([v["name"] for v in content["rows"][0]["variants"]], ["native", "none", "native best"])


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


class FilesTest(WithPrograms):
    """Parts, merging, comparing, and files that cannot be used."""

    def measured(self, name, **plan):
        """A result file of one row called `name`."""
        for old in ("benchmarks", "build/bin/bench"):
            subprocess.run(["rm", "-rf", os.path.join(self.folder, old)], check=True)
        offered.help_of.cache_clear()
        self.program(name, **plan)
        path = os.path.join(self.folder, f"{name}.json")
        os.environ.pop("KLAP_STATS", None)
        self.assertEqual(self.main(*self.words("--all", "--out", path))[0], 0)
        return path

    def changed(self, path, new, **changes):
        with open(path, encoding="utf-8") as file:
            content = dict(json.load(file), **changes)
        return self.write(new, json.dumps(content))

    def test_merge(self):
        one, two = self.measured("one"), self.measured("two", paper="Wu", **{"grid/host": {"ms": 1.5}})
        code, out, err = self.main("--merge", self.out, one, two)
        self.assertEqual((code, out), (0, "2 rows of 2 files\n"), err)
        code, out, _ = self.main("--table", self.out)
        self.assertEqual(code, 0)
        means = next(line for line in out.splitlines() if line.startswith("preloaded: faster by"))
        self.assertEqual(means.split()[3:], ["12.0x", "(1)", "4.00x", "(1)", "6.93x", "(2)"])
        code, out, _ = self.main("--table", self.out, "--markdown")
        self.assertIn("| one | 5000 |", out)

    def test_merge_refuses(self):
        one = self.measured("one")
        self.assertIn("the row one is in one.json and in one.json", self.main("--merge", self.out, one, one)[2])
        for key in ("device", "driver", "toolkit", "commit"):
            other = self.changed(one, "other.json", rows=[], **{key: "another"})
            code, _, err = self.main("--merge", self.out, one, other)
            self.assertEqual(code, 2)
            self.assertIn(f"other.json does not belong to one.json: {key} 'another'", err)
        self.assertFalse(os.path.exists(self.out))

    def test_compare(self):
        before = self.measured("one")
        os.rename(before, before := os.path.join(self.folder, "before.json"))
        after = self.measured("one", **{"grid/host": {"ms": 0.55}})
        code, out, _ = self.main("--compare", before, after)
        self.assertEqual(code, 0)
        self.assertIn("1 differ by more than 5%:\n  one grid/host: 1.100", out)
        self.assertEqual(next(line for line in out.splitlines() if line.startswith("geometric")).split(),
                         ["geometric", "mean", "1.000", "1.000", "1.000", "1.100", "1.000"])
        self.assertIn("all agree within 5%", self.main("--compare", before, before)[1])

    def test_damaged_files(self):
        good = self.measured("one")
        with open(good, encoding="utf-8") as file:
            content = json.load(file)
        del content["rows"][0]["variants"][0]["samples"]
        cases = [("{", "is damaged"), ("[]", "not a result file"), ('{"kind": "x"}', "not a result file"),
                 (json.dumps(dict(content, schema=99)), "schema 99"),
                 (json.dumps(content), "row one has no samples"),
                 (json.dumps(dict(content, rows=[3])), "is damaged"),
                 (json.dumps(dict(content, driver=1)), "is damaged")]
        for text, message in cases:
            path = self.write("bad.json", text)
            for words in (["--table", path], ["--compare", good, path], ["--merge", self.out, good, path]):
                code, _, err = self.main(*words)
                self.assertEqual(code, 2, words)
                self.assertIn(message, err)
                self.assertIn("bad.json", err)
        self.assertEqual(self.main("--table", os.path.join(self.folder, "none.json"))[0], 2)

    def test_compressed_files(self):
        plain = self.measured("one")
        with open(plain, "rb") as file:
            whole = lzma.compress(file.read())
        path = os.path.join(self.folder, "one.json.xz")
        for content, wanted in ((whole, 0), (whole[:-40], 2), (b"no xz", 2), (b"", 2)):
            with open(path, "wb") as file:
                file.write(content)
            code, out, err = self.main("--table", path)
            self.assertEqual(code, wanted, err)
            if wanted:
                self.assertIn("one.json.xz is damaged", err)
            else:
                self.assertEqual(out, self.main("--table", plain)[1])

    def test_result_file_names_no_place_on_this_machine(self):
        with open(self.measured("one"), encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn(self.folder, text)
        self.assertNotIn(ROOT, text)


class TextsTest(WithPrograms):
    README = "# fake\n\nText.\n\n{}\nold\n{}\nafter\n"

    def measured(self, readme):
        self.program(native={"limits": HARD})
        self.measure()
        return self.write("benchmarks/fake/README.md", readme)

    def texts(self):
        return self.main("--texts", self.out, "--benchmarks", os.path.join(self.folder, "benchmarks"))

    def test_block_is_rewritten(self):
        path = self.measured(self.README.format(texts.BEGIN, texts.END))
        for _ in range(2):  # the second time changes nothing more
            self.assertEqual(self.texts()[0], 0)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            self.assertTrue(text.startswith(f"# fake\n\nText.\n\n{texts.BEGIN}\nMedians in ms on assumed"), text)
            # 4 MB take 1 us, flat 2 ms and preloaded 0.5 ms.
            self.assertIn("| fake | 5,000 | 1.00 | 6.000 (limit 32,768) | 2.000 | 0.5000 | 2000x | 500x |", text)
            self.assertTrue(text.endswith(f"{texts.END}\nafter\n"))
            self.assertNotIn("old", text)

    def test_missing_block(self):
        path = self.measured("# fake\n")
        code, _, err = self.texts()
        self.assertEqual(code, 2)
        self.assertIn("fake/README.md: the lines around the measured table are missing", err)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "# fake\n")


class FiguresTest(WithPrograms):
    TIMING = {"variable": "KLAP_TIMING", "values": "0 | 1", "default": "0"}

    def test_kernel_times_are_taken_apart_from_the_others(self):
        """One more process for them, which the timings know nothing of."""
        offered_too = KLAP_PTX.replace('"host"}]', '"host"}, ' + json.dumps(self.TIMING) + "]")
        self.write("build/bin/klap-ptx", offered_too, 0o755)
        self.program(stats=dict(STATS, gpu_ms={"parents": {"expand": 0.5}, "consumers": {"visit": 1.0, "more": 0.5}}))
        code, text, content = self.measure()
        self.assertEqual(code, 0, text)
        row = content["rows"][0]
        self.assertEqual(len({pid for name, pid, _ in self.log() if name == "grid/host"}), 2)
        self.assertEqual(row["breakdown"]["runs"], 5)
        # 2 ms in kernels in 5 runs of 0.5 ms.
        self.assertEqual({who: round(part, 3) for who, part in figures.shares(row).items()},
                         {"parents": 0.2, "consumers": 0.6, "rest": 0.2})

    def test_no_kernel_times(self):
        self.program()
        _, _, content = self.measure()
        self.assertNotIn("breakdown", content["rows"][0])
        self.assertIsNone(figures.shares(content["rows"][0]))

    def test_speed_ups(self):
        self.program(native={"limits": HARD})
        _, _, content = self.measure()
        found = figures.speed_ups(content, content["rows"])[1]
        self.assertEqual({name: [round(value, 6) for value in values] for name, values in found.items()},
                         {"flat": [3, 3], "grid/host": [12, 12], "grid/device": [4, 4]})

    def test_drawing(self):
        self.program(native={"limits": HARD})
        self.measure()
        folder = os.path.join(self.folder, "figures")
        code, out, err = self.main("--figures", folder, self.out)
        if importlib.util.find_spec("matplotlib") is None:
            self.assertEqual((code, out), (2, ""))
            self.assertIn("pip install matplotlib", err)
        else:
            self.assertEqual(code, 0, err)
            self.assertEqual(sorted(os.listdir(folder)), ["speed-up-klap.png", "speed-up-klap.svg"])
            self.assertIn("breakdown, promotion", out)


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


class RowsTest(WithPrograms):
    def read(self, **files):
        for name, text in files.items():
            self.write(f"benchmarks/{name}/rows.json", text if isinstance(text, str) else json.dumps({"rows": text}))
        return rows.read_all(os.path.join(self.folder, "benchmarks"))

    def row(self, name, **more):
        return {"paper": "KLAP", "name": name, "arguments": [], **more}

    def test_choice(self):
        found = self.read(bfs=[self.row("bfs", quick=True), self.row("bfs-big")], mst=[self.row("mst", paper="Wu")])
        names = lambda *how, **more: [row.name for row in rows.choose(found, list(how), **more)]  # noqa: E731
        self.assertEqual(names("bfs*"), ["bfs", "bfs-big"])
        self.assertEqual(names(paper="wu"), ["mst"])
        self.assertEqual(names(quick=True), ["bfs"])
        self.assertEqual(names(everything=True), ["bfs", "bfs-big", "mst"])
        for wrong in ({"patterns": ["nix"]}, {"patterns": []}, {"patterns": [], "paper": "X"}):
            self.assertRaises(rows.BadInput, rows.choose, found, **wrong)

    def test_parts_are_all_rows_once(self):
        found = self.read(a=[self.row(f"r{i}") for i in range(11)])
        earlier = {"r0": 30.0, "r5": 29.0}
        parts = [rows.part_of(found, i, 3, earlier) for i in (1, 2, 3)]
        self.assertEqual(sorted(row.name for part in parts for row in part), sorted(row.name for row in found))
        loads = [sum(rows.expected_seconds(row, earlier) for row in part) for part in parts]
        self.assertLess(max(loads) - min(loads), 15)
        for wrong in ("0/3", "4/3", "2", "a/b"):
            self.assertRaises(rows.BadInput, rows.parse_part, wrong)

    def test_mistakes_name_the_file(self):
        for text, message in (("{", "no list of rows"), ("[]", "no list of rows"), ('{"rows": 3}', "not a list"),
                              ([{"name": "x"}], "no paper"), ([self.row("x", arguments="y")], "list of strings"),
                              ([self.row("x"), self.row("x")], "x is in a/rows.json already"), ([3], "an object")):
            with self.assertRaisesRegex(rows.BadInput, message) as caught:
                self.read(a=text)
            self.assertIn("a/rows.json", str(caught.exception))

    def test_list_and_missing_programs(self):
        self.program()
        self.assertIn("fake", self.main("--list", "--benchmarks", os.path.join(self.folder, "benchmarks"))[1])
        os.remove(os.path.join(self.folder, "build/bin/bench/fake"))
        code, _, err = self.main(*self.words("--all"))
        self.assertEqual((code, err), (2, "benchmarks/run: the build folder build has no fake\n"))
        # It says which granularities and launchers there are.
        os.remove(os.path.join(self.folder, "build/bin/klap-ptx"))
        code, _, err = self.main(*self.words("--all"))
        self.assertEqual((code, err), (2, "benchmarks/run: the build folder build has no klap-ptx, fake\n"))

    def test_too_few_repetitions(self):
        self.program()
        self.assertEqual(self.main(*self.words("--all", "--reps", "3"))[0], 2)

    def test_rows_without_time_are_not_run(self):
        self.program("one")
        self.program("two")
        code, text, content = self.measure("--all", "--budget", "0.01")
        self.assertEqual((code, content["not_run"], content["rows"]), (1, ["one", "two"], []))
        self.assertIn("not run: one, two", text)

    def test_the_repository_s_own_rows(self):
        found = rows.read_all(os.path.join(ROOT, "benchmarks"))
        for row in found:
            self.assertTrue(os.path.isdir(os.path.join(ROOT, "benchmarks", row.program)))


class InterruptTest(WithPrograms):
    """Nothing may be left on a GPU that someone else pays for."""

    def start(self):
        """A run that hangs in its second row; returns it and the process ids of its programs."""
        self.program("one")
        self.program("two", native={"limits": {"2048": {"do": "hang"}}})
        words = [sys.executable, os.path.join(ROOT, "benchmarks", "run"), *self.words("--all"), "--timeout", "60"]
        # Killed at once it leaves its temporary folder behind.
        running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env=dict(os.environ, TMPDIR=self.folder))
        self.addCleanup(running.stdout.close)
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            time.sleep(0.02)
            with contextlib.suppress(FileNotFoundError):
                if os.path.exists(self.out) and self.log()[-1][2] == "run 2048" and self.log()[-2][2] != "run 2048":
                    return running, self.pids()
        running.kill()
        return self.fail("the second row was not reached: " + running.communicate()[0])

    def test_ctrl_c(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(how.name):
                running, pids = self.start()
                running.send_signal(how)
                text = running.communicate(timeout=10)[0]
                self.assertEqual(running.returncode, 130, text)
                self.assertTrue(self.gone(pids))
                content = results.read(self.out)
                self.assertEqual([row["name"] for row in content["rows"]], ["one", "two"])
                self.assertTrue(content["interrupted"])
                self.assertIn("interrupted", content["rows"][1]["cut_short"])
                self.assertIn("12.0x", text)
            os.remove(self.out)
            os.remove(os.path.join(self.folder, "build/bin/bench/log.txt"))

    def test_killed_harness(self):
        running, pids = self.start()
        running.kill()
        running.wait()
        self.assertTrue(self.gone(pids))


class ThresholdTest(unittest.TestCase):
    def planned(self, patterns):
        with mock.patch.object(offered, "variants_of", lambda program: ["cdp", "flat"]):
            return {variant.name: variant.settings for variant in variants.planned("p", [("grid", "host")], patterns)}

    def test_are_there_to_be_asked_for(self):
        found = self.planned(["grid/host threshold *"])
        self.assertEqual({"grid/host threshold 4": "4", "grid/host threshold 8": "8", "grid/host threshold 32": "32"},
                         {name: settings["KLAP_THRESHOLD"] for name, settings in found.items()})
        self.assertEqual("off", self.planned(["*without threshold"])["grid/host without threshold"]["KLAP_THRESHOLD"])

    def test_are_not_among_those_that_are_told_apart_by_default(self):
        self.assertFalse([name for name in self.planned([]) if "threshold" in name])


if __name__ == "__main__":
    unittest.main()
