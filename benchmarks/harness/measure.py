"""Measuring one row: its processes, the limit search, then repetitions in turn.

All processes of a row are warm and wait at the same time, and only one of them is busy at any moment. Repetitions
are interleaved, one of every variant a round, so that drifting clocks meet all of them alike. Each counted
repetition comes right after an uncounted one in the same process, because a device that just ran other code, or
nothing, is slower at first.
"""

import os
import re
import time
from dataclasses import dataclass, field

from . import limits, offered, statistics_file
from .variants import AT_BEST, BEST, DEFAULT_LIMIT, NATIVE, UNPRIMED_MS, Runner, is_wanted, native, planned, preloaded

SEARCH_SHARE = 0.7  # of a row's seconds; the rest is for repetitions
SHORT_ROUND_SECONDS = 0.5  # of a repetition of each variant, which is made although the row's time is over
BREAKDOWN_RUNS = 5
LONG_RUN, LONG_RUN_SECONDS = 500, 5.0  # launches for the guard, and the time that they may take


@dataclass
class Options:
    reps: int = 7
    warmup: int = 2
    prime: bool = True
    timeout: float = 10.0
    start_timeout: float = 60.0
    row_seconds: float = 40.0
    variants: list = field(default_factory=list)  # globs; empty for the usual ones


@dataclass
class Session:
    """What all rows share."""

    where: object  # process.Installation
    options: Options
    folder: str  # of this run's own, removed at its end
    progress: object
    combinations: list
    usual: tuple  # the library's own (granularity, launcher)
    can_time: bool = False  # whether the library can measure its kernels

    def __post_init__(self):
        for folder in (self.input_cache, self.library_cache):
            os.makedirs(folder, mode=0o700, exist_ok=True)

    @property
    def input_cache(self):
        return os.path.join(self.folder, "inputs")

    @property
    def library_cache(self):
        return os.path.join(self.folder, "library")


class RowRun:
    """A row while it is measured. `record` is right at any moment, for when a run is interrupted."""

    def __init__(self, session, row, seconds):
        self.session = session
        self.row = row
        self.begin = time.monotonic()
        self.seconds = seconds
        self.runners = []
        self.breakdown_runner = None
        self.limit_records = []
        self.cut_short = []
        self.started = 0
        self.stopped = False

    def deadline(self, share=1.0):
        return self.begin + share * self.seconds

    def runner(self, variant, **settings):
        """A started process of its own for `variant`."""
        self.started += 1
        name = re.sub(r"\W+", "-", f"{self.row.name}-{variant.name}")
        folder = os.path.join(self.session.folder, "processes", f"{name}-{self.started}")
        return Runner(self.session, self.row, variant, folder, **settings).start()

    def ready(self, runners):
        self.session.progress.step("starting")
        for runner in runners:
            runner.wait_ready()

    def measure(self):
        self.start()
        self.find_best_limit()
        self.interleave()
        self.time_kernels()
        self.stop()
        return self.record()

    def start(self):
        """The first process alone, since it makes the input for all, then the others together."""
        program = self.session.where.program("bench", self.row.program)
        all_variants = planned(program, self.session.combinations, self.session.options.variants, self.row.native,
                               self.session.usual, self.row.waits)
        variants = [variant for variant in all_variants if not variant.earlier_runs]
        if not variants:
            return
        self.runners = [self.runner(variants[0])]
        self.ready(self.runners)
        self.runners += [self.runner(variant) for variant in variants[1:]]
        searching = self.with_native() is not None
        self.searcher = self.runner(native("search")) if searching else None
        self.ready(self.runners + ([self.searcher] if searching else []))
        self.runners += [self.after_earlier_runs(variant) for variant in all_variants if variant.earlier_runs]

    def after_earlier_runs(self, variant):
        """A process that is ready, behind others of that variant that have ended. They share a cache with no one else."""
        cache = os.path.join(self.session.folder, "caches", re.sub(r"\W+", "-", self.row.name))
        os.makedirs(cache, mode=0o700, exist_ok=True)
        earlier = []
        for number in range(variant.earlier_runs):
            self.session.progress.step(f"earlier run {number + 1}/{variant.earlier_runs}")
            runner = self.runner(variant, KLAP_CACHE_DIR=cache)
            runner.wait_ready()
            self.run_for_guard(runner, number + 1 == variant.earlier_runs)
            runner.stop()
            earlier.append(runner.stats)
        last = self.runner(variant, KLAP_CACHE_DIR=cache)
        last.wait_ready()
        last.earlier = earlier
        return last

    def run_for_guard(self, runner, is_long):
        """A program that launches a few times, or often. The guard tries an original once all launches took long enough."""
        begin, done, few = time.monotonic(), 0, self.session.options.warmup + 2 * self.session.options.reps
        while not runner.gone and (done < few or (is_long and done < LONG_RUN and time.monotonic() - begin < LONG_RUN_SECONDS)):
            runner.run(False)
            done += 1

    def with_native(self):
        return next((runner for runner in self.runners if runner.variant.name == NATIVE), None)

    def find_best_limit(self):
        """Searches, and starts the processes that need to know the result."""
        first = self.with_native()
        if first is None:
            self.start_at_best(None)
            return
        cut = limits.search(first, self.searcher, self.fresh_searcher, self.session.options.timeout,
                            self.deadline(SEARCH_SHARE), self.note_limit)
        if not self.searcher.gone:
            self.searcher.stop()
        if cut:
            self.cut_short.append(cut)
        self.keep_default_lost(first)
        self.start_at_best(limits.best_of(self.limit_records))

    def fresh_searcher(self):
        self.searcher = self.runner(native("search"))
        self.searcher.wait_ready()
        return self.searcher

    def keep_default_lost(self, first):
        if self.limit_records:
            first.lost = self.limit_records[0]["lost_launches"]

    def note_limit(self, record):
        self.limit_records.append(record)
        text = f"native at limit {record['limit']}: {record['verdict']}"
        if record["median_ms"] is not None:
            text += f", {record['median_ms']:.3f} ms"
        if record["lost_launches"]:
            text += f", {record['lost_launches']} launches lost"
        self.session.progress.step(text)

    def start_at_best(self, best):
        wanted = self.session.options.variants
        new = []
        other = best if best and best != DEFAULT_LIMIT else 0
        if other and is_wanted(BEST, wanted):
            new.append(self.runner(native(BEST, other)))
        ours = preloaded(*self.session.usual)
        sites_are_left = self.some_site_is_left()
        if other and sites_are_left and is_wanted(ours.name + AT_BEST, wanted):
            new.append(self.runner(preloaded(*self.session.usual, limit=other)))
        if self.session.can_time and is_wanted(ours.name, wanted):
            limit = other if sites_are_left else 0
            self.breakdown_runner = self.runner(preloaded(*self.session.usual, limit=limit), KLAP_TIMING="1")
        self.ready(new + ([self.breakdown_runner] if self.breakdown_runner else []))
        for runner in new:
            if runner.variant.kind == "native" and not runner.gone:
                runner.count_lost()
        self.runners += new

    def explained(self):
        program = self.session.where.program("bench", self.row.program)
        return statistics_file.program_sites(offered.sites_of(self.session.where.klap_ptx, program))

    def some_site_is_left(self):
        return bool(self.explained()[1])

    def expect_hangs(self):
        """Preloaded programs with sites left will hang where the native one did; many of them would cost minutes."""
        first = self.with_native()
        if first is None or first.verdict != "hangs":
            return
        for runner in self.runners:
            if runner.variant.kind == "preloaded" and not runner.variant.limit and self.may_fail(runner.variant):
                runner.patience = limits.patience(runner.patience, first.description.get("child_launches"), True)

    def may_fail(self, of):
        return self.some_site_is_left() or of.name == "none"

    def interleave(self):
        """Warm-up rounds, then counted ones."""
        options = self.session.options
        self.expect_hangs()
        for number in range(options.warmup):
            for runner in self.runners:
                if not runner.gone and not (number and runner.last_seconds > 2):
                    self.session.progress.step(f"{runner.variant.name} warming up")
                    runner.run(False)
        for number in range(options.reps):
            for runner in self.runners:
                if runner.gone or len(runner.samples) >= runner.wanted_reps():
                    continue
                if number and time.monotonic() >= self.deadline() and self.round_seconds() > SHORT_ROUND_SECONDS:
                    self.cut_short.append(f"{number} of {options.reps} repetitions")
                    return
                self.session.progress.step(f"{runner.variant.name} {number + 1}/{options.reps}")
                if options.prime and runner.last_ms <= UNPRIMED_MS:
                    runner.run(False)
                if not runner.gone:
                    runner.run(True)

    def round_seconds(self):
        """Where processes take long to start, and repetitions do not, the row's time would be over after one of these."""
        return sum(runner.last_seconds for runner in self.runners if not runner.gone)

    def time_kernels(self):
        """A few runs in which the library measures its kernels, which slows them down: apart from the others."""
        runner = self.breakdown_runner
        if runner is None:
            return
        measured = next((r for r in self.runners if r.variant.name == runner.variant.name), None)
        for _ in range(BREAKDOWN_RUNS):
            if measured is not None and measured.final_verdict() == "right" and not runner.gone:
                runner.run(True)

    def stop(self):
        everyone = self.runners + ([self.breakdown_runner] if self.breakdown_runner else [])
        for runner in everyone:
            if not runner.gone:
                runner.server.say_quit()
        for runner in everyone:
            runner.stop()
        self.stopped = True

    def description(self):
        """What the program says when it launches children, if it was run so."""
        first = sorted(self.runners, key=lambda r: (r.variant.name != NATIVE, r.variant.kind == "plain"))
        return next((runner.description for runner in first if runner.description), {})

    def record(self):
        """The row for the result file; also of a row that was interrupted, with all processes gone."""
        if not self.stopped:
            self.cut_short.append("interrupted")
        about = self.description()
        record = {**self.row.facts(), "description": about, "seconds": round(time.monotonic() - self.begin, 1),
                  "cut_short": "; ".join(self.cut_short), "limits": self.limit_records,
                  "best_limit": limits.best_of(self.limit_records),
                  "explained": dict(zip(("sites_rewritten", "sites_left"), self.explained())),
                  "variants": [runner.record(about) for runner in self.runners]}
        breakdown = self.breakdown_runner
        if breakdown is not None:
            record["breakdown"] = {"variant": breakdown.variant.name, "verdict": breakdown.final_verdict(),
                                   "runs": len(breakdown.samples), "run_ms": breakdown.samples,
                                   "gpu_ms": breakdown.stats.get("gpu_ms")}
        record["wrong"] = judge(record) if self.stopped else []
        return record


def variant(record, name):
    """A row's variant by its name, or None. Where the default limit is the best one, it stands for both."""
    found = next((v for v in record["variants"] if v["name"] == name), None)
    if found is None and name == BEST and record["best_limit"] == DEFAULT_LIMIT:
        return variant(record, NATIVE)
    return found


def excused(record, found):
    """Whether a preloaded run at the default limit may fail: its sites are left and natively it fails too."""
    if found["limit"] != DEFAULT_LIMIT:
        return False
    left = found.get("sites_left", record["explained"]["sites_left"])
    natively = variant(record, NATIVE)
    works = natively is not None and natively["verdict"] == "right" and natively["lost_launches"] == 0
    return (bool(left) or found["name"] == "none") and natively is not None and not works


def is_best_native(record, found):
    limit = record["best_limit"]
    return limit is not None and found["kind"] == "native" and found["limit"] == limit


def judge(record):
    """Whatever must not happen, as sentences."""
    wrong = []
    for found in record["variants"]:
        verdict = found["verdict"] + (f" ({found['first_mistake'] or found['why']})" if found["verdict"] != "right"
                                      else "")
        if found["kind"] == "plain" and found["verdict"] not in ("right", "not available"):
            wrong.append(f"{found['name']}: {verdict}")
        elif is_best_native(record, found) and (found["verdict"] != "right" or found["lost_launches"] != 0):
            wrong.append(f"native at limit {found['limit']}: {verdict}, {found['lost_launches']} launches lost")
        elif found["kind"] == "preloaded" and found["verdict"] != "right" and not excused(record, found):
            wrong.append(f"preloaded {found['name']}: {verdict}")
        elif found["kind"] == "preloaded" and found["verdict"] == "right":
            if "statistics" in found:
                wrong.append(f"preloaded {found['name']}: no statistics ({found['statistics']})")
            elif found["sites_rewritten"] and not found["redirected"] and not statistics_file.launches_as_they_are(found):
                wrong.append(f"preloaded {found['name']}: no launch was redirected")
    if record["limits"] and record["best_limit"] is None and "limits" not in record["cut_short"]:
        wrong.append("natively right at no limit")
    return wrong
