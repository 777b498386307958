"""The self-checking GPU programs: each natively and preloaded, outputs compared, rewrites counted.

A preloaded run that quietly fell back to the program's own kernels would pass every comparison, so each
program's entry in tests/gpu/expectations.json names the kernels whose launches must have been redirected.
"""

import os
import tempfile

from harness import process, statistics_file

LIMIT = 60  # seconds a program may take
# Each program also runs with its launches aggregated in each of these ways by its own threads.
GRANULARITIES = ("grid", "multiblock", "block", "warp")


def lines(outcome):
    """Lines in a fixed order: output of concurrent kernels comes in any."""
    return sorted(outcome.out.splitlines())


def command(where, entry):
    return [where.program("gpu", entry.get("program", entry["name"])), *entry.get("arguments", [])]


def run_native(where, entry):
    return process.run(command(where, entry), where.native(), LIMIT)


def run_preloaded(where, entry, **settings):
    """One preloaded run and its statistics; what is expected of the launch sites is said for the grid."""
    usual = {"KLAP_GRANULARITY": "grid", "KLAP_GUARD": "off"}
    settings = usual | entry.get("settings", {}) | settings
    with tempfile.TemporaryDirectory() as folder:
        stats_file = os.path.join(folder, "stats.json")
        outcome = process.run(command(where, entry), where.preloaded(stats_file, **settings), LIMIT)
        return outcome, statistics_file.read(stats_file)


def verdict(outcome):
    """What is wrong with a run on its own, empty when it says PASS."""
    last = outcome.out.strip().splitlines()[-1:] or [""]
    if outcome.timed_out or outcome.code != 0:
        text = (outcome.err.strip().splitlines() or [""])[-1]
        return f"{outcome.describe()}: {last[0] or text}"
    passed = any(line.startswith("PASS ") for line in outcome.out.splitlines())
    return "" if passed else "no verdict printed"


def first_difference(native, preloaded):
    """The first line that only one of the runs printed."""
    only_native = [line for line in native if line not in preloaded]
    only_preloaded = [line for line in preloaded if line not in native]
    parts = [f"{who}: {found[0]!r}" for who, found in (("natively", only_native), ("preloaded", only_preloaded))
             if found]
    return "; ".join(parts) or "the same lines, but not equally often"


def judge_preloaded(entry, native, outcome, stats):
    """Everything that is wrong with a preloaded run, as sentences."""
    wrong = []
    if problem := verdict(outcome):
        return [problem]
    if native and entry.get("compare", True) and not verdict(native) and lines(native) != lines(outcome):
        wrong.append("output differs, " + first_difference(lines(native), lines(outcome)))
    for line in entry.get("preloaded_lines", []):
        if line not in outcome.out.splitlines():
            wrong.append(f"did not print {line!r}")
    if "missing" in stats:
        return wrong + [f"no statistics: {stats['missing']}"]
    for kernel in entry.get("redirected", []):
        if statistics_file.redirected(stats, kernel) == 0:
            wrong.append(f"no launch of {kernel} was redirected")
    for kernel in entry.get("sliced", []):
        if statistics_file.slices(stats, kernel) == 0:
            wrong.append(f"no launch of {kernel} ran in slices")
    children = entry.get("children")
    if children is not None and stats.get("children_aggregated") != children:
        wrong.append(f"{stats.get('children_aggregated')} children aggregated instead of {children}")
    return wrong


def expected_at(entry, granularity, launcher):
    """An entry says what becomes of a program's sites over the grid, by the launcher that suits; this is what it says of
    another way. By warp nobody counts the children or has a queue that could be too small, and other sites are left for other reasons."""
    left = set(entry.get("left_at", {}).get(granularity, []))
    if launcher == "device":
        left |= set(entry.get("left_on_device", {}))
    missing = {"children", "left", "sliced"} if granularity == "warp" else {"children"} if left else set()
    expected = {key: value for key, value in entry.items() if key not in missing}
    return expected | {"redirected": [kernel for kernel in entry.get("redirected", []) if kernel not in left]}


def judge_device_launcher(entry, native, outcome, stats, granularity):
    """What must hold of any preloaded run, and that the parents did launch their children themselves, so aggregated."""
    entry = expected_at(entry, granularity, "device")
    wrong = judge_preloaded(entry, native, outcome, stats)
    ways = statistics_file.ways(stats)
    if not ways and statistics_file.is_promoted(stats):
        return wrong
    if not wrong and entry.get("redirected") and ways != {f"{granularity}/device"}:
        wrong.append(f"rewritten for {', '.join(sorted(ways)) or 'nothing'}")
    return wrong


def judge_disabled(outcome, stats):
    """KLAP_DISABLE=1 must leave everything as it is."""
    wrong = [verdict(outcome)] if verdict(outcome) else []
    if stats.get("launches", {}).get("redirected"):
        wrong.append("launches were redirected although KLAP_DISABLE is set")
    return wrong


def check_device_launcher(where, entry, native, granularity):
    """One preloaded run whose parents launch their children themselves, aggregated as `granularity` says."""
    outcome, stats = run_preloaded(where, entry, KLAP_LAUNCHER="device", KLAP_GRANULARITY=granularity)
    return record_of(outcome, stats, judge_device_launcher(entry, native, outcome, stats, granularity))


def check_fused(where, entry, native):
    """One preloaded run whose parents run their children in their own kernels, where they may."""
    outcome, stats = run_preloaded(where, entry, KLAP_LAUNCHER="fused")
    return record_of(outcome, stats, judge_preloaded(entry, native, outcome, stats))


def record_of(outcome, stats, wrong):
    """What is kept of one run."""
    record = {"code": outcome.code, "seconds": round(outcome.seconds, 3), "wrong": wrong,
              "statistics": statistics_file.summary(stats)}
    if wrong:
        record["output"] = outcome.out.splitlines()
        record["errors"] = outcome.err.splitlines()[:40]
    return record


def check(where, entry, repeats, say):
    """Runs one program; returns its record, with what is wrong under "wrong"."""
    native = None if entry.get("hangs_natively") else run_native(where, entry)
    wrong = []
    if native and verdict(native) and not entry.get("loses_launches"):
        wrong = [f"natively: {verdict(native)}"]
    record = {"name": entry["name"], "native": native and {"code": native.code, "seconds": round(native.seconds, 3),
                                                           "output": native.out.splitlines()}, "preloaded": []}
    for repeat in range(repeats):
        outcome, stats = run_preloaded(where, entry)
        found = judge_preloaded(entry, native, outcome, stats)
        wrong += [f"preloaded run {repeat + 1}: {text}" for text in found]
        run_record = {"code": outcome.code, "seconds": round(outcome.seconds, 3), "wrong": found}
        if repeat == 0 or found:
            run_record["output"] = outcome.out.splitlines()
            run_record["errors"] = outcome.err.splitlines()[:40]
            run_record["statistics"] = statistics_file.summary(stats)
        record["preloaded"].append(run_record)
        if outcome.timed_out:
            break  # the other repeats would cost a minute each
    if not wrong:  # it would only say the same again
        record["device_launcher"] = {}
        for granularity in entry.get("granularities", GRANULARITIES):
            found = check_device_launcher(where, entry, native, granularity)
            record["device_launcher"][granularity] = found
            wrong += [f"{granularity}, launcher device: {text}" for text in found["wrong"]]
        found = record["fused"] = check_fused(where, entry, native)
        wrong += [f"launcher fused: {text}" for text in found["wrong"]]
    if entry.get("also_disabled"):
        outcome, stats = run_preloaded(where, entry, KLAP_DISABLE="1")
        wrong += [f"with KLAP_DISABLE=1: {text}" for text in judge_disabled(outcome, stats)]
    record["wrong"] = wrong
    say(f"{entry['name']}: " + ("ok" if not wrong else "WRONG: " + "; ".join(wrong)))
    return record
