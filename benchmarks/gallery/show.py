#!/usr/bin/env python3
"""Runs the programs of the gallery natively and preloaded, and prints both side by side.

Without a GPU they run on the emulated one, in smaller sizes. Its times mean nothing, so the table has the launches that
kernels made instead. tools/gallery builds what is needed and calls this.
"""

import argparse
import collections
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))

from harness import device, process, statistics_file, table  # noqa: E402

LIMIT = 120  # seconds a run may take
RELAXED = {"KLAP_ORDERING": "relaxed"}
# On a GPU all but the last run within CUDA's limit of pending launches. The last shows what happens beyond it.
# A row without sizes for the emulated GPU is about time only.
Entry = collections.namedtuple("Entry", "name program on_gpu emulated settings", defaults=({},))
ENTRIES = [
    Entry("breadth-first search", "bfs", "--vertices 2000 --degree 500", "--vertices 300 --degree 10"),
    Entry("breadth-first search, relaxed", "bfs", "--vertices 2000 --degree 500", None, RELAXED),
    Entry("quadtree", "qt", "--max-depth 8 --leaf-points 16", "--points 600"),
    Entry("quicksort", "qsort", "--elements 16000", "--elements 1500"),
    Entry("stream compaction", "compaction", "--elements 500000", "--elements 50000"),
    Entry("Mandelbrot set", "mandelbrot", "--smallest 32", "--log2-side 7"),
    Entry("Mandelbrot set, small squares", "mandelbrot", "--smallest 4", "--log2-side 9 --smallest 8"),
]
PROGRAMS = list(dict.fromkeys(entry.program for entry in ENTRIES))
# What a program printed at its end, the statistics of a preloaded run, and what is wrong with the run.
Run = collections.namedtuple("Run", "report statistics problem")


def last_line(text):
    return (text.strip().splitlines() or [""])[-1]


class Place:
    """Where programs run: on the GPU, or on the emulated one."""

    def __init__(self, build, is_emulated, pictures):
        self.where = process.Installation(build)
        self.is_emulated = is_emulated
        self.pictures = pictures

    def program(self, entry):
        return self.where.program("emulated" if self.is_emulated else "bench", entry.program)

    def command(self, entry, picture, is_native):
        words = [self.program(entry), *(entry.emulated if self.is_emulated else entry.on_gpu).split(), "--json", "-"]
        if self.is_emulated:
            words += ["--reps", "1", "--warmup", "0"]
        elif is_native:
            words.append("--count-failures")
        return words + (["--png", picture] if picture else [])

    def environment(self, entry, statistics):
        """The environment of a run; a native one has no file of statistics."""
        found = self.where.preloaded(statistics, **entry.settings) if statistics else self.where.native()
        if self.is_emulated:
            found.update(LD_LIBRARY_PATH=os.path.join(self.where.build, "lib", "emulator"), KLAP_EMULATOR_QUIET="1",
                         KLAP_EMULATOR_SCHEDULE="fast", KLAP_LINKER="driver", KLAP_GUARD="off")
        if "KLAP_NVRTC" in os.environ:
            found["KLAP_NVRTC"] = os.environ["KLAP_NVRTC"]
        return found

    def run(self, entry, statistics=None):
        picture = self.picture(entry, statistics is None)
        command = self.command(entry, picture, statistics is None)
        outcome = process.run(command, self.environment(entry, statistics), LIMIT)
        said = last_line(outcome.out)
        if outcome.timed_out or outcome.code not in (0, 1) or not said:
            return Run({}, {}, f"{outcome.describe()}: {last_line(outcome.err)}")
        report = json.loads(said)
        return Run(report, statistics_file.read(statistics) if statistics else {},
                   report["result"].get("first_mistake", ""))

    def picture(self, entry, is_native):
        """The file for the picture of a program that makes one; of several rows, the last one's picture stays."""
        how = "native" if is_native else "preloaded"
        return os.path.join(self.pictures, f"{entry.program}-{how}.png") if entry.program == "mandelbrot" else ""


def problem_of_preloaded(run):
    """What must not be, empty if all is as it should."""
    if run.problem:
        return run.problem
    if "missing" in run.statistics:
        return f"no statistics: {run.statistics['missing']}"
    if not sum(run.statistics["launches"]["redirected"].values()):
        return "no launch was rewritten"
    return ""


def verdict(run):
    """Whether the result was the CPU's, for the table."""
    if not run.report:
        return "failed"
    lost = run.report["result"].get("lost_launches")
    said = "wrong" if run.problem else "right"
    return f"{said}, {lost:,} lost" if lost else said


def gained(native, preloaded):
    """How many times faster, where both results are right."""
    if native.problem or preloaded.problem:
        return "-"
    factor = native.report["result"]["ms"]["median"] / preloaded.report["result"]["ms"]["median"]
    return f"{factor:.0f}x" if factor >= 10 else f"{factor:.1f}x"


def cells(place, native, preloaded):
    """The columns of a row behind the name of the program."""
    def of_report(run, value):
        return value(run.report) if run.report else "-"

    children = of_report(native if native.report else preloaded, lambda report: f"{report['child_launches']:,}")
    results = [verdict(native), verdict(preloaded)]
    if place.is_emulated:
        return [children, *(of_report(run, lambda report: f"{report['launches_by_kernels']:,}")
                            for run in (native, preloaded)), *results]
    times = [of_report(run, lambda report: f"{report['result']['ms']['median']:.3f}") for run in (native, preloaded)]
    return [children, *times, gained(native, preloaded), *results]


def show(place, entries):
    """Prints the table; returns what was wrong."""
    what = ["launches by kernels, native", "preloaded"] if place.is_emulated else ["native, ms", "preloaded, ms", "faster"]
    rows, wrong = [["program", "children", *what, "native result", "preloaded result"]], []
    with tempfile.TemporaryDirectory(prefix="klap-gallery-") as folder:
        for entry in entries:
            native, preloaded = place.run(entry), place.run(entry, os.path.join(folder, "stats.json"))
            problem = problem_of_preloaded(preloaded)
            wrong += [f"{entry.name}: {problem}"] if problem else []
            rows.append([entry.name, *cells(place, native, preloaded)])
    print(table.render(rows))
    return wrong


def explain(place, entries):
    """The lines below the table."""
    print("\nEach result was compared with what the CPU computes. A launch beyond CUDA's limit of pending launches is lost.")
    if any(entry.settings == RELAXED for entry in entries):
        print("relaxed: with KLAP_ORDERING=relaxed, which says that the order of launches does not matter, as in this search.")
    if any(place.picture(entry, True) for entry in entries):
        print(f"pictures: {place.pictures}/mandelbrot-native.png and mandelbrot-preloaded.png")
    if place.is_emulated:
        print("THIS WAS AN EMULATION, and how long it took means nothing. On a machine with a GPU, this command prints times.")


def parse():
    parser = argparse.ArgumentParser(prog="tools/gallery", description=__doc__.splitlines()[0])
    parser.add_argument("--no-build", action="store_true", help="use what is built already")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="the build folder (build)")
    parser.add_argument("--pictures", help="the folder for pictures (gallery in the build folder)")
    parser.add_argument("--emulated", action="store_true", help="on the emulated GPU, even if there is a real one")
    parser.add_argument("--probe", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"only some of {', '.join(PROGRAMS)}")
    given = parser.parse_args()
    unknown = sorted(set(given.programs) - set(PROGRAMS))
    if unknown:
        parser.error(f"{', '.join(unknown)}: not in the gallery, which has {', '.join(PROGRAMS)}")
    return given


def main():
    given = parse()
    found, why_not = (None, "as asked for") if given.emulated else device.probe()
    if given.probe:
        print("gpu" if found else "emulated")
        return 0
    build = os.path.abspath(given.build)
    pictures = os.path.abspath(given.pictures or os.path.join(build, "gallery"))
    os.makedirs(pictures, exist_ok=True)
    place = Place(build, found is None, pictures)
    entries = [entry for entry in ENTRIES if entry.program in (given.programs or PROGRAMS)
               and not (place.is_emulated and entry.emulated is None)]
    missing = [path for path in [place.where.library, *map(place.program, entries)] if not os.path.exists(path)]
    if missing:
        print(f"not built: {', '.join(dict.fromkeys(missing))}", file=sys.stderr)
        return 1
    print(f"on {found['device']}\n" if found else f"no GPU ({why_not}): on the emulated GPU\n", flush=True)
    wrong = show(place, entries)
    explain(place, entries)
    for text in wrong:
        print(f"WRONG: {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
