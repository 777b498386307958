"""The measured tables in the benchmark programs' own README.md, rewritten from a result file.

Each compares the times with the physical floor: the bytes that any solution has to move, at what the H200's memory
delivers.
"""

import os

from . import report, table
from .rows import BadInput
from .variants import BEST, BY_HAND, FLAT, LIBRARY

BEGIN = "<!-- measured: written by benchmarks/run --texts -->"
END = "<!-- end of measured -->"
FLOOR_BYTES_PER_US = 4.0e6  # 4.0 TB/s


def microseconds(value):
    if value is None:
        return "-"
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def distance(ms, floor_us):
    """How many times the floor."""
    return report.ratio_text(report.divide(ms * 1000 if ms else None, floor_us))


def program_table(records, content):
    others = [name for name in (LIBRARY, BY_HAND) if any(report.variant(record, name) for record in records)]
    lines = [["row", "launches", "floor, us", "native best, ms", "flat", *others, "preloaded", "flat / floor",
              "preloaded / floor"]]
    for record in records:
        about = record["description"]
        floor = about["bytes_to_move"] / FLOOR_BYTES_PER_US if about.get("bytes_to_move") else None
        name, ms = report.ours(record, content)
        best = report.cell(record, BEST)
        if record["best_limit"]:
            best += f" (limit {record['best_limit']:,})"
        lines.append([record["name"], f"{about.get('child_launches', 0):,}", microseconds(floor), best,
                      report.cell(record, FLAT), *[report.cell(record, other) for other in others],
                      report.cell(record, name), distance(report.time_of(record, FLAT), floor), distance(ms, floor)])
    return table.markdown(lines)


def block(records, content):
    return f"{BEGIN}\nMedians in ms on {report.origin(content)}.\n\n{program_table(records, content)}\n{END}"


def rewritten(text, file, new):
    """The README's text with the block replaced."""
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin or text.count(BEGIN) != 1 or text.count(END) != 1:
        raise BadInput(f"{file}: the lines around the measured table are missing or not in order:\n{BEGIN}\n{END}")
    return text[:begin] + new + text[end + len(END):]


def write(content, benchmarks):
    """Rewrites every README whose program is in the file; returns the files. Nothing is written if one cannot be."""
    programs = {}
    for record in content["rows"]:
        programs.setdefault(record.get("folder") or record["program"], []).append(record)
    new = {}
    for program, records in sorted(programs.items()):
        path = os.path.join(benchmarks, program, "README.md")
        shown = os.path.join(program, "README.md")
        try:
            with open(path, encoding="utf-8") as file:
                new[path] = rewritten(file.read(), shown, block(records, content))
        except OSError as error:
            raise BadInput(f"{shown}: {error.strerror}") from error
    for path, text in new.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return list(new)
