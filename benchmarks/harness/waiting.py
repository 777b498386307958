"""The table of the programs that wait for their children: preloaded, by tail launches natively, and flat.

CUDA refuses such programs on today's devices. So they are compared with the same algorithm as it has to be written
there, in a program of its own: what stands behind a wait is a kernel in a tail launch.
"""

from . import table
from .measure import variant
from .report import best_cell, divide, geometric_mean, ratio_text, time_of
from .variants import BEST, FLAT, NATIVE, WAITS

VARIANTS = [NATIVE, BEST, FLAT, WAITS]


def has_waits(content):
    return any(variant(record, WAITS) for record in content["rows"])


def us_cell(record, name):
    """A variant's time in microseconds, or what went wrong with it."""
    found, ms = variant(record, name), time_of(record, name)
    if ms:
        return f"{1000 * ms:,.{0 if ms >= 0.1 else 1}f}"
    return found["verdict"] if found is not None and found["verdict"] != "right" else "-"


def ratios(record):
    """How many times faster waiting is than tail launches, and its time as a multiple of flat code's."""
    waits = time_of(record, WAITS)
    return divide(time_of(record, BEST), waits), divide(waits, time_of(record, FLAT))


def mean_cell(values):
    found = [value for value in values if value]
    return f"{ratio_text(geometric_mean(found))} ({len(found)})" if found else "-"


def table_rows(content):
    rows = [["row", "tail launches, us", "limit", "flat, us", "waits, us", "tail / waits", "waits / flat"]]
    records = [record for record in content["rows"] if variant(record, WAITS)]
    for record in records:
        rows.append([record["name"], us_cell(record, BEST), best_cell(record), us_cell(record, FLAT),
                     us_cell(record, WAITS), *[ratio_text(value) for value in ratios(record)]])
    faster, slower = zip(*[ratios(record) for record in records])
    rows.append(["geometric mean (rows)", "", "", "", "", mean_cell(faster), mean_cell(slower)])
    return rows


def text_of(content, markdown=False):
    show = table.markdown if markdown else table.render
    return (show(table_rows(content)) + "\n\nMedians. Tail launches run natively, at the best limit of pending launches. "
            "\"waits\" is preloaded.")
