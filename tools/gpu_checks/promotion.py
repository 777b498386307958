"""Promoted chains: the six programs of KLAP's section III, in every mode, at three sizes, in tiles of two shapes.

A run is one process that solves its problem many times and checks every result. It is only believed to be in a mode
if the statistics say so: the site's remark names the mode, and as many links ran by promotion as there were. A mode
that a program's chain does not allow gives way to one that needs less, which the table shows behind the time.
"""

import json
import os
import re
import tempfile

from harness import process, statistics_file, table

PROGRAMS = {"los": [], "pd": [], "pt": [], "sc": [], "unq": [], "upd": []}
SIZES = {"small": 16384, "medium": 204800, "large": 25174016}
SHAPES = {"8192": "16", "512": "1"}  # elements of a tile: --per-thread
MODES = ("auto", "P", "PA", "PO", "PAO", "lookback")
NAMES = {"one link after another": "PA", "overlapping": "PAO", "look-back": "lookback",
         "one link after another by device launches": "P", "overlapping by device launches": "PO"}  # as remarks begin
# What a mode gives way to where a chain does not allow it, itself first.
GIVES_WAY_TO = {"P": ("P",), "PA": ("PA",), "PO": ("PO", "P"), "PAO": ("PAO", "PA"),
                "lookback": ("lookback", "PAO", "PA"), "auto": ("lookback", "PAO", "PA")}
REPEATS = 20
# Of chains with more links than CUDA holds launches of: one block runs the rest, link by link.
LAUNCHED_REPEATS = 3
MOST_LAUNCHED = 2048
LIMIT = 120
# compute-sanitizer is some hundred times slower, and racecheck more: a few dozen links.
SANITIZED = ["--elements", "12288", "--reps", "1", "--warmup", "0"]


def arguments(shape, elements, repeats):
    return ["--elements", str(elements), "--per-thread", SHAPES[shape], "--reps", str(repeats), "--warmup", "1",
            "--json", "-"]


def links(shape, elements):
    tile = 512 * int(SHAPES[shape])
    return (elements + tile - 1) // tile


def last_json(text):
    """The report that the program printed; {} if there is none."""
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return {}
    return {}


def native(where, program, shape, size, repeats):
    """The program as it is; at sizes that CUDA's default limit does not hold it loses launches, which is no fault."""
    command = [where.program("bench", program), *arguments(shape, SIZES[size], repeats)]
    outcome = process.run(command, where.native(), LIMIT)
    result = last_json(outcome.out).get("result", {})
    right = outcome.code == 0 and result.get("wrong") == 0
    return {"ms": result.get("ms", {}).get("median") if right else None, "right": right}


def modes_of(stats):
    """The modes that the remarks of the chain's kernels name; "left" where one is not promoted."""
    sites = [site for module in stats.get("modules", []) for site in module.get("sites", [])]
    return {NAMES.get(site.get("detail", "").split(",")[0], "left") if site.get("granularity") == "promotion" else "left"
            for site in sites}


def judge(mode, expected_links, outcome, result, stats):
    """(the mode it ran in, what is wrong)."""
    if outcome.timed_out:
        return "", [outcome.describe()]
    if outcome.code != 0 or result.get("wrong", 1) != 0:
        return "", [result.get("first_mistake") or f"{outcome.describe()}: {outcome.err.strip()[-200:]}"]
    if "missing" in stats:
        return "", [f"no statistics: {stats['missing']}"]
    modes = modes_of(stats)
    if len(modes) != 1 or "left" in modes:
        return "", [f"the kernels' chains run as {', '.join(sorted(modes)) or 'nothing'}"]
    (actual,) = modes
    if actual not in GIVES_WAY_TO[mode]:
        return actual, [f"runs as {actual}"]
    promoted = stats.get("links_promoted")
    if promoted != expected_links:
        return actual, [f"{promoted} links ran by promotion instead of {expected_links}"]
    return actual, []


def repeats_of(mode, chain_links, repeats):
    is_long = mode in ("P", "PO") and chain_links > MOST_LAUNCHED
    return min(repeats, LAUNCHED_REPEATS) if is_long else repeats


def run(where, program, shape, size, mode, repeats):
    """One process in one mode; its record."""
    repeats = repeats_of(mode, links(shape, SIZES[size]), repeats)
    command = [where.program("bench", program), *arguments(shape, SIZES[size], repeats)]
    with tempfile.TemporaryDirectory() as folder:
        stats_file = os.path.join(folder, "stats.json")
        outcome = process.run(command, where.preloaded(stats_file, KLAP_PROMOTION=mode), LIMIT)
        stats = statistics_file.read(stats_file)
    result = last_json(outcome.out).get("result", {})
    # The first link is the program's own launch. One more run than is timed.
    expected = (links(shape, SIZES[size]) - 1) * (repeats + 1)
    actual, wrong = judge(mode, expected, outcome, result, stats)
    return {"program": program, "shape": shape, "size": size, "mode": mode, "ran_as": actual, "wrong": wrong,
            "ms": result.get("ms", {}), "links": links(shape, SIZES[size]),
            "statistics": statistics_file.summary(stats), "links_promoted": stats.get("links_promoted")}


def cell(record):
    if record["wrong"]:
        return "WRONG"
    shown = table.milliseconds(record["ms"].get("median"))
    return shown if record["ran_as"] == record["mode"] else f"{shown} ({record['ran_as']})"


def check(session, sizes, repeats):
    """All of them; the records."""
    records = []
    rows = [["program", "tile", "links", "native, default limit", *MODES]]
    for size in sizes:
        for shape in SHAPES:
            for program in PROGRAMS:
                if not session.enough_time(f"promotion {program} {size} {shape}", 20):
                    return records, rows
                plain = native(session.where, program, shape, size, 3)
                row = [f"{program}-{size}", shape, links(shape, SIZES[size]),
                       table.milliseconds(plain["ms"]) if plain["right"] else "loses launches"]
                for mode in MODES:
                    record = run(session.where, program, shape, size, mode, repeats)
                    record["native"] = plain
                    records.append(record)
                    row.append(cell(record))
                rows.append(row)
                session.say("promotion " + " ".join(str(part) for part in row))
    return records, rows


def sanitizer_jobs(where, job):
    """memcheck and racecheck of every program in both shapes and every mode that they take; `job` is sanitizer.Job."""
    jobs = []
    for tool in ("memcheck", "racecheck"):
        for program in PROGRAMS:
            for per_thread in SHAPES.values():
                for mode in MODES[1:]:
                    # It takes no module that launches from the device.
                    if tool == "racecheck" and mode in ("P", "PO"):
                        continue
                    jobs.append(job(tool, where.program("bench", program), [*SANITIZED, "--per-thread", per_thread],
                                    {"KLAP_PROMOTION": mode}))
    return jobs


def sanitizer_rows(records):
    """A table: a program and shape a row, and what came of it in each mode."""
    rows = [["tool", "program", "tile", *MODES[1:]]]
    found = {}
    for record in records:
        per_thread = re.search(r"--per-thread (\d+)", " ".join(record["arguments"])).group(1)
        key = (record["tool"], record["program"], str(512 * int(per_thread)))
        found.setdefault(key, {})[record["settings"]["KLAP_PROMOTION"]] = record["result"]
    for key, cells in found.items():
        rows.append([*key, *(cells.get(mode, "") for mode in MODES[1:])])
    return rows
