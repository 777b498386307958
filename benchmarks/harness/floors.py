"""How far each row is from the least that it can take, and where the rest of its time goes.

The floor of a row is the time to move the bytes that any solution has to move, or to do its arithmetic where that
takes longer, plus that of the kernels and fills that the program's host code launches one after another: nothing can
hide in a stream how long the next of them takes to begin. Preloaded there is a consumer behind each parent, but none
behind a chain that is promoted. What the host waits for in between is in no floor, nor are atomic operations: each of
the problems could be solved without.

Where the rest goes is measured: by the flat variant, by variants without one optimisation each, and by the time of
the kernels themselves (KLAP_TIMING, in runs of their own).
"""

import statistics

from . import report, table
from .measure import variant
from .statistics_file import PROMOTION
from .variants import AT_BEST, FLAT, OPTIMISATIONS, WITHOUT

BYTES_PER_US = 4.3e6  # 4.3 TB/s, what an H200's memory delivers
FLOPS_PER_US = 60e6  # 60 TFLOP/s, its single precision
FIRST_US, NEXT_US = 5.6, 3.4  # an empty kernel between two events, and each further one behind it in the stream
ARITHMETIC = "arithmetic, us"
PAPER = "grid/host"  # what is measured beside the library's own choice, and without optimisations


def launches_us(count):
    return FIRST_US + NEXT_US * (count - 1) if count else 0.0


def about(record, name):
    """What the program said of itself when it was run as this variant; nothing if it was not."""
    found = variant(record, name)
    return record["description"] | found.get("description", {}) if found else {}


def redirected_a_run(record, name):
    """Launches of parents that ran a variant, in the mean of the runs; None where that is not known."""
    found = variant(record, name) or {}
    runs = found.get("right", 0) + found.get("wrong", 0)
    return found["redirected"] / runs if runs and "redirected" in found else None


def consumers(record, name):
    """Kernels that the library adds to a run; None where that is not known."""
    found = variant(record, name) or {}
    if "sites" not in found:
        return None
    ways = {site.get("granularity") for site in found["sites"] if site.get("verdict") == "rewritten"}
    if not ways - {PROMOTION}:
        return 0
    return about(record, name).get("parent_launches", redirected_a_run(record, name))


class Floor:
    """Of one variant of a row. What is None is not known."""

    def __init__(self, record, name, added=0):
        self.added = added
        said = about(record, name)
        # Older programs say nothing of kernels that launch nothing.
        self.at_least = "kernel_launches" not in said
        self.own = redirected_a_run(record, name)
        if not self.at_least:
            self.own = said["kernel_launches"] + said.get("fills", 0)
        self.bytes_us = said["bytes_to_move"] / BYTES_PER_US if "bytes_to_move" in said else None
        self.flops_us = said["float_operations"] / FLOPS_PER_US if "float_operations" in said else None
        self.us = None
        if None not in (self.own, self.added, self.bytes_us):
            self.us = max(self.bytes_us, self.flops_us or 0) + launches_us(self.own + self.added)

    def launches_text(self):
        if None in (self.own, self.added):
            return "-"
        return ("at least " if self.at_least else "") + f"{self.own:g}" + (f" + {self.added:g}" if self.added else "")


def preloaded_floor(record, name):
    return Floor(record, name, consumers(record, name))


def us_of(record, name):
    ms = report.time_of(record, name)
    return ms * 1000 if ms else None


def minus(a, b):
    return None if a is None or b is None else a - b


def us_text(value):
    if value is None:
        return "-"
    return f"{value:.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f}"


def our_name(record, content):
    """The library's own choice, at the best limit where the row needs that."""
    return report.ours(record, content)[0]


def floor_cells(record, content, names):
    """(the row's cells but the ratios, the ratios of flat and of our time to their floors)"""
    ours = our_name(record, content)
    flat, preloaded = Floor(record, FLAT), preloaded_floor(record, ours)
    times = [us_of(record, ours if name == report.usual(content) else name) for name in names]
    cells = [record["name"] + (AT_BEST if AT_BEST in ours else ""), us_text(preloaded.bytes_us),
             us_text(preloaded.flops_us), flat.launches_text(), preloaded.launches_text(), us_text(flat.us),
             us_text(preloaded.us), *[us_text(us) for us in times]]
    return cells, [report.divide(us_of(record, FLAT), flat.us), report.divide(us_of(record, ours), preloaded.us)]


def mean_text(ratios):
    found = [ratio for ratio in ratios if ratio]
    return f"{report.ratio_text(statistics.geometric_mean(found))} ({len(found)})" if found else "-"


def floor_rows(content):
    usual = report.usual(content)
    names = [FLAT, *([PAPER] if usual != PAPER else []), usual]
    rows = [["row", "bytes, us", ARITHMETIC, "launches, flat", "launches, preloaded", "floor, flat", "floor, preloaded",
             *[f"{name}, us" for name in names], "flat / floor", f"{usual} / floor"]]
    ratios = []
    for record in content["rows"]:
        cells, found = floor_cells(record, content, names)
        rows.append(cells + [report.ratio_text(ratio) for ratio in found])
        ratios.append(found)
    rows.append(["geometric mean (rows)", *[""] * (len(rows[0]) - 3), *[mean_text(column) for column in zip(*ratios)]])
    dropped = rows[0].index(ARITHMETIC)
    if all(row[dropped] in ("-", "") for row in rows[1:]):  # few programs say how much arithmetic there is
        rows = [row[:dropped] + row[dropped + 1:] for row in rows]
    return rows


def gpu_us(record):
    """{"parents", "consumers", "outside"}: us of a run in these kernels and in none; empty if not measured."""
    breakdown = record.get("breakdown") or {}
    measured, runs = breakdown.get("gpu_ms"), breakdown.get("run_ms")
    if not measured or not runs or breakdown.get("verdict") != "right":
        return {}
    found = {who: sum(measured.get(who, {}).values()) / len(runs) * 1000 for who in ("parents", "consumers")}
    # The median, since the first run also sets up the library's queues.
    return found | {"outside": statistics.median(runs) * 1000 - sum(found.values())}


def without(record, key):
    """What a run takes longer without that optimisation."""
    return minus(us_of(record, PAPER + WITHOUT + key), us_of(record, PAPER))


def rest_columns(content):
    """(heading, record -> us) of everything that the rest of a row's time can be split by."""
    usual, read = report.usual(content), launch_costs(content).get("read")

    def reads(record):
        count = about(record, our_name(record, content)).get("host_reads")
        return None if read is None or count is None else count * read

    def more_launches(record):
        floors = preloaded_floor(record, our_name(record, content)), Floor(record, FLAT)
        return minus(*[None if None in (floor.own, floor.added) else launches_us(floor.own + floor.added)
                       for floor in floors])

    columns = [
        (f"{usual} over its floor",
         lambda r: minus(us_of(r, our_name(r, content)), preloaded_floor(r, our_name(r, content)).us)),
        ("flat over its floor", lambda r: minus(us_of(r, FLAT), Floor(r, FLAT).us)),
        (f"{usual} over flat", lambda r: minus(us_of(r, our_name(r, content)), us_of(r, FLAT))),
        ("of these, floor of more launches", more_launches), ("host reads", reads)]
    columns += [(who, lambda r, who=who: gpu_us(r).get(who)) for who in ("parents", "consumers", "outside")]
    return columns + [(f"without {key}", lambda r, key=key: without(r, key)) for key in OPTIMISATIONS]


def rest_rows(content):
    """Columns that no row has anything for are left out."""
    columns = [(heading, [value(record) for record in content["rows"]]) for heading, value in rest_columns(content)]
    columns = [(heading, values) for heading, values in columns if any(value is not None for value in values)]
    names = [record["name"] for record in content["rows"]]
    return [["row", *[heading for heading, _ in columns]],
            *[[name, *[us_text(values[i]) for _, values in columns]] for i, name in enumerate(names)]]


def launch_costs(content):
    """{"first", "next", "read"} in us as the file's micro rows have them: an empty kernel, each further one behind
    it, and what it takes longer for the host to read a number behind each."""
    found = {}
    for record in content["rows"]:
        said = about(record, FLAT)
        us = us_of(record, FLAT)
        if record["program"] == "micro" and us and said.get("children") == 0 and said.get("parents") == 1:
            found[said.get("rounds", 1), said.get("host_reads", 0)] = us
    costs = {"first": found[1, 0]} if (1, 0) in found else {}
    for (rounds, reads), us in found.items():
        if rounds > 1 and not reads and costs:
            costs["next"] = (us - costs["first"]) / (rounds - 1)
        if reads and (rounds, 0) in found:
            costs["read"] = (us - found[rounds, 0]) / reads
    return costs


def costs_text(content):
    words = {"first": "an empty kernel", "next": "each further kernel behind it", "read": "a host's read behind each"}
    costs = launch_costs(content)
    return "Measured in this file: " + ", ".join(f"{words[key]} {us_text(us)} us" for key, us in costs.items()) + "." \
        if costs else ""


def differing_parents(content):
    """What the programs say of their parents' launches, where it is not what was counted."""
    found = []
    for record in content["rows"]:
        for name in dict.fromkeys((PAPER, our_name(record, content))):
            said, counted = about(record, name).get("parent_launches"), redirected_a_run(record, name)
            if None not in (said, counted) and said != counted:
                found.append(f"{record['name']} {name} {counted:g} of {said}")
    return found


def text_of(content, markdown=False):
    show = table.markdown if markdown else table.render
    if not content["rows"]:
        return report.origin(content)
    parts = [report.origin(content), show(floor_rows(content)),
             f"The floor is the bytes at {BYTES_PER_US / 1e6:g} TB/s, or arithmetic at {FLOPS_PER_US / 1e6:g} TFLOP/s "
             f"where that is more, plus {FIRST_US:g} us for the\nfirst launch of a run and {NEXT_US:g} us for each "
             "other. Launches are kernels and fills by the host; \"+\": the consumers\nthat the library adds.",
             costs_text(content),
             "Where the rest goes, us of a run:", show(rest_rows(content)),
             f"Without: what {PAPER} takes longer without that optimisation. Parents, consumers and outside both: "
             "measured\nin other runs, which the measuring makes longer."]
    differing = differing_parents(content)
    if differing:
        parts.append("Launches of parents that ran a variant, in a run's mean, of those that the program says: "
                     + ", ".join(differing))
    return "\n\n".join(part for part in parts if part)
