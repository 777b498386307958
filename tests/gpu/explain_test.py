"""What klap-ptx says about the GPU programs, on machines without a GPU.

The same expectations that a preloaded run on a GPU must meet hold for the verdicts on the launch sites: every parent
that is to be redirected must be rewritten and link, and every one outside the list of legal rewrites must be left
for the right reason. Without this a wrong verdict would only show on the rare machine with a GPU.
"""

import functools
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "benchmarks"))

from harness.statistics_file import is_kernel  # noqa: E402

ARCHITECTURES = [80, 90, 100]  # A100, H100 and H200, B200
# In the full run all of them for every program, else those that RealProgram does not have, for one in eight.
IN_TURN = [[80], [], [], [], [], [], [], [], [100], [], [], [], [], [], [], []]
FULL = os.environ.get("KLAP_FULL_TESTS") == "1"
BUILD = os.environ.get("KLAP_BUILD", os.path.join(HERE, "..", "..", "build"))


def klap_ptx(*arguments):
    command = [os.path.join(BUILD, "bin", "klap-ptx"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@functools.cache
def explained(path):
    """The launch sites of a program, and what went wrong."""
    result = klap_ptx("explain", path, "--granularity", "grid", "--json")
    return json.loads(result.stdout)["sites"] if result.returncode == 0 else None, result.stderr


def benchmark_names():
    """Every built benchmark program that launches from the device; each must say here what is expected of it."""
    names = sorted(os.listdir(os.path.join(BUILD, "bin", "bench")))
    return [name for name in names if not name.startswith("no_launches")]


def entries():
    """(path of the device code, expectations) of every program."""
    with open(os.path.join(HERE, "expectations.json"), encoding="utf-8") as file:
        for entry in json.load(file)["programs"]:
            if "program" not in entry:  # else another entry has the same device code
                yield os.path.join(BUILD, "bin", "gpu", entry.get("image", entry["name"])), entry
    for name in benchmark_names():
        with open(os.path.join(HERE, "benchmarks", name + ".json"), encoding="utf-8") as file:
            yield os.path.join(BUILD, "bin", "bench", name), {"name": name, **json.load(file)}


class ExplainTest(unittest.TestCase):
    def sites_of(self, sites, kernel):
        """Sites whose parent is `kernel`, of which there must be some; "" means all."""
        found = [site for site in sites if not kernel or is_kernel(site["parent"], kernel)]
        self.assertTrue(found, f"no launch site in {kernel or 'the program'}")
        return found

    def test_verdicts(self):
        for path, entry in entries():
            with self.subTest(program=entry["name"]):
                sites, error = explained(path)
                self.assertIsNotNone(sites, error)
                self.assertEqual(len(sites), entry.get("sites", len(sites)))
                for kernel in entry.get("redirected", []):
                    for site in self.sites_of(sites, kernel):
                        self.assertEqual(site["verdict"], "rewritten", f"{kernel}: {site}")
                for kernel, reason in entry.get("left", {}).items():
                    for site in self.sites_of(sites, kernel):
                        self.assertEqual(site.get("reason"), reason, f"{kernel}: {site}")

    def test_rewrites_link(self):
        """In the full run all, else one in three of the modules: of programs RealProgram shows the same."""
        rewritten = [(path, entry) for path, entry in entries() if entry.get("redirected")]
        modules = [(path, entry) for path, entry in rewritten if "image" in entry]
        for path, entry in rewritten if FULL else modules[::3]:
            with self.subTest(program=entry["name"]), tempfile.TemporaryDirectory() as folder:
                image = os.path.join(folder, "image.cubin")
                result = klap_ptx("rewrite", path, "-o", image, "--granularity", "grid", "--json")
                self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
                left = [site for site in json.loads(result.stdout)["sites"] if site.get("reason") == "build-failed"]
                self.assertEqual(left, [])
                self.assertGreater(os.path.getsize(image), 0)

    def test_other_architectures(self):
        """The benchmarks' rewritten units assemble and link for older and newer devices from PTX for the oldest."""
        benchmarks = [(path, entry) for path, entry in entries()
                      if os.path.basename(os.path.dirname(path)) == "bench" and entry.get("redirected")]
        for turn, (path, entry) in enumerate(benchmarks):
            architectures = ARCHITECTURES if FULL else IN_TURN[turn % len(IN_TURN)]
            if not architectures:
                continue
            with self.subTest(program=entry["name"]), tempfile.TemporaryDirectory() as folder:
                self.assertEqual(klap_ptx("extract", path, "-o", folder).returncode, 0)
                sites, error = explained(path)
                self.assertIsNotNone(sites, error)
                # A child in another unit than its parent is out of reach where units are rewritten one by one.
                whole = sum(1 for site in sites if site["verdict"] == "rewritten")
                self.assert_units_link(folder, 0 if entry.get("child_in_another_unit") else whole, architectures)

    def assert_units_link(self, folder, expected, architectures):
        texts = {}
        for unit in sorted(glob.glob(os.path.join(folder, "unit*.compute_*.ptx"))):
            with open(unit, encoding="utf-8") as file:
                texts[unit] = file.read()
        # Programs of version 1 are rewritten only for devices that refuse them.
        if any("cudaLaunchDevice" in text for text in texts.values()):
            architectures = [sm for sm in architectures if sm >= 90]
        rewritten = {sm: 0 for sm in architectures}
        for unit, text in texts.items():
            with open(unit, "w", encoding="utf-8") as file:
                file.write(text.replace(".target sm_90", f".target sm_{ARCHITECTURES[0]}"))
            for sm in architectures:
                image = os.path.join(folder, f"sm_{sm}.cubin")
                result = klap_ptx("rewrite", unit, "--sm", str(sm), "-o", image, "--json")
                verdicts = [site["verdict"] for site in json.loads(result.stdout)["sites"]] if result.stdout else []
                self.assertEqual(result.returncode, 0 if "rewritten" in verdicts else 1, result.stderr)
                rewritten[sm] += verdicts.count("rewritten")
        self.assertEqual(rewritten, {sm: expected for sm in architectures})


if __name__ == "__main__":
    unittest.main()
