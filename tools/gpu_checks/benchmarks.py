"""Timing the benchmark programs: native at several pending-launch limits, preloaded, and flat, interleaved.

CUDA loses device launches beyond the pending limit, so "native" needs a limit to be named with it. The fair one is
the fastest limit that works: results right and, in a counting run, no launch lost. Every limit is tried in a
process of its own, because a program whose launches were lost may never end.
"""

import json
import os
import statistics
import tempfile
from dataclasses import dataclass, field

from harness import process, statistics_file

LIMIT = 25  # seconds; a run takes two
DEFAULT_LIMIT = 2048  # CUDA's
DEVICE_LAUNCHER = "preloaded, launcher device"
LIMITS = [DEFAULT_LIMIT << i for i in range(8)]


@dataclass
class Setup:
    """One way to run a benchmark."""

    name: str
    preloaded: bool = False
    arguments: list = field(default_factory=list)
    limit: int = 0  # the pending limit of a native run, 0 where it does not matter
    settings: dict = field(default_factory=dict)  # environment variables of a preloaded run


def run_once(where, program, setup, arguments):
    """One process of a benchmark; returns its record."""
    command = [where.program("bench", program), *arguments, *setup.arguments, "--json", "-"]
    with tempfile.TemporaryDirectory() as folder:
        stats_file = os.path.join(folder, "stats.json")
        environment = where.preloaded(stats_file, **setup.settings) if setup.preloaded else where.native()
        outcome = process.run(command, environment, LIMIT)
        stats = statistics_file.read(stats_file) if setup.preloaded else {}
    record = {"setup": setup.name, "arguments": command[1:], "code": outcome.code,
              "timed_out": outcome.timed_out, "seconds": round(outcome.seconds, 3)}
    try:
        record["report"] = json.loads(outcome.out.strip().splitlines()[-1])
    except (IndexError, ValueError):
        record["errors"] = outcome.err.splitlines()[-10:]
    if setup.preloaded:
        record["statistics"] = statistics_file.summary(stats)
        record["launchers"] = sorted(statistics_file.launchers(stats))
        record["redirected"] = sum(stats.get("launches", {}).get("redirected", {}).values())
    return record


def result(record):
    return record.get("report", {}).get("result", {})


def is_right(record):
    """Whether the process ended well and every repetition was right."""
    return record["code"] == 0 and result(record).get("wrong") == 0 and result(record).get("right", 0) > 0


def verdict(record):
    """One word or two for a table."""
    if record["timed_out"]:
        return "hangs"
    if "report" not in record:
        return f"failed ({record['code']})"
    return "right" if is_right(record) else "wrong"


def works(record):
    return is_right(record) and result(record).get("lost_launches") == 0


def median_ms(record):
    return result(record).get("ms", {}).get("median")


def try_limits(where, program, arguments, say):
    """Runs natively at each limit; the default 2,048 is the first."""
    records = []
    for limit in LIMITS:
        setup = Setup(f"native, limit {limit}", False, ["--pending-limit", str(limit), "--count-failures"])
        record = run_once(where, program, setup, arguments)
        record["limit"] = limit
        records.append(record)
        median = median_ms(record)
        lost = result(record).get("lost_launches")
        say(f"{program} {' '.join(arguments)} natively at limit {limit}: {verdict(record)}"
            + (f", {median:.3f} ms" if median is not None else "")
            + (f", {lost} launches lost" if lost else ""))
    return records


def best_limit(records):
    """The limit with the smallest median among those that work, or None."""
    working = [r for r in records if works(r)]
    return min(working, key=median_ms)["limit"] if working else None


def samples(records):
    return [ms for r in records for ms in result(r).get("ms", {}).get("samples", [])]


def summarise(setup, records):
    """All runs of one setup together."""
    times = samples(records)
    return {
        "setup": setup.name,
        "verdicts": sorted({verdict(r) for r in records}),
        "right": sum(result(r).get("right", 0) for r in records),
        "wrong": sum(result(r).get("wrong", 0) for r in records),
        "median_ms": statistics.median(times) if times else None,
        "min_ms": min(times) if times else None,
        "max_ms": max(times) if times else None,
        "medians_of_runs_ms": [median_ms(r) for r in records],
    }


def interleave(where, program, setups, arguments, rounds, say):
    """Every setup once a round, so that drifting clocks meet all of them; a setup that hung is not repeated."""
    records = {setup.name: [] for setup in setups}
    for number in range(rounds):
        for setup in setups:
            done = records[setup.name]
            if done and done[-1]["timed_out"]:
                continue
            done.append(run_once(where, program, setup, arguments))
        say(f"{program} {' '.join(arguments)} round {number + 1} of {rounds}")
    return [r for setup in setups for r in records[setup.name]], [
        summarise(setup, records[setup.name]) for setup in setups]


def native(name, limit):
    return Setup(name, False, ["--pending-limit", str(limit)], limit)


def usual_setups(best):
    """What is compared for every benchmark; `best` is native's best working limit, None where there is none."""
    setups = [Setup("native, default limit", limit=DEFAULT_LIMIT), native("native, limit 65536", 65536)]
    if best:
        setups.append(native("native, best limit", best))
    return setups + [Setup("preloaded", True),
                     Setup("preloaded, limit 65536", True, ["--pending-limit", "65536"]),
                     Setup(DEVICE_LAUNCHER, True, settings={"KLAP_LAUNCHER": "device"}),
                     Setup("flat", False, ["--variant", "flat"])]


def judge(summaries, records):
    """Whatever must not happen: a preloaded or flat run that is wrong, or a preloaded run that rewrote nothing."""
    wrong = []
    for entry in summaries:
        checked = entry["setup"].startswith(("preloaded", "flat"))
        if checked and entry["verdicts"] != ["right"]:
            wrong.append(f"{entry['setup']}: {', '.join(entry['verdicts'])}")
    for record in records:
        if record["setup"].startswith("preloaded") and not record.get("redirected"):
            wrong.append(f"{record['setup']}: no launch was redirected")
        elif record["setup"] == DEVICE_LAUNCHER and record["launchers"] != ["device"]:
            wrong.append(f"{record['setup']}: launched by {', '.join(record['launchers']) or 'nobody'}")
    return wrong


def add_lost_launches(summaries, setups, limits):
    """Tells each native summary how many launches the counting run at its limit lost."""
    lost = {record["limit"]: result(record).get("lost_launches") for record in limits}
    for setup, entry in zip(setups, summaries):
        entry["lost_launches"] = lost.get(setup.limit) if setup.limit else 0


def ratios(summaries):
    """How many times faster than each native and flat setup the preloaded one is."""
    medians = {entry["setup"]: entry["median_ms"] for entry in summaries}
    ours = medians.get("preloaded")
    if not ours:
        return {}
    return {name: round(ms / ours, 2) for name, ms in medians.items() if ms and name != "preloaded"}


def measure(where, program, arguments, rounds, say):
    """Limits, then interleaved rounds; returns the record for one benchmark at one size."""
    limits = try_limits(where, program, arguments, say)
    best = best_limit(limits)
    if best is None:
        say(f"{program}: no pending limit works natively")
    setups = usual_setups(best)
    records, summaries = interleave(where, program, setups, [*arguments, "--reps", "21"], rounds, say)
    add_lost_launches(summaries, setups, limits)
    return {"program": program, "arguments": arguments, "best_limit": best, "summary": summaries,
            "preloaded_times_faster_than": ratios(summaries), "wrong": judge(summaries, records),
            "limits": limits, "runs": records}


def repeat_preloaded(where, program, arguments, count, say):
    """Separate preloaded processes that must all be right."""
    records = [run_once(where, program, Setup("preloaded", True), [*arguments, "--reps", "5"])
               for _ in range(count)]
    right = sum(1 for r in records if is_right(r) and r.get("redirected"))
    say(f"{program}: {right} of {count} preloaded processes right")
    return {"right": right, "of": count, "runs": records,
            "wrong": [] if right == count else [f"only {right} of {count} preloaded processes were right"]}
