"""Tests of those sections of tools/gpu_check that run only when they are named, with programs made up for it."""

import json
import os
import unittest
from unittest import mock

# It puts the tools on the path.
from gpu_check_fixture import ROOT, STATS, WithCommand, quiet, write_stats
from gpu_checks import beside, clients, conformance


# A program of another library; {natively} and {preloaded} are statements of such processes.
CLIENT = """import os, sys
children, text, code = 0, ["MILLISECONDS 1.5", "PASS p"], 0
if "LD_PRELOAD" in os.environ:
    children = 12
    {preloaded}
    with open(os.environ["KLAP_STATS"].replace("%p", "1"), "w") as file:
        file.write('{{"children_aggregated": %d}}' % children)
else:
    {natively}
print("\\n".join(text))
sys.exit(code)
"""


class ClientsTest(WithCommand):
    """Programs of other libraries, made up."""

    def run_section(self, preloaded, how=clients.TAKEN, natively="pass"):
        folder, results = os.path.join(self.where.build, "clients"), os.path.join(self.where.build, "results")
        self.touch(os.path.join(folder, "one.py"))
        with open(os.path.join(folder, "one.py"), "w", encoding="utf-8") as file:
            file.write(CLIENT.format(preloaded=preloaded, natively=natively))
        with mock.patch.object(clients, "FOLDER", folder), \
                mock.patch.object(clients, "CLIENTS", [("One", "one way", how)]):
            code, out = self.run_command("--only", "clients", "--out", results)
        with open(os.path.join(results, "clients.md"), encoding="utf-8") as file:
            return code, out, file.read()

    def test_all_right(self):
        code, out, page = self.run_section("pass")
        self.assertEqual(code, 0, out)
        self.assertIn("| One | `one way` | taken | right, 1.500 ms | right, 1.500 ms, 12 children |", page)

    def test_a_wrong_result_is_found(self):
        code, out, page = self.run_section("text, code = ['wrong: values', 'FAIL p'], 1")
        self.assertEqual(code, 1, out)
        self.assertIn("wrong: values | FAIL p".replace("|", "\\|"), page)

    def test_a_library_that_does_nothing_is_found(self):
        code, out, page = self.run_section("children = 0")
        self.assertEqual(code, 1, out)
        self.assertIn("nothing was aggregated", page)

    def test_silence_about_machine_code_is_found(self):
        silent, _, _ = self.run_section("children = 0", clients.MACHINE_CODE)
        said, out, _ = self.run_section("children = 0; print('klap: warning: no PTX', file=sys.stderr)",
                                        clients.MACHINE_CODE)
        self.assertEqual((silent, said), (1, 0), out)

    def test_a_missing_package_is_told(self):
        missing = f"text, code = ['not run: no cupy'], {clients.NOT_RUN}"
        code, out, page = self.run_section(missing, natively=missing)
        self.assertEqual(code, 0, out)
        self.assertIn("not run: no cupy", page)

    def test_one_that_only_the_preloaded_process_lacks_is_wrong(self):
        code, out, page = self.run_section(f"text, code = ['not run: no cupy'], {clients.NOT_RUN}")
        self.assertEqual(code, 1, out)
        self.assertIn("natively it runs; not run: no cupy", page)


def samples(process_kib):
    """Shell commands that print what the soak program does, a round every ten seconds, with this growth a round."""
    return "\n".join(f"echo SAMPLE {10 * n}.0 {100 * n} {200000 + process_kib * n} 8000000" for n in range(1, 19))


class SoakTest(WithCommand):
    """The soak program, made up."""

    def run_section(self, natively, preloaded, left=None):
        stats = {**STATS, "launches": {**STATS["launches"], "left": left or {}}}
        self.program("gpu", "soak", natively, f"{preloaded}; {write_stats(stats)}")
        results = os.path.join(self.where.build, "results")
        code, out = self.run_command("--only", "soak", "--seconds", "5", "--out", results)
        with open(os.path.join(results, "soak.json"), encoding="utf-8") as file:
            return code, out, json.load(file)

    def test_all_right(self):
        native, preloaded = samples(50), samples(100)
        code, out, found = self.run_section(f"{native}\necho PASS soak", f"{preloaded}\necho PASS soak")
        self.assertEqual(code, 0, out)
        self.assertEqual([part["growth"]["process"] for part in found["parts"]], [50, 50, 100, 100, 100])
        self.assertRegex(out, r"native +1800 +196 +50 +7812 +0")

    def test_memory_that_grows_is_found(self):
        code, out, _ = self.run_section(f"{samples(50)}\necho PASS soak", f"{samples(200)}\necho PASS soak")
        self.assertEqual(code, 1)
        self.assertIn("the process has 200 KiB more after each round, natively 50", out)

    def test_a_wrong_result_is_found(self):
        code, out, _ = self.run_section("echo PASS soak", "echo FAIL soak: launches of one stream; exit 1")
        self.assertEqual(code, 1)
        self.assertIn("FAIL soak: launches of one stream", out)

    def test_originals_in_graphs_are_found(self):
        code, out, _ = self.run_section("echo PASS soak", "echo PASS soak", {"descend": {"parents in graphs": 3}})
        self.assertEqual(code, 1)
        self.assertIn("graphs ran the originals of ['descend']", out)

    def test_too_few_samples_say_nothing_of_growth(self):
        code, out, _ = self.run_section("echo SAMPLE 70 1 1 1\necho PASS soak", "echo SAMPLE 70 1 9999999 1\necho PASS soak")
        self.assertEqual(code, 0, out)


class ConformanceTest(WithCommand):
    """Ways to load and launch, each in a process of its own."""

    def setUp(self):
        super().setUp()
        for _, command in conformance.PATHS:
            self.program("gpu", command.split()[0], "echo PASS p", f"echo PASS p; {write_stats(STATS)}")

    def run_section(self):
        results = os.path.join(self.where.build, "results")
        code, out = self.run_command("--only", "conformance", "--out", results)
        with open(os.path.join(results, "conformance.md"), encoding="utf-8") as file:
            return code, out, file.read()

    def test_all_right(self):
        code, out, page = self.run_section()
        self.assertEqual(code, 0, out)
        self.assertIn("| nvJitLink | `program_nvjitlink` | right | right, 12 children | right | right, 12 children |", page)

    def test_a_wrong_result_is_found(self):
        self.program("gpu", "driver_load", "echo PASS p", f"echo FAIL p; {write_stats(STATS)}; exit 1")
        code, out, page = self.run_section()
        self.assertEqual(code, 1, out)
        self.assertIn("exit code 1: FAIL p", page)

    def test_eager_loading_is_asked_for(self):
        self.program("gpu", "shapes", "test $CUDA_MODULE_LOADING = LAZY && echo PASS p", f"echo PASS p; {write_stats(STATS)}")
        code, out, _ = self.run_section()
        self.assertEqual(code, 1, out)

    def test_a_library_that_does_nothing_is_found(self):
        self.program("gpu", "shapes", "echo PASS p", f"echo PASS p; {write_stats(dict(STATS, children_aggregated=0))}")
        code, out, page = self.run_section()
        self.assertEqual(code, 1, out)
        self.assertIn("nothing was aggregated", page)


class BesideTest(WithCommand):
    """Two processes at once."""

    REDIRECTED = {"_Z7descendPi": 1, "_Z7descendILb0EEvPi": 1, "_Z11search_fromPi": 1, "_Z5buildPi": 1}
    RIGHT = dict(STATS, launches={"redirected": REDIRECTED})

    def setUp(self):
        super().setUp()
        for path in beside.needed(self.where, ROOT):
            self.side(os.path.relpath(path, os.path.join(self.where.build, "bin")), "echo PASS p")

    def side(self, path, preloaded, stats=None):
        self.program(*path.split("/"), "false", f"{preloaded}; code=$?; {write_stats(stats or self.RIGHT)}; exit $code")

    def run_section(self):
        return self.run_command("--only", "beside")

    def test_right(self):
        code, out = self.run_section()
        self.assertEqual(code, 0, out)
        for pair in ("crowded beside crowded", "crowded beside td", "rbfs beside qt"):
            self.assertIn(f"{pair}: ok", out)

    def test_both_run_at_once(self):
        here, there = (os.path.join(self.where.build, name) for name in ("here", "there"))
        met = "; ".join(f"while [ ! -e {name} ]; do sleep 0.01; done" for name in (here, there))
        self.side("bench/rbfs", f"touch {here}; {met}")
        self.side("bench/qt", f"touch {there}; {met}")
        pair = beside.pairs(ROOT)[-1]
        with mock.patch.object(beside, "LIMIT", 20):
            self.assertEqual(beside.check(self.where, pair, quiet)["wrong"], [])
        os.remove(here)
        os.remove(there)
        with mock.patch.object(beside, "LIMIT", 1):
            self.assertIn("killed", beside.check(self.where, pair[:1], quiet)["wrong"][0])

    def test_who_does_not_end_is_wrong(self):
        self.side("bench/td", "sleep 60")
        with mock.patch.object(beside, "LIMIT", 1):
            code, out = self.run_section()
        self.assertEqual(code, 1)
        self.assertRegex(out, "WRONG in crowded beside td: td: still running")
        self.assertIn("crowded beside th: ok", out)

    def test_wrong_results(self):
        self.side("bench/qt", "(exit 1)")
        self.side("gpu/crowded", "echo FAIL p")
        code, out = self.run_section()
        self.assertEqual(code, 1)
        self.assertIn("WRONG in rbfs beside qt: qt: exit code 1", out)
        self.assertIn("WRONG in crowded beside th: crowded: no verdict printed", out)

    def test_fallback_is_not_success(self):
        self.side("bench/td", "true", dict(STATS, launches={"redirected": {}}))
        code, out = self.run_section()
        self.assertEqual(code, 1)
        self.assertIn("WRONG in crowded beside td: td: no launch of", out)

    def test_missing_program(self):
        os.remove(self.where.program("gpu", "crowded"))
        code, out = self.run_section()
        self.assertEqual(code, 1)
        self.assertIn("not built", out)


if __name__ == "__main__":
    unittest.main()
