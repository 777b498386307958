"""Requires that a fault planted in klap_jit is caught: the program fails under some seed with the library that has the
fault, and is right under this seed and those tried before it with the library as it is. Of what is planted as
harmless, that every run is right.

A failure is whatever a user would notice: a wrong result, a CUDA error (a finding of the emulator's checks and a
deadlock are such) or no end.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile

SCHEDULES = ["random", "one-block", "starve-one", "round-robin", "child-first", "child-last", "fast"]
LIMIT = 100  # seconds a run may take
SEEDS_OF_CASE = 2500  # of a differential case, in place of one run of a program


class Library:
    """A preload library and its own cache of rewritten code: the cache takes both libraries for the same."""

    def __init__(self, options, path, cache, statistics):
        if not os.path.exists(path):  # the program would run without it
            sys.exit(f"no library {path}")
        self.options = options
        self.path = path
        self.cache = cache
        self.statistics = statistics

    def problem(self, seed):
        """What was wrong with one run; nothing if all was well."""
        build = self.options.build
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("KLAP_") or name == "KLAP_NVRTC"}
        environment.update(
            # What templates do is shown by programs whose children never meet, but for one, in ways no analysis sees.
            KLAP_ORDERING="auto" if self.options.program == "followers" else "relaxed",
            LD_PRELOAD=self.path, LD_LIBRARY_PATH=os.path.join(build, "lib", "emulator"),
            KLAP_LINKER="driver", KLAP_LAUNCHER=self.options.launcher,
            KLAP_GRANULARITY=self.options.granularity, KLAP_PROMOTION=self.options.promotion,
            KLAP_POOL=self.options.pool, KLAP_MULTIBLOCK="4", KLAP_CACHE_DIR=self.cache,
            # Else what is emulated more slowly than the original runs as it is, once the cache knows its times.
            KLAP_GUARD="off",
            KLAP_EMULATOR_QUIET="1", KLAP_EMULATOR_SEED=str(seed), KLAP_EMULATOR_WEAK_MEMORY="1",
            KLAP_EMULATOR_RACES="1",
            KLAP_EMULATOR_MAX_STEPS="100000000", KLAP_EMULATOR_SCHEDULE=SCHEDULES[seed % len(SCHEDULES)],
            # So few that the launches of most groups of blocks are refused at first.
            KLAP_EMULATOR_PENDING_LAUNCHES="2048" if self.options.granularity in ("grid", "warp") else "1",
            KLAP_STATS=self.statistics)
        environment.update(setting.split("=", 1) for setting in self.options.setting)
        command = [os.path.join(build, "bin", "emulated", self.options.program)]
        if self.options.case:
            # It chooses the schedule and the device anew for each seed.
            for name in ("SEED", "SCHEDULE", "RACES"):
                del environment["KLAP_EMULATOR_" + name]
            seeds = f"{seed * SEEDS_OF_CASE + 1}..{(seed + 1) * SEEDS_OF_CASE}"
            command = [os.path.join(build, "bin", "klap_case"), self.options.case, "--seeds", seeds]
        if self.options.blocks:
            environment.update(KLAP_EMULATOR_MULTIPROCESSORS="1", KLAP_EMULATOR_RESIDENT_BLOCKS=self.options.blocks)
        try:
            run = subprocess.run(command, env=environment, timeout=LIMIT,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        except subprocess.TimeoutExpired:
            return "no end"
        if run.returncode == 0:
            return None
        return f"exit code {run.returncode}\n{run.stdout}"


class RightLibrary(Library):
    """The library as it is: the tests of all faults may share what it makes, and what it was right about.

    A run that was right is not made again as long as the library, the emulator and the program are the same files:
    the seed decides about all that happens in it.
    """

    def __init__(self, options, statistics):
        libraries = os.path.join(options.build, "lib")
        faults = os.path.join(libraries, "faults")
        super().__init__(options, os.path.join(libraries, "libklap_jit.so"), os.path.join(faults, "cache"), statistics)
        self.known = os.path.join(faults, "right")
        files = [self.path, os.path.join(libraries, "emulator", "libcuda.so.1"),
                 os.path.join(options.build, "bin", "emulated", options.program), os.path.abspath(__file__)]
        if options.case:
            files.append(os.path.join(options.build, "bin", "klap_case"))
        found = [(file, os.stat(file).st_mtime_ns, os.stat(file).st_size) for file in files]
        self.identity = repr((found, options.launcher, options.granularity, options.promotion, options.pool,
                              options.blocks, options.setting, options.case))

    def problem(self, seed):
        name = hashlib.sha256(f"{self.identity} {seed}".encode()).hexdigest()
        marker = os.path.join(self.known, name)
        if os.path.exists(marker):
            return None
        problem = super().problem(seed)
        if not problem:
            os.makedirs(self.known, exist_ok=True)
            with open(marker, "w", encoding="utf-8"):
                pass
        return problem


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--fault", required=True, help="its name")
    parser.add_argument("--launcher", choices=["host", "device", "fused"], required=True)
    parser.add_argument("--granularity", choices=["grid", "block", "multiblock", "warp"], default="grid")
    parser.add_argument("--program", default="rounds", help="what is run")
    parser.add_argument("--promotion", default="auto", help="of chains")
    parser.add_argument("--pool", default="auto", help="blocks of a chain")
    parser.add_argument("--blocks", help="that the device has room for at a time")
    parser.add_argument("--setting", metavar="NAME=VALUE", action="append", default=[],
                        help="one more environment variable")
    parser.add_argument("--harmless", action="store_true", help="what is planted is no fault")
    parser.add_argument("--case", help="a differential case to run in place of a program")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=0, help="the others come after it")
    options = parser.parse_args()
    libraries = os.path.join(options.build, "lib")
    with tempfile.TemporaryDirectory() as folder:
        statistics = os.path.join(folder, "stats.json")
        faulty = Library(options, os.path.join(libraries, "faults", f"libklap_fault_{options.fault}.so"),
                         os.path.join(folder, "cache"), statistics)
        right = RightLibrary(options, statistics)
        for seed in ((options.first_seed + i) % options.seeds for i in range(options.seeds)):
            problem = right.problem(seed)
            if problem:
                sys.exit(f"seed {seed}: wrong without the fault: {problem}")
            problem = faulty.problem(seed)
            if problem and options.harmless:
                sys.exit(f"seed {seed}: wrong: {problem}")
            if problem:
                print(f"seed {seed}: caught: {problem}")
                return
    if not options.harmless:
        sys.exit(f"{options.fault} was not caught in {options.seeds} runs")


if __name__ == "__main__":
    main()
