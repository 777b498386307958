"""compute-sanitizer over preloaded programs.

Every benchmark program of which something is rewritten is checked at the small sizes at which it also runs on the
emulated driver, once for each way to aggregate: all templates are seen that any program uses.

The sanitizer brings itself into the target with LD_PRELOAD too. The library under test is therefore added by a
shell inside the target; where that leaves one of the two out, it is set for the sanitizer as a whole instead.
A run counts only if the sanitizer printed its summary and the statistics show redirected launches: otherwise
nothing would have been checked, or nothing of ours.

Two tools: memcheck, and racecheck for what threads share in shared memory. racecheck says of every module with dynamic
parallelism that it does not support it (and counts that as a hazard), so it is given modules without: all launches of
the program must be rewritten for the host, and the rewritten code is linked without the device runtime.
"""

import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass, field

from harness import process, statistics_file

LIMIT = 120
SUMMARY = {"memcheck": re.compile(r"ERROR SUMMARY: (\d+) error"),
           "racecheck": re.compile(r"RACECHECK SUMMARY: (\d+) hazard")}
SETTINGS = {"memcheck": {}, "racecheck": {"KLAP_DEVICE_RUNTIME": "0", "KLAP_GRANULARITY": "grid", "KLAP_LAUNCHER": "host"}}


# The ways to aggregate; a program none of whose launches a way rewrites is not checked for it.
WAYS = (("grid", "host"), ("grid", "device"), ("multiblock", "device"), ("block", "device"), ("warp", "device"))
NO_WARM_UP = ["--reps", "2", "--warmup", "0"]


@dataclass
class Job:
    """One program under one tool; `may_be_left` where it may have no launch that the settings rewrite."""
    tool: str
    program: str
    arguments: list
    settings: dict = field(default_factory=dict)
    may_be_left: bool = False

    def name(self):
        ways = "/".join(self.settings[key] for key in ("KLAP_GRANULARITY", "KLAP_LAUNCHER") if key in self.settings)
        return f"{self.tool} {os.path.basename(self.program)}" + (f" {ways}" if ways else "")


def benchmark_jobs(where, root):
    """memcheck of all benchmark programs that have launches to rewrite, by their sizes on the emulated driver."""
    with open(os.path.join(root, "tests", "emulator", "programs", "cases.json"), encoding="utf-8") as file:
        cases = [case for case in json.load(file)["cases"] if case["folder"] == "bench" and "program" not in case]
    jobs = []
    for case in cases:
        with open(os.path.join(root, "tests", "gpu", "benchmarks", case["name"] + ".json"), encoding="utf-8") as file:
            expected = json.load(file)
        # Chains that are promoted are so in every way; they have a section of their own.
        if not expected.get("redirected") or expected.get("promoted"):
            continue
        arguments = case.get("arguments", []) + NO_WARM_UP
        for granularity, launcher in WAYS:
            settings = {"KLAP_GRANULARITY": granularity, "KLAP_LAUNCHER": launcher}
            jobs.append(Job("memcheck", where.program("bench", case["name"]), arguments, settings, may_be_left=True))
    return jobs


def find():
    """The sanitizer's path, or None."""
    usual = "/usr/local/cuda/bin/compute-sanitizer"
    return shutil.which("compute-sanitizer") or (usual if os.access(usual, os.X_OK) else None)


def start(where, how, tool, target, stats_file, settings=None):
    """(command, environment) for one of the two ways to start it, "inside" or "outside"."""
    sanitize = [find(), "--tool", tool, "--target-processes", "all", "--error-exitcode", "86"]
    if how == "outside":
        return sanitize + target, where.preloaded(stats_file, **SETTINGS[tool], **(settings or {}))
    inside = 'export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$0"; exec "$@"'
    return sanitize + ["sh", "-c", inside, where.library, *target], dict(
        where.native(), KLAP_STATS=stats_file, KLAP_CACHE_DISABLE="1", **SETTINGS[tool], **(settings or {}))


def judge(tool, outcome, stats):
    """(whether the run checked anything, what is wrong)."""
    counted = SUMMARY[tool].findall(outcome.out + outcome.err)
    if outcome.timed_out:
        return True, outcome.describe()
    if not counted:
        return False, f"no summary from the sanitizer ({outcome.describe()})"
    if not stats.get("launches", {}).get("redirected"):
        return False, "the program ran without redirected launches"
    findings = sum(int(number) for number in counted)
    if findings:
        return True, f"{findings} findings"
    return True, "" if outcome.code == 0 else f"the program failed: {outcome.describe()}"


def check(where, job, seconds, say):
    """Runs one job for at most `seconds`; returns its record."""
    attempts = []
    for how in ("inside", "outside"):
        with tempfile.TemporaryDirectory() as folder:
            stats_file = os.path.join(folder, "stats.json")
            target = [job.program, *job.arguments]
            command, environment = start(where, how, job.tool, target, stats_file, job.settings)
            outcome = process.run(command, environment, min(LIMIT, seconds))
            stats = statistics_file.read(stats_file)
            valid, problem = judge(job.tool, outcome, stats)
        shown = [part.replace(where.build, "build") for part in command]
        attempts.append({"command": shown, "seconds": round(outcome.seconds, 1), "problem": problem,
                         "output": (outcome.out + outcome.err).splitlines()[-40:]})
        if valid:
            break
    left = job.may_be_left and not valid and "missing" not in stats and outcome.code == 0
    result = "left" if left else problem or "clean"
    say(f"{job.name()}: " + (f"WRONG: {problem}" if problem and not left else f"{result} ({outcome.seconds:.0f} s)"))
    return {"program": os.path.basename(job.program), "arguments": job.arguments, "tool": job.tool,
            "settings": job.settings, "attempts": attempts, "result": result,
            "wrong": [problem] if problem and not left else []}


def rows(records):
    """A table: a program a row, and what came of it in each way."""
    table = [["tool", "program", *("/".join(way) for way in WAYS), "by default"]]
    for tool, program in dict.fromkeys((record["tool"], record["program"]) for record in records):
        cells = {(record["settings"].get("KLAP_GRANULARITY"), record["settings"].get("KLAP_LAUNCHER")): record["result"]
                 for record in records if (record["tool"], record["program"]) == (tool, program)}
        table.append([tool, program, *(cells.get(way, "") for way in WAYS), cells.get((None, None), "")])
    return table
