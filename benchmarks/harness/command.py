"""The command line of benchmarks/run."""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from . import (build, costs, decisions, device, figures, floors, kernel_profile, measure, offered, process, report,
               results, rows, serve, texts, variants, waiting)
from .progress import Progress
from .rows import BadInput

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WRONG, USAGE, NO_GPU, INTERRUPTED = 1, 2, 77, 130
MIN_REPS = 5
LAST_ROW_SECONDS = 15.0  # a row with less of the budget left is not begun

DESCRIPTION = """Measures the benchmark programs on a GPU: natively at CUDA's default pending-launch limit and at the
best one that loses no launch, without dynamic parallelism, through a library or aggregated by hand where there is
such a variant, and preloaded with every granularity and launcher. Repetitions of all variants take turns and every
result is checked. Exit code 0: everything right; 1: something was wrong; 2: wrong usage; 77: no GPU; 130: interrupted."""


def parser():
    result = argparse.ArgumentParser(prog="benchmarks/run", description=DESCRIPTION)
    result.add_argument("names", nargs="*", metavar="ROW", help="rows by name or glob")
    which = result.add_argument_group("which rows")
    which.add_argument("--list", action="store_true", help="print the rows")
    which.add_argument("--paper", help="the rows of this paper")
    which.add_argument("--quick", action="store_true", help="one fast row of every program")
    which.add_argument("--all", action="store_true", help="every row")
    which.add_argument("--part", metavar="I/N", help="part I of N about equally long parts of the chosen rows")
    which.add_argument("--expect", metavar="FILE", help="earlier result that says how long rows take, for --part")
    how = result.add_argument_group("how")
    how.add_argument("--variants", metavar="GLOB,...", default="",
                     help="only these: native, native best, flat, library, klap, grid/host, ..., none,"
                     " grid/host-readback")
    how.add_argument("--guard", action="store_true",
                     help="measure what the guard needs, and print which of its decisions are right")
    how.add_argument("--waits", action="store_true",
                     help="measure the programs that wait for their children, preloaded, against tail launches and flat code")
    how.add_argument("--reps", type=int, default=7, help="counted repetitions of each variant, at least 5 (7)")
    how.add_argument("--no-prime", action="store_true", help="no uncounted run right before each counted one")
    how.add_argument("--timeout", type=float, default=10, help="seconds after which a program hangs (10)")
    how.add_argument("--start-timeout", type=float, default=60, help="seconds a program may take to start (60)")
    how.add_argument("--row-seconds", type=float, default=40, help="seconds after which a row is cut short (40)")
    how.add_argument("--budget", type=float, default=0, help="seconds after which no row is begun; 0: no end (0)")
    how.add_argument("--no-build", action="store_true", help="use what is built")
    how.add_argument("--build", default=os.path.join(ROOT, "build"), metavar="DIR", help="build folder (build)")
    how.add_argument("--commit", default="", help="what is measured, where git cannot say")
    how.add_argument("--out", metavar="FILE", help="result file (benchmarks/results/<date>-<device>/run-<time>.json)")
    profile = result.add_argument_group("hardware counters")
    profile.add_argument("--profile", metavar="ROW", help="profile the row's kernels with ncu, one run after another")
    profile.add_argument("--variant", default="native", metavar="V",
                         help="which variant: native, flat, klap, grid/host, ... (native)")
    made = result.add_argument_group("from result files")
    made.add_argument("--table", metavar="FILE", help="print the tables again")
    made.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    made.add_argument("--compare", nargs=2, metavar=("A", "B"), help="ratios of two results, row by row")
    made.add_argument("--merge", nargs="+", metavar=("OUT", "FILE"), help="merge the results of parts into OUT")
    made.add_argument("--floors", nargs="+", metavar="FILE",
                      help="how far each row is from its physical floor, and where the rest of its time goes")
    made.add_argument("--costs", nargs="+", metavar="FILE",
                      help="what a record, a child, a virtual block and an empty consumer cost, from the micro rows")
    made.add_argument("--figures", nargs=2, metavar=("DIR", "FILE"), help="draw the papers' figures (needs matplotlib)")
    made.add_argument("--texts", metavar="FILE", help="rewrite the tables in benchmarks/*/README.md")
    # For testing this command.
    result.add_argument("--assume-gpu", action="store_true", help=argparse.SUPPRESS)
    result.add_argument("--benchmarks", default=os.path.join(ROOT, "benchmarks"), help=argparse.SUPPRESS)
    return result


def commit_of(root):
    """The commit with "-changed" if there is more than it, or "unknown"."""
    try:
        found = subprocess.run(["git", "describe", "--always", "--dirty=-changed", "--exclude", "*"], cwd=root,
                               capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return found.stdout.strip() if found.returncode == 0 else "unknown"


def shown_command(argv):
    """The command line without this machine's paths."""
    return [os.path.basename(word) if os.path.isabs(word) else word for word in argv]


def merge(paths):
    if len(paths) < 2:
        raise BadInput("--merge needs the file to write and at least one to read")
    content = results.merge(paths[1:])
    results.write(paths[0], content)
    print(f"{len(content['rows'])} rows of {len(paths) - 1} files")
    return 0


def print_list(found):
    for row in found:
        marks = " ".join(word for word in ("quick" if row.quick else "", row.figure) if word)
        text = f"{row.name:24} {row.paper:6} {row.program:14} {' '.join(row.arguments)}"
        print(text.rstrip() + (f"  [{marks}]" if marks else ""))
    return 0


def all_tables(content, markdown):
    """Everything that is printed at the end of a run."""
    parts = [report.text_of(content, markdown)]
    if decisions.has_decisions(content):
        parts.append(decisions.text_of(content, markdown))
    if waiting.has_waits(content):
        parts.append(waiting.text_of(content, markdown))
    return "\n\n".join(parts)


def from_files(arguments):
    """Does what needs no measuring; returns an exit code, or None if that was not asked for."""
    if arguments.merge:
        return merge(arguments.merge)
    if arguments.table:
        print(all_tables(results.read(arguments.table), arguments.markdown))
        return 0
    for made, paths in ((floors, arguments.floors), (costs, arguments.costs)):
        if paths:
            print("\n\n".join(made.text_of(results.read(path), arguments.markdown) for path in paths))
            return 0
    if arguments.compare:
        print(report.compare_text(*[results.read(path) for path in arguments.compare]))
        return 0
    if arguments.texts:
        written = texts.write(results.read(arguments.texts), arguments.benchmarks)
        print(f"{len(written)} texts rewritten")
        return 0
    if arguments.figures:
        return draw(*arguments.figures)
    return None


def draw(folder, path):
    written, left_out = figures.write(results.read(path), path, folder)
    for file in written:
        print(os.path.relpath(file))
    if left_out:
        print(f"not drawn, since {os.path.basename(path)} has nothing for it: {', '.join(left_out)}")
    return 0


def profile(arguments):
    found = rows.choose(rows.read_all(arguments.benchmarks), [arguments.profile])
    if len(found) != 1:
        raise BadInput(f"--profile takes one row, {arguments.profile} means {len(found)}")
    kernel_profile.find()
    where, header = prepare(arguments, found, Progress())
    combinations = offered.combinations(offered.settings(where))[0]
    record = kernel_profile.profile(where, found[0], arguments.variant, combinations)
    print(kernel_profile.text_of(record))
    path = arguments.out or results.default_path(ROOT, header, f"profile-{found[0].name}")
    results.write(path, {"kind": "klap_jit kernel profile", "schema": results.SCHEMA, **header, **record})
    print(f"\n{report.origin(header)}, written to {os.path.relpath(path)}")
    return 0


def check_numbers(arguments):
    if arguments.reps < MIN_REPS:
        raise BadInput(f"--reps {arguments.reps}: fewer than {MIN_REPS} repetitions say little")
    for name in ("timeout", "start_timeout", "row_seconds"):
        if getattr(arguments, name) <= 0:
            raise BadInput(f"--{name.replace('_', '-')} must be more than 0")


def chosen_rows(arguments):
    found = rows.read_all(arguments.benchmarks)
    if arguments.waits:
        found = [row for row in found if row.waits]
    found = rows.choose(found, arguments.names, arguments.paper, arguments.quick, arguments.all or arguments.waits)
    if arguments.part:
        earlier = {}
        if arguments.expect:
            earlier = {row["name"]: row.get("seconds") for row in results.read(arguments.expect)["rows"]}
        found = rows.part_of(found, *rows.parse_part(arguments.part), earlier)
    return found


class Run:
    """One measuring run: the rows one after another, the result file written after each."""

    def __init__(self, arguments, argv, chosen, header, session):
        self.arguments = arguments
        self.chosen = chosen
        self.header = header
        self.session = session
        self.command = shown_command(argv)
        self.records = []
        self.not_run = []
        self.interrupted = False
        self.path = arguments.out or results.default_path(ROOT, header)

    def content(self):
        options = self.session.options
        settings = {"reps": options.reps, "warmup": options.warmup, "prime": options.prime,
                    "timeout_s": options.timeout, "row_seconds": options.row_seconds,
                    "variants": options.variants, "usual": "/".join(self.session.usual)}
        wrong = [f"{record['name']}: {text}" for record in self.records for text in record["wrong"]]
        return results.content_of(self.header, self.command, settings, self.records, wrong=wrong,
                                  not_run=self.not_run, interrupted=self.interrupted,
                                  seconds=round(self.session.progress.seconds(), 1))

    def seconds_left(self):
        if not self.arguments.budget:
            return self.session.options.row_seconds
        return min(self.session.options.row_seconds, self.arguments.budget - self.session.progress.seconds())

    def measure(self):
        for number, row in enumerate(self.chosen, 1):
            seconds = self.seconds_left()
            if seconds < min(LAST_ROW_SECONDS, self.session.options.row_seconds):
                self.not_run = [later.name for later in self.chosen[number - 1:]]
                return
            self.session.progress.start_row(number, len(self.chosen), row.name)
            running = measure.RowRun(self.session, row, seconds)
            try:
                self.records.append(running.measure())
            except KeyboardInterrupt:
                self.interrupted = True
                self.not_run = [later.name for later in self.chosen[number:]]
                serve.kill_all()
                self.records.append(running.record())
                return
            self.finish_row(self.records[-1])

    def finish_row(self, record):
        results.write(self.path, self.content())
        for text in record["wrong"]:
            self.session.progress.say(f"WRONG: {text}")
        _, ms = report.ours(record, {"settings": {"usual": "/".join(self.session.usual)}})
        best = report.time_of(record, "native best")
        faster = f", {report.ratio_text(best / ms)} faster than native best" if best and ms else ""
        self.session.progress.say(f"done in {record['seconds']:.0f} s{faster}")

    def finish(self):
        """Writes and prints everything; returns the exit code."""
        content = self.content()
        results.write(self.path, content)
        print(all_tables(content, self.arguments.markdown))
        print(f"\nwritten to {os.path.relpath(self.path)}")
        for text in content["wrong"]:
            print(f"WRONG: {text}")
        if self.interrupted:
            return INTERRUPTED
        return WRONG if content["wrong"] or self.not_run else 0


def wanted_variants(arguments, usual):
    """The globs of --variants, and those of --guard and --waits."""
    globs = [word.strip() for word in arguments.variants.split(",") if word.strip()]
    globs += variants.names_for_guard(usual) if arguments.guard else []
    return globs + (waiting.VARIANTS if arguments.waits else [])


def session_of(arguments, where, folder, progress):
    known = offered.settings(where)
    combinations, usual = offered.combinations(known)
    options = measure.Options(
        reps=arguments.reps, prime=not arguments.no_prime, timeout=arguments.timeout,
        start_timeout=arguments.start_timeout, row_seconds=arguments.row_seconds,
        variants=wanted_variants(arguments, usual))
    return measure.Session(where, options, folder, progress, combinations, usual, "KLAP_TIMING" in known)


def prepare(arguments, chosen, progress):
    """A device and a complete build, or an exception that says what is missing: (where, header of result files)."""
    found, why_not = device.assumed() if arguments.assume_gpu else device.probe()
    if found is None:
        raise serve.NoDevice(why_not)
    where = process.Installation(os.path.abspath(arguments.build))
    programs = [program for row in chosen for program in row.programs()]
    if not arguments.no_build:
        build.build(ROOT, where.build, programs, progress.say)
    build.check(where, programs)
    return where, device.describe(found, arguments.commit or commit_of(ROOT))


def measure_rows(arguments, argv):
    check_numbers(arguments)
    chosen = chosen_rows(arguments)
    progress = Progress()
    where, header = prepare(arguments, chosen, progress)
    folder = tempfile.mkdtemp(prefix="klap-bench-")
    try:
        run = Run(arguments, argv, chosen, header, session_of(arguments, where, folder, progress))
        run.measure()
        serve.kill_all()
        return run.finish()
    finally:
        serve.kill_all()
        shutil.rmtree(folder, ignore_errors=True)


def interrupt(_signal, _frame):
    """What ends the command otherwise must not leave processes on the GPU either."""
    raise KeyboardInterrupt


def main(argv):
    arguments = parser().parse_args(argv)
    try:
        if arguments.list:
            return print_list(rows.read_all(arguments.benchmarks))
        done = from_files(arguments)
        if done is not None:
            return done
        signal.signal(signal.SIGTERM, interrupt)
        if arguments.profile:
            return profile(arguments)
        return measure_rows(arguments, argv)
    except BadInput as error:
        print(f"benchmarks/run: {error}", file=sys.stderr)
        return USAGE
    except serve.NoDevice as error:
        print(f"benchmarks/run: no CUDA GPU: {error}", file=sys.stderr)
        return NO_GPU
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or closing it would complain once more
        return 1
    except KeyboardInterrupt:
        print("benchmarks/run: interrupted", file=sys.stderr)
        return INTERRUPTED
