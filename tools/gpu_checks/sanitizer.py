"""compute-sanitizer over preloaded programs.

The sanitizer brings itself into the target with LD_PRELOAD too. The library under test is therefore added by a
shell inside the target; where that leaves one of the two out, it is set for the sanitizer as a whole instead.
A run counts only if the sanitizer printed its summary and the statistics show redirected launches: otherwise
nothing would have been checked, or nothing of ours.

Two tools: memcheck, and racecheck for what threads share in shared memory. racecheck says of every module with dynamic
parallelism that it does not support it (and counts that as a hazard), so it is given modules without: all launches of
the program must be rewritten for the host, and the rewritten code is linked without the device runtime.
"""

import os
import re
import shutil
import tempfile

from harness import process, statistics_file

LIMIT = 120
SUMMARY = {"memcheck": re.compile(r"ERROR SUMMARY: (\d+) error"),
           "racecheck": re.compile(r"RACECHECK SUMMARY: (\d+) hazard")}
SETTINGS = {"memcheck": {}, "racecheck": {"KLAP_DEVICE_RUNTIME": "0", "KLAP_GRANULARITY": "grid", "KLAP_LAUNCHER": "host"}}


def find():
    """The sanitizer's path, or None."""
    usual = "/usr/local/cuda/bin/compute-sanitizer"
    return shutil.which("compute-sanitizer") or (usual if os.access(usual, os.X_OK) else None)


def start(where, how, tool, target, stats_file):
    """(command, environment) for one of the two ways to start it, "inside" or "outside"."""
    sanitize = [find(), "--tool", tool, "--target-processes", "all", "--error-exitcode", "86"]
    if how == "outside":
        return sanitize + target, where.preloaded(stats_file, **SETTINGS[tool])
    inside = 'export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$0"; exec "$@"'
    return sanitize + ["sh", "-c", inside, where.library, *target], dict(
        where.native(), KLAP_STATS=stats_file, KLAP_CACHE_DISABLE="1", **SETTINGS[tool])


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


def check(where, tool, program, arguments, seconds, say):
    """Runs one program under one tool for at most `seconds`; returns its record."""
    name = os.path.basename(program)
    attempts = []
    for how in ("inside", "outside"):
        with tempfile.TemporaryDirectory() as folder:
            stats_file = os.path.join(folder, "stats.json")
            command, environment = start(where, how, tool, [program, *arguments], stats_file)
            outcome = process.run(command, environment, min(LIMIT, seconds))
            valid, problem = judge(tool, outcome, statistics_file.read(stats_file))
        shown = [part.replace(where.build, "build") for part in command]
        attempts.append({"command": shown, "seconds": round(outcome.seconds, 1), "problem": problem,
                         "output": (outcome.out + outcome.err).splitlines()[-40:]})
        if valid:
            break
    say(f"{tool} {name}: " + (f"WRONG: {problem}" if problem else f"clean ({outcome.seconds:.0f} s)"))
    return {"program": name, "arguments": arguments, "tool": tool, "attempts": attempts,
            "wrong": [problem] if problem else []}
