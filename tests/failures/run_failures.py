"""Lets every request of the preload library to the system fail in turn, and requires the native result.

Requests are allocations, file operations and the library's own calls of the driver (failing.cpp). Each fails once by
itself, and once with all that come later. The program must end as it does natively, within the time limit. Where a
launch is not redirected that is redirected without faults, a line of the log must say so.

A driver that fails for good while a parent's children are being launched leaves the program its own error: the
parent has run, so the original cannot. That alone is accepted in place of the native result.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

KINDS = ["memory", "file", "driver"]
LIMIT = 60  # seconds a run may take
CUDA_FAILED = 3  # exit code of a program that a CUDA call failed

Outcome = collections.namedtuple("Outcome", "code out error counts")


class Program:
    """One program with the library preloaded, cold (an empty cache) or warm (an entry for it)."""

    def __init__(self, build, name, is_warm, settings, folder):
        self.build = build
        self.settings = settings
        self.command = [os.path.join(build, "bin", "emulated", "failing_" + name)]
        self.folder = folder
        self.cache = os.path.join(folder, "cache")
        self.filled = None
        self.native = self.run({}, preload=False)
        self.clear_cache()
        first = self.run({})
        if is_warm:
            self.filled = os.path.join(folder, "filled")
            shutil.copytree(self.cache, self.filled)
        self.clear_cache()
        self.clean = self.run({})
        if self.native.code != 0 or first[:2] != self.native[:2] or self.clean[:2] != self.native[:2]:
            sys.exit(f"wrong without any fault:\n{self.native}\n{first}\n{self.clean}")
        if any(self.clean.counts[kind][0] == 0 for kind in KINDS + ["launches"]):
            sys.exit(f"nothing is redirected, or not all requests are seen: {self.clean}")

    def clear_cache(self):
        shutil.rmtree(self.cache, ignore_errors=True)
        if self.filled:
            shutil.copytree(self.filled, self.cache)
        else:
            os.mkdir(self.cache, 0o700)

    def run(self, fault, preload=True):
        report = os.path.join(self.folder, "report")
        if os.path.exists(report):
            os.remove(report)
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("KLAP_") or name == "KLAP_NVRTC"}
        environment.update(
            LD_LIBRARY_PATH=os.path.join(self.build, "lib", "emulator"), KLAP_EMULATOR_QUIET="1",
            KLAP_EMULATOR_MULTIPROCESSORS="1", KLAP_EMULATOR_RESIDENT_BLOCKS="4")
        if preload:
            libraries = [os.path.join(self.build, "lib", name) for name in ("libklap_jit.so", "libklap_failing.so")]
            environment.update(
                LD_PRELOAD=":".join(libraries), KLAP_LINKER="driver", KLAP_CACHE_DIR=self.cache, KLAP_LOG="info", KLAP_POOL_BYTES="4M",
                KLAP_STATS=os.path.join(self.folder, "stats.json"), KLAP_TEST_FAIL_REPORT=report,
                **self.settings, **fault)
        try:
            done = subprocess.run(self.command, env=environment, timeout=LIMIT, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, errors="replace", check=False)
        except subprocess.TimeoutExpired:
            return Outcome("no end", "", "", {})
        return Outcome(done.returncode, done.stdout, done.stderr, read_report(report))


def read_report(name):
    """Requests and failures by kind; nothing if the program ended without writing it."""
    if not os.path.exists(name):
        return {}
    with open(name, encoding="ascii") as lines:
        return {kind: (int(requests), int(failed)) for kind, requests, failed in map(str.split, lines)}


def failed(outcome, kind):
    return outcome.counts.get(kind, (0, 0))[1]


def is_native_end(program, kind, how, outcome):
    if outcome[:2] == program.native[:2]:
        return True
    return (kind == "driver" and how == "FROM" and outcome.code == CUDA_FAILED and "CUDA error" in outcome.out
            and "cannot be launched" in outcome.error)


def log_of(outcome):
    """The lines of the log, without their numbers."""
    return {re.sub(r"[0-9.]+", "N", line) for line in outcome.error.splitlines() if line.startswith("klap: ")}


def problem(program, kind, how, outcome):
    """What is wrong with a run; nothing if all is well."""
    if not is_native_end(program, kind, how, outcome):
        return "not the native result"
    redirected = outcome.counts.get("launches", (0, 0))[0]
    if redirected < program.clean.counts["launches"][0] and not log_of(outcome) - log_of(program.clean):
        return "unchanged without a word"
    return None


def numbers(count, stride, first, ends):
    """Which requests fail: all, or one in `stride`, and some at both ends: settings, and launches and the exit."""
    chosen = set(range(1 + first % stride, count + 1, stride))
    return sorted(chosen | set(range(1, min(ends, count) + 1)) | set(range(max(1, count - ends + 1), count + 1)))


def inject(program, kind, options):
    """Runs the program once for each fault of one kind; how many were injected and what went wrong."""
    injected, problems = 0, []
    stride = options.stride if kind == "memory" else 1
    ends = options.ends if kind == "memory" else 1
    for number in numbers(program.clean.counts[kind][0], stride, options.first, ends):
        for how in ("AT", "FROM"):
            # The first is the C++ library's reserve, taken when it is loaded; without it and all other memory nothing
            # can even be thrown. A program that has no memory left there does not start by itself either.
            if kind == "memory" and how == "FROM" and number == 1:
                continue
            program.clear_cache()
            outcome = program.run({"KLAP_TEST_FAIL_KIND": kind, "KLAP_TEST_FAIL_" + how: str(number)})
            injected += max(failed(outcome, kind), 1)
            wrong = problem(program, kind, how, outcome)
            if wrong:
                problems.append(f"{kind} {how} {number}: {wrong}: exit code {outcome.code}\n"
                                f"{outcome.out}{outcome.error[:2000]}")
                if len(problems) >= options.most_problems:
                    return injected, problems
    return injected, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--program", required=True)
    parser.add_argument("--warm", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="VARIABLE=VALUE", help="settings of all runs")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--stride", type=int, default=1, help="one allocation in so many fails")
    parser.add_argument("--first", type=int, default=0, help="of these, which one is the first")
    parser.add_argument("--ends", type=int, default=1, help="so many allocations fail in any case at both ends")
    parser.add_argument("--most-problems", type=int, default=5)
    options = parser.parse_args()
    all_problems = []
    with tempfile.TemporaryDirectory(prefix="klap-failures-") as folder:
        settings = dict(assignment.split("=", 1) for assignment in options.set)
        program = Program(options.build, options.program, options.warm, settings, folder)
        for kind in options.kinds:
            injected, problems = inject(program, kind, options)
            requests = program.clean.counts[kind][0]
            print(f"{options.program} {'warm' if options.warm else 'cold'} {kind}: {requests} requests, "
                  f"{injected} faults injected, {len(problems)} wrong", flush=True)
            all_problems += problems
    for text in all_problems:
        print(text)
    return 1 if all_problems else 0


if __name__ == "__main__":
    sys.exit(main())
