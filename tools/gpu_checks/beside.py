"""Two processes on one GPU at once, both preloaded, both with a recursion.

The persistent consumer is given as many blocks as the GPU has room for, as if it were alone there. Beside
another process it is not: its blocks come late, are put aside for a while, or few of them run at a time. It must end
all the same, and be right. Besides a program of the benchmarks, or itself, runs `crowded`, which holds all
multiprocessors but one most of the time.

A run that waits for a block that never comes does not end by itself: both processes have a limit, and who is still
running then is killed and wrong.
"""

import concurrent.futures
import json
import os
import tempfile
from dataclasses import dataclass

from gpu_checks import programs
from harness import process, statistics_file

LIMIT = 90  # seconds both may take


@dataclass
class Side:
    """One of the two: `folder` and `program` as in the build folder, `redirected` as in the expectations."""
    folder: str
    program: str
    arguments: list
    redirected: list


def crowd():
    return Side("gpu", "crowded", ["1000"], ["descend"])


def benchmark(root, name, arguments):
    with open(os.path.join(root, "tests", "gpu", "benchmarks", name + ".json"), encoding="utf-8") as file:
        return Side("bench", name, arguments, json.load(file)["redirected"])


def pairs(root):
    """Everything that is run, two by two."""
    recursions = [benchmark(root, name, ["--reps", "30", "--warmup", "0"]) for name in ("rbfs", "qt", "td", "th")]
    return [(crowd(), crowd()), *((crowd(), side) for side in recursions), (recursions[0], recursions[1])]


def needed(where, root):
    """The programs' files."""
    return sorted({where.program(side.folder, side.program) for pair in pairs(root) for side in pair})


def run(where, side):
    with tempfile.TemporaryDirectory() as folder:
        stats_file = os.path.join(folder, "stats.json")
        environment = where.preloaded(stats_file, KLAP_GRANULARITY="grid", KLAP_LAUNCHER="host")
        command = [where.program(side.folder, side.program), *side.arguments]
        outcome = process.run(command, environment, LIMIT)
        return outcome, statistics_file.read(stats_file)


def judge(side, outcome, stats):
    """What is wrong with one of the two runs, as sentences."""
    if outcome.timed_out or outcome.code != 0:
        return [outcome.describe()]
    if side.folder == "gpu" and programs.verdict(outcome):
        return [programs.verdict(outcome)]
    if "missing" in stats:
        return [f"no statistics: {stats['missing']}"]
    return [f"no launch of {kernel} was redirected" for kernel in side.redirected
            if statistics_file.redirected(stats, kernel) == 0]


def check(where, pair, say):
    """Starts both at once; returns a record with what is wrong under "wrong"."""
    with concurrent.futures.ThreadPoolExecutor(len(pair)) as pool:
        results = list(pool.map(lambda side: run(where, side), pair))
    name = " beside ".join(side.program for side in pair)
    record = {"name": name, "runs": [], "wrong": []}
    for side, (outcome, stats) in zip(pair, results):
        wrong = judge(side, outcome, stats)
        record["wrong"] += [f"{side.program}: {text}" for text in wrong]
        record["runs"].append({"program": side.program, "arguments": side.arguments, "code": outcome.code,
                               "seconds": round(outcome.seconds, 3), "wrong": wrong,
                               "statistics": statistics_file.summary(stats)})
        if wrong:
            record["runs"][-1]["output"] = (outcome.out + outcome.err).splitlines()[-40:]
    seconds = " and ".join(f"{outcome.seconds:.1f} s" for outcome, _ in results)
    say(f"{name}: " + ("WRONG: " + "; ".join(record["wrong"]) if record["wrong"] else f"ok ({seconds})"))
    return record
