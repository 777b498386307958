"""The ways in which a row is measured, and the process of each.

A variant is a way to run the program: natively at CUDA's default pending-launch limit or at the best one, without
dynamic parallelism, through a library, aggregated by hand, or preloaded with one granularity and launcher. A runner is a variant's warm
process together with everything that was found out with it.
"""

import fnmatch
import os
import re
import statistics
import time
from dataclasses import dataclass, field

from . import offered, serve, statistics_file

DEFAULT_LIMIT = 2048  # CUDA's
SLOW_MS = 2000.0  # a repetition over this is not repeated often
SLOW_REPS = 3
UNPRIMED_MS = 100.0  # a repetition over this does not care whether the device was idle before
NATIVE, BEST, FLAT, LIBRARY = "native", "native best", "flat", "library"
BY_HAND = "klap"  # the program aggregated by hand, as in the KLAP paper
WAITS = "waits"  # preloaded: another program, whose kernels wait for their children
PLAIN = (FLAT, LIBRARY, BY_HAND)  # in the order of their columns
AT_BEST = " at best limit"
READBACK = "host-readback"  # the launcher of grid aggregation as in the KLAP paper
# The page that is generated from the table of settings lists every single optimisation with its default.
OPTIMISE_PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "settings", "OPTIMISE.md")


def read_optimisations(page=OPTIMISE_PAGE):
    """The single optimisations by name, each with its default value."""
    with open(page, encoding="utf-8") as file:
        rows = re.findall(r"^\| `([a-z_]+)` \| (?:[^|]|\\\|)* \| (\w+) \|", file.read(), re.MULTILINE)
    return dict(rows)


# What the papers' aggregation does not have: switched off where it is compared with, and one by one to see what each
# is worth.
OPTIMISATIONS = ("threshold", *(name for name, default in read_optimisations().items() if default != "off"))
# What is off by default, to see what it is worth.
OPTIONS = {name: {"KLAP_OPTIMISE": f"+{name}"} for name, default in read_optimisations().items() if default == "off"} | {
    "all iterations split": {"KLAP_OPTIMISE": "split_iterations=all"},
    "aggregated malloc": {"KLAP_AGGREGATE_MALLOC": "warp"},
    "malloc in chunks": {"KLAP_AGGREGATE_MALLOC": "chunks"}}


def switched_off(keys):
    """The settings that switch optimisations off. The threshold is a setting of its own."""
    switches = ",".join(f"-{key}" for key in keys if key != "threshold")
    return ({"KLAP_OPTIMISE": switches} if switches else {}) | ({"KLAP_THRESHOLD": "off"} if "threshold" in keys else {})


# Children of up to so many threads run by the thread that launches them: to see what a threshold is worth.
THRESHOLDS = (4, 8, 32)
WITH_THRESHOLD = " threshold "
WITHOUT = " without "
WITH = " with "
# The library's own settings without the guard, and with what it keeps of earlier runs. All others know of no earlier ones.
UNGUARDED = WITHOUT + "guard"
EARLIER_RUNS = WITH + "earlier runs"
HOW_MANY_EARLIER = 6


@dataclass
class Variant:
    name: str
    kind: str  # native, preloaded, or plain: without dynamic parallelism
    arguments: list = field(default_factory=list)
    settings: dict = field(default_factory=dict)  # environment variables of a preloaded process
    limit: int = 0  # the pending limit that is set; 0 leaves the default
    earlier_runs: int = 0  # processes that run before the one that is measured, with a cache of their own
    program: str = ""  # another one than the row's


def native(name, limit=0):
    return Variant(name, "native", ["--pending-limit", str(limit)] if limit else [], limit=limit)


def preloaded(granularity, launcher, limit=0):
    name = granularity if granularity == "none" else f"{granularity}/{launcher}"
    return Variant(name + (AT_BEST if limit else ""), "preloaded",
                   ["--pending-limit", str(limit)] if limit else [],
                   {"KLAP_GRANULARITY": granularity, "KLAP_LAUNCHER": launcher}, limit)


def ablated(granularity, launcher, key):
    whole = preloaded(granularity, launcher)
    return Variant(whole.name + WITHOUT + key, whole.kind, [], whole.settings | switched_off([key]))


def with_option(granularity, launcher, option):
    whole = preloaded(granularity, launcher)
    return Variant(whole.name + WITH + option, whole.kind, [], whole.settings | OPTIONS[option])


def with_threshold(granularity, launcher, threads):
    whole = preloaded(granularity, launcher)
    return Variant(f"{whole.name}{WITH_THRESHOLD}{threads}", whole.kind, [],
                   whole.settings | {"KLAP_THRESHOLD": str(threads)})


def guard_variants(usual):
    """The library's own settings without the guard, and after earlier runs."""
    whole = preloaded(*usual)
    return [Variant(whole.name + UNGUARDED, whole.kind, [], whole.settings | {"KLAP_GUARD": "off"}),
            Variant(whole.name + EARLIER_RUNS, whole.kind, [], whole.settings | {"KLAP_GUARD": "on"},
                    earlier_runs=HOW_MANY_EARLIER)]


def names_for_guard(usual):
    """The variants that the table of the guard's decisions needs."""
    return [NATIVE, BEST, FLAT, preloaded(*usual).name, *(variant.name for variant in guard_variants(usual))]


def is_wanted(name, patterns):
    """Whether a variant is among those asked for; without a wish all are but the preloaded one that does nothing and
    those that are there only to be compared with."""
    if not patterns:
        compared = (READBACK, WITHOUT, WITH, WITH_THRESHOLD)
        return not name.startswith("none") and not any(part in name for part in compared)
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def plain_order(name):
    """A key that sorts the variants without dynamic parallelism by their columns, those of other names last."""
    return (PLAIN.index(name) if name in PLAIN else len(PLAIN), name)


def planned(program, combinations, patterns, natively=True, usual=None, waits=""):
    """The variants of a row that are known before its best limit is, the one to start first at the front."""
    has = offered.variants_of(program)
    plain = sorted((name for name in has if name != "cdp"), key=plain_order)
    found = [Variant(name, "plain", ["--variant", name]) for name in plain]
    found += [Variant(WAITS, "preloaded", program=waits)] if waits else []
    found += [preloaded(*pair) for pair in combinations]
    found += [ablated("grid", "host", key) for key in OPTIMISATIONS]
    found += [with_option("grid", "host", option) for option in OPTIONS]
    found += [with_threshold("grid", "host", threads) for threads in THRESHOLDS]
    found += guard_variants(usual) if usual else []
    found.append(preloaded("none", "host"))
    found = [variant for variant in found if is_wanted(variant.name, patterns)]
    if natively and (is_wanted(NATIVE, patterns) or is_wanted(BEST, patterns)):
        found.insert(1 if found and found[0].name == FLAT else 0, native(NATIVE))
    return found


class Runner:
    """One variant of one row: its process and its results."""

    def __init__(self, session, row, variant, folder, **settings):
        self.session = session
        self.variant = variant
        self.program = session.where.program("bench", variant.program or row.program)
        self.arguments = [*row.arguments, *variant.arguments]
        self.settings = settings
        self.folder = folder
        self.server = None
        self.verdict = ""  # set when the process is gone before its time
        self.why = ""
        self.description = {}
        self.samples = []
        self.right = self.wrong = 0
        self.first_mistake = ""
        self.lost = None
        self.patience = session.options.timeout  # seconds to wait for an answer
        self.last_ms = 0.0
        self.last_seconds = 0.0
        self.stats = {}
        self.earlier = []  # statistics of earlier runs

    @property
    def gone(self):
        return bool(self.verdict) or self.server is None

    def start(self):
        """Starts the process without waiting for it."""
        command = [self.program, *self.arguments, "--serve"]
        if offered.has_option(self.program, "input-cache"):
            command += ["--input-cache", self.session.input_cache]
        os.makedirs(self.folder)
        environment = self.session.where.native()
        if self.variant.kind == "preloaded":
            environment = self.session.where.preloaded(
                self.stats_file, KLAP_CACHE_DISABLE="0", KLAP_COUNT_CHILDREN="0",  # it takes time that programs without statistics do not need
                **{"KLAP_GUARD": "process", "KLAP_CACHE_DIR": self.session.library_cache} | self.variant.settings | self.settings)
        try:
            self.server = serve.Server(command, environment, os.path.join(self.folder, "errors.txt"))
        except serve.Trouble as trouble:
            self.note(trouble)
        return self

    @property
    def stats_file(self):
        return os.path.join(self.folder, "statistics.json")

    def note(self, trouble):
        self.verdict, self.why = trouble.verdict, str(trouble)

    def wait_ready(self):
        if self.gone:
            return
        try:
            self.description = self.server.ready(self.session.options.start_timeout)
        except serve.Trouble as trouble:
            self.note(trouble)

    def ask(self, command, seconds=None):
        """The answer, or None with the verdict noted and the process gone."""
        try:
            return self.server.ask(command, seconds or self.patience)
        except serve.Trouble as trouble:
            self.note(trouble)
            return None

    def run(self, counted, seconds=None):
        """One repetition; returns whether it was answered and right."""
        begin = time.monotonic()
        answer = self.ask("run", seconds)
        if answer is None:
            return False
        if not isinstance(answer.get("ms"), (int, float)) or not isinstance(answer.get("mistake"), str):
            self.server.kill()
            self.verdict, self.why = "failed", f'"run" was answered with {answer}'
            return False
        self.last_seconds = time.monotonic() - begin
        self.last_ms = answer["ms"]
        if counted:
            self.samples.append(answer["ms"])
        if answer["mistake"]:
            self.wrong += 1
            self.first_mistake = self.first_mistake or answer["mistake"]
        else:
            self.right += 1
        return not answer["mistake"]

    def count_lost(self, seconds=None):
        answer = self.ask("lost", seconds)
        if answer is not None:
            self.lost = answer.get("lost_launches")

    def wanted_reps(self):
        return min(self.session.options.reps, SLOW_REPS) if self.last_ms > SLOW_MS else self.session.options.reps

    def stop(self):
        """Ends the process and reads what it left."""
        if self.server is not None and not self.verdict and not self.server.stop(self.session.options.timeout):
            self.verdict, self.why = "failed", "did not end when told to"
        if self.variant.kind == "preloaded" and self.server is not None:
            self.stats = statistics_file.read(self.stats_file)

    def final_verdict(self):
        return self.verdict or ("wrong" if self.wrong else "right")

    def record(self, row_description):
        """What the result file keeps of this variant."""
        record = {"name": self.variant.name, "kind": self.variant.kind,
                  "limit": self.variant.limit or DEFAULT_LIMIT, "verdict": self.final_verdict(), "why": self.why,
                  "repetitions": len(self.samples),
                  "median_ms": statistics.median(self.samples) if self.samples else None,
                  "min_ms": min(self.samples, default=None), "max_ms": max(self.samples, default=None),
                  "samples": self.samples, "right": self.right, "wrong": self.wrong,
                  "first_mistake": self.first_mistake}
        if self.variant.kind == "native":
            record["lost_launches"] = self.lost
        differing = {key: value for key, value in self.description.items() if row_description.get(key) != value}
        if differing:
            record["description"] = differing
        if self.variant.kind == "preloaded":
            record["settings"] = self.variant.settings
            record.update(statistics_file.of_a_benchmark(self.stats))
            record["trying"] = statistics_file.trying([*self.earlier, self.stats])
        return record
