"""The soak program (tests/gpu/programs/soak.cu) in each form, with how much memory process and device have in use.

Each part is a process that runs for some time. What grows after its first minute, from round to round, is wrong if it
is more than what the native parts grow by: the driver itself keeps a little for each reset of the device. One native
part has graphs, of kernels that launch nothing.
"""

import os
import re
import statistics
import tempfile

from harness import process, statistics_file

from . import programs

SETTLED = 60  # seconds after which nothing is to grow any more
LEAST_SAMPLES = 6  # behind that, for a judgement
MOST_GROWTH = {"process": 64, "device": 1024}  # KiB a round beyond the native part
SAMPLE = re.compile(r"^SAMPLE ([\d.]+) (\d+) (\d+) (\d+)(?: \d+)?$", re.MULTILINE)
# What is shown, the program's part, whether it is preloaded, and its settings.
PARTS = [
    ("native", "native", False, {}),
    ("native, graphs without launches", "plain", False, {}),
    ("preloaded", "all", True, {}),
    ("preloaded, one kernel", "all", True, {"KLAP_LAUNCHER": "fused"}),
    ("preloaded, launched by the device", "native", True, {"KLAP_LAUNCHER": "device"}),
]
NATIVE_PARTS = sum(not preloaded for _, _, preloaded, _ in PARTS)


def samples_of(text):
    return [{"seconds": float(seconds), "sequences": int(sequences), "process": int(resident), "device": int(device)}
            for seconds, sequences, resident, device in SAMPLE.findall(text)]


def growth(samples, what):
    """KiB a round, between the medians of the first and the last third behind the first minute; None if there are too few."""
    settled = [sample[what] for sample in samples if sample["seconds"] >= SETTLED]
    if len(settled) < LEAST_SAMPLES:
        return None
    third = len(settled) // 3
    return (statistics.median(settled[-third:]) - statistics.median(settled[:third])) / (len(settled) - third)


def run(where, part, seconds):
    title, what, preloaded, settings = part
    with tempfile.TemporaryDirectory() as folder:
        stats_file = os.path.join(folder, "stats.json")
        environment = where.preloaded(stats_file, **settings) if preloaded else where.native()
        outcome = process.run([where.program("gpu", "soak"), str(seconds), "1", what], environment, seconds + 60)
        stats = statistics_file.read(stats_file) if preloaded else {}
    samples = samples_of(outcome.out)
    record = {"part": title, "seconds": seconds, "samples": samples, "wrong": programs.verdict(outcome),
              "growth": {of: growth(samples, of) for of in MOST_GROWTH}}
    if preloaded:
        record["children_aggregated"] = stats.get("children_aggregated")
        record["left"] = stats.get("launches", {}).get("left", {})
        if not record["wrong"] and not record["children_aggregated"]:
            record["wrong"] = "nothing was aggregated"
        in_graphs = [name for name, reasons in record["left"].items() if "parents in graphs" in reasons]
        if not record["wrong"] and in_graphs:
            record["wrong"] = f"graphs ran the originals of {in_graphs}"
    return record


def judge(record, natives):
    """What is wrong with a part: its own verdict, and memory that grows by more than that of any native part."""
    wrong = [record["wrong"]] if record["wrong"] else []
    for what, most in MOST_GROWTH.items():
        here = record["growth"][what]
        there = max([native["growth"][what] or 0 for native in natives], default=0)
        if here is not None and here > max(there, 0) + most:
            wrong.append(f"the {what} has {here:.0f} KiB more after each round, natively {there:.0f}")
    return wrong


def check(where, seconds, say):
    records = []
    for part in PARTS:
        record = run(where, part, seconds)
        records.append(record)
        record["wrong"] = judge(record, records[:NATIVE_PARTS])
        say(f"{record['part']}: {'; '.join(record['wrong']) if record['wrong'] else 'right'}")
    return records


def rows(records):
    def cell(value):
        return "-" if value is None else f"{value:.0f}"

    return [["part", "sequences", "process, MiB", "KiB more a round", "device, MiB", "KiB more a round"],
            *[[record["part"], record["samples"][-1]["sequences"] if record["samples"] else 0,
               *[text for what in MOST_GROWTH
                 for text in (cell(record["samples"][-1][what] / 1024 if record["samples"] else None),
                              cell(record["growth"][what]))]]
              for record in records]]
