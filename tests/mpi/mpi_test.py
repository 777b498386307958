"""Ranks under Open MPI that share a folder of rewritten modules, and the commands of the page on MPI.

Every job must give the right results. What is counted, from the statistics of each rank, is how many ranks compiled.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
FILES = ""
MPIRUN = "mpirun"
RANKS = 8
CHILDREN_OF_A_RANK = 96
# Root may run jobs here, and a machine of two cores eight ranks.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl_base_warn_component_unused": "0"}


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "cache").mkdir(mode=0o700)
        (self.folder / "app").symlink_to(BUILD / "bin" / "emulated" / "ranks")
        (self.folder / "build").symlink_to(BUILD)

    def run_line(self, line, **more):
        environment = {**os.environ, **OPEN_MPI, "LD_LIBRARY_PATH": str(BUILD / "lib" / "emulator"),
                       "KLAP_LINKER": "driver", "KLAP_GUARD": "off", "HOME": str(self.folder), **more}
        return subprocess.run(["bash", "-c", line], cwd=self.folder, env=environment, capture_output=True, text=True,
                              timeout=300, check=False)

    def start(self, preload="", **more):
        """Runs a job, and returns it with its ranks' statistics."""
        for old in self.folder.glob("stats-*.json"):
            old.unlink()
        libraries = ":".join(part for part in (preload, str(BUILD / "lib" / "libklap_jit.so")) if part)
        job = self.run_line(f"{MPIRUN} -np {RANKS} -x LD_PRELOAD={libraries} -x KLAP_STATS=stats-%r.json ./app",
                            **{"KLAP_CACHE_DIR": str(self.folder / "cache"), **more})
        return job, [json.loads(file.read_text(encoding="utf-8")) for file in sorted(self.folder.glob("stats-*.json"))]

    def check_right(self, job, statistics):
        self.assertEqual(0, job.returncode, job.stdout + job.stderr)
        self.assertIn(f"PASS: {RANKS} ranks, 0 cells wrong", job.stdout)
        self.assertEqual(RANKS, len(statistics))
        for rank in statistics:
            self.assertEqual(CHILDREN_OF_A_RANK, rank["children_aggregated"])

    def compiled(self, statistics):
        """How many ranks compiled the module."""
        return sum(any(module["cache"] != "hit" for module in rank["modules"]) for rank in statistics)

    def left_behind(self):
        return [file.name for file in (self.folder / "cache").iterdir() if file.suffix in (".tmp", ".lock")]

    def test_one_rank_compiles(self):
        job, statistics = self.start()
        self.check_right(job, statistics)
        self.assertEqual(1, self.compiled(statistics))
        job, statistics = self.start()
        self.check_right(job, statistics)
        self.assertEqual(0, self.compiled(statistics))

    def test_a_rank_killed_while_it_compiles_leaves_nothing_in_the_way(self):
        (self.folder / "kill").touch()
        job, _ = self.start(preload=FILES, CACHE_KILLS=str(self.folder / "kill"))
        self.assertNotEqual(0, job.returncode)
        self.assertFalse((self.folder / "kill").exists(), "no rank was killed")
        job, statistics = self.start()
        self.check_right(job, statistics)
        self.assertLessEqual(self.compiled(statistics), 1)  # others may have gone on and made the entry
        self.assertEqual([], self.left_behind())

    def test_folders_without_locks_where_files_appear_late(self):
        begin = time.monotonic()
        job, statistics = self.start(preload=FILES, CACHE_FILES="nfs")
        self.check_right(job, statistics)
        self.assertLessEqual(1, self.compiled(statistics))
        self.assertLess(time.monotonic() - begin, 100)
        time.sleep(4)
        job, statistics = self.start(preload=FILES, CACHE_FILES="nfs")
        self.check_right(job, statistics)
        self.assertEqual(0, self.compiled(statistics))
        self.assertEqual([], [name for name in self.left_behind() if name.endswith(".tmp")])

    def test_a_folder_that_cannot_be_written_to(self):
        job, statistics = self.start(KLAP_CACHE_DIR="/proc/none")
        self.check_right(job, statistics)
        self.assertEqual(RANKS, self.compiled(statistics))

    def test_the_commands_of_the_page(self):
        page = (ROOT / "tools" / "MPI.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
        commands = [line for block in blocks for line in block.splitlines() if line.startswith("mpirun")]
        self.assertLess(1, len(commands))
        for command in commands:
            with self.subTest(command):
                job = self.run_line(command)
                self.assertEqual(0, job.returncode, job.stdout + job.stderr)
                self.assertIn("PASS", job.stdout)
        self.assertEqual(RANKS, len(list(self.folder.glob("stats-*.json"))))

    def test_klap_run_adds_up_the_ranks(self):
        job = self.run_line(f"build/bin/klap run {MPIRUN} -np {RANKS} ./app", KLAP_CACHE_DIR=str(self.folder / "cache"))
        self.assertEqual(0, job.returncode, job.stdout + job.stderr)
        self.assertIn(f"klap: {RANKS} launches of 1 kernel rewritten, in {RANKS} processes\n", job.stderr)
        self.assertIn(f"klap: {RANKS * CHILDREN_OF_A_RANK} children run together\n", job.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=str(BUILD))
    parser.add_argument("--files", required=True, help="the library of file_system.c")
    parser.add_argument("--mpirun", default=MPIRUN)
    known, rest = parser.parse_known_args()
    BUILD, FILES, MPIRUN = pathlib.Path(known.build).resolve(), known.files, known.mpirun
    unittest.main(argv=[sys.argv[0], *rest])
