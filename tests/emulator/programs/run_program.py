"""Runs one program on the emulated driver under many seeds and judges each run.

The benchmark programs compare every result with the CPU's themselves, and the GPU test programs say PASS or FAIL;
what is added here is what only the outside can know: that a preloaded run did rewrite what it must, that no launch
was lost, and that nothing was left to chance (seed and schedule are printed with every failure, and repeat it).

Seed 0 is the plain run, in the order that an unhurried device would have; the others take the schedules in turn,
with weak memory. Every second one has a small device, where the consumers' few blocks run many children each.
"""

import argparse
import dataclasses
import hashlib
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "benchmarks")]

from gpu_checks import programs  # noqa: E402
from harness import process, statistics_file  # noqa: E402

SCHEDULES = ["random", "round-robin", "one-block", "starve-one", "child-first", "child-last", "fast"]
# What is set in each.
CONFIGURATIONS = {
    "native": {},
    "host": {"KLAP_GRANULARITY": "grid", "KLAP_LAUNCHER": "host"},
    # With what is off by itself.
    "host_options": {"KLAP_GRANULARITY": "grid", "KLAP_LAUNCHER": "host",
                     "KLAP_OPTIMISE": "+preload_arguments,split_iterations=all,unroll=8,part_elements=32,+merge_parts,"
                                      "+stream_loads,occupancy=all",
                     "KLAP_COUNT_CHILDREN": "0"},
    # Without what is on by itself.
    "host_less": {"KLAP_GRANULARITY": "grid", "KLAP_LAUNCHER": "host",
                  "KLAP_OPTIMISE": "-double_buffer,-split_iterations,-split_ranges,-batch_items,-flatten,-unroll,-occupancy"},
    # Parents that are their own consumers, where they may be.
    "fused": {"KLAP_GRANULARITY": "grid", "KLAP_LAUNCHER": "fused"},
    "device": {"KLAP_GRANULARITY": "grid", "KLAP_LAUNCHER": "device"},
    "block": {"KLAP_GRANULARITY": "block"},
    "multiblock": {"KLAP_GRANULARITY": "multiblock", "KLAP_MULTIBLOCK": "3"},
    "warp": {"KLAP_GRANULARITY": "warp"},
    # Promoted chains whose links launch each other.
    "P": {"KLAP_PROMOTION": "P"},
    "PO": {"KLAP_PROMOTION": "PO"},
    # As racecheck has it: launches that were left after all would end their kernels with an error.
    "host_without_runtime": {"KLAP_GRANULARITY": "grid", "KLAP_LAUNCHER": "host", "KLAP_DEVICE_RUNTIME": "0"},
}
HOST = ("host", "host_options", "host_less", "fused", "host_without_runtime", "P", "PO")
LIMIT = 120  # seconds a run may take


def read_json(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return json.load(file)


def case_named(name):
    """What is to be run and what is expected of it."""
    case = next(case for case in read_json(HERE, "cases.json")["cases"] if case["name"] == name)
    case.setdefault("program", name)
    case.setdefault("arguments", [])
    tests = os.path.join(ROOT, "tests", "gpu")
    if case["folder"] == "bench":
        case["expected"] = read_json(tests, "benchmarks", case["program"] + ".json")
    else:
        entries = read_json(tests, "expectations.json")["programs"]
        case["expected"] = next(entry for entry in entries if entry["name"] == case["program"])
    case["expected"].update(case.get("instead", {}))
    return case


class Runs:
    """The runs of one case in one configuration."""

    def __init__(self, where, case, configuration):
        self.where = where
        self.case = case
        self.configuration = configuration
        self.folder = tempfile.TemporaryDirectory()
        self.native = None

    def reference(self):
        """What the program does natively in the plain run: the same for every seed and configuration of the others.

        The tests of all configurations share it, as long as the files that decide about it are the same.
        """
        if self.native is None:
            path = os.path.join(self.where.build, "lib", "emulator-reference", self.reference_name())
            self.native = kept_outcome(path)
        if self.native is None:
            self.native, _ = self.run(0, "native")
            keep_outcome(path, self.native)
        return self.native

    def reference_name(self):
        program = self.program()
        files = [program, os.path.join(self.where.build, "lib", "emulator", "libcuda.so.1")]
        if self.case.get("as_it_is"):  # loads others from its folder
            files = sorted(entry.path for entry in os.scandir(os.path.dirname(program)) if entry.is_file()) + files[1:]
        found = [(file, os.stat(file).st_mtime_ns, os.stat(file).st_size) for file in files]
        what = (program, found, self.case["arguments"], self.device())
        return hashlib.sha256(repr(what).encode()).hexdigest()

    def device(self):
        """What the case says of the emulated device, which holds for the native run, too."""
        settings = {**self.case["expected"].get("settings", {}), **self.case.get("settings", {})}
        return {name: value for name, value in sorted(settings.items()) if name.startswith("KLAP_EMULATOR_")}

    def program(self):
        folder = self.case["folder"] if self.case.get("as_it_is") else "emulated"
        return self.where.program(folder, self.case["program"])

    def environment(self, seed, configuration):
        # The rewritten code of the first run serves the others: compiling it is not what is tested.
        settings = {"KLAP_GUARD": "off", "KLAP_CACHE_DIR": os.path.join(self.folder.name, "cache"), "KLAP_LINKER": "driver",
                    **self.case["expected"].get("settings", {}), **self.case.get("settings", {}),
                    **CONFIGURATIONS[configuration]}
        stats = os.path.join(self.folder.name, "stats.json")
        if os.path.exists(stats):
            os.remove(stats)
        found = self.where.native() if configuration == "native" else self.where.preloaded(stats, **settings)
        found.pop("KLAP_CACHE_DISABLE", None)
        if "KLAP_NVRTC" in os.environ:
            found["KLAP_NVRTC"] = os.environ["KLAP_NVRTC"]
        found["LD_LIBRARY_PATH"] = os.path.join(self.where.build, "lib", "emulator")
        if configuration == "native" and self.case.get("of_version_1"):
            found["KLAP_EMULATOR_COMPUTE_CAPABILITY"] = "80"  # of a device whose kernels can wait
        found.update(KLAP_EMULATOR_QUIET="1", **self.device(), **emulator_settings(seed))
        return found

    def run(self, seed, configuration, arguments=()):
        """One run and its statistics."""
        command = [self.program(), *self.case["arguments"], *arguments]
        outcome = process.run(command, self.environment(seed, configuration), LIMIT)
        stats = {}
        if configuration != "native":
            stats = statistics_file.read(os.path.join(self.folder.name, "stats.json"))
        return outcome, stats


def kept_outcome(path):
    """What keep_outcome wrote; None if there is nothing."""
    try:
        with open(path, encoding="utf-8") as file:
            return process.Outcome(**json.load(file))
    except FileNotFoundError:
        return None


def keep_outcome(path, outcome):
    """For other processes, which see it whole or not at all; not what went wrong."""
    if outcome.code != 0 or outcome.timed_out:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump(dataclasses.asdict(outcome), file)
    os.rename(f"{path}.{os.getpid()}", path)


def emulator_settings(seed):
    if seed == 0:
        return {"KLAP_EMULATOR_SCHEDULE": "fast"}
    settings = {"KLAP_EMULATOR_SEED": str(seed), "KLAP_EMULATOR_WEAK_MEMORY": "1",
                "KLAP_EMULATOR_SCHEDULE": SCHEDULES[(seed - 1) % len(SCHEDULES)]}
    # The number of schedules is odd: after two rounds each has had both devices.
    return settings | ({"KLAP_EMULATOR_MULTIPROCESSORS": "1"} if seed % 2 else {})


def last_line(text):
    return (text.strip().splitlines() or [""])[-1]


def judge_result(outcome):
    """What the benchmark program itself says about its run."""
    if outcome.timed_out or outcome.code not in (0, 1):
        return [f"{outcome.describe()}: {last_line(outcome.err)}"]
    try:
        result = json.loads(last_line(outcome.out))["result"]
    except (ValueError, KeyError):
        return [f"no result printed: {last_line(outcome.out) or last_line(outcome.err)}"]
    wrong = []
    if result["wrong"] or not result["right"]:
        wrong.append(f"{result['wrong']} wrong results, the first: {result.get('first_mistake')}")
    if result["lost_launches"]:
        wrong.append(f"{result['lost_launches']} launches lost")
    return wrong


def report_of(outcome):
    """What the program printed at its end, which judge_result has read already."""
    return json.loads(last_line(outcome.out))


def is_what_it_says(said, counted, case):
    """Some programs can be done sooner than they say."""
    return counted == said or (case.get("fewer_launches", False) and counted < said)


def judge_kernels(outcome, case):
    """Whether the host launched as many kernels in a run as the program says of itself, if it does."""
    said, counted = (report.get(key) for report, key in ((report_of(outcome), "kernel_launches"),
                                                         (report_of(outcome)["result"], "host_launches")))
    if said is None or is_what_it_says(said, counted, case):
        return []
    return [f"the host launched {counted} kernels and not {said}"]


def judge_parents(outcome, stats, case):
    """Whether as many parents ran rewritten as the program says that there are, where all did.

    There are two runs. The second one counts launches that fail, by kernels of its own, which may be left.
    """
    said, launches = report_of(outcome)["parent_launches"], stats["launches"]
    runs = 1 if case["expected"].get("left_where_it_counts", False) else 2
    counted = sum(launches["redirected"].values()) / runs
    none_did = not case["expected"].get("redirected")  # all launch sites are left
    if none_did or launches.get("left") or is_what_it_says(said, counted, case):
        return []
    return [f"{counted:g} launches of parents were redirected and not {said}"]


def judge_sites(expected, configuration, stats):
    """Whether the launch sites became what they are expected to become."""
    if "missing" in stats:
        return [f"no statistics: {stats['missing']}"]
    wrong = []
    launcher = "host" if configuration in HOST else "device"
    granularity = configuration if configuration in ("block", "multiblock", "warp") else "grid"
    elsewhere = {} if launcher == "host" or granularity == "warp" else expected.get("left_on_device", {})
    expected = programs.expected_at(expected, granularity, launcher)
    for kernel in expected["redirected"]:
        if statistics_file.redirected(stats, kernel) == 0:
            wrong.append(f"no launch of {kernel} was redirected")
    for kernel in expected.get("sliced", []):
        if statistics_file.slices(stats, kernel) == 0:
            wrong.append(f"no launch of {kernel} ran in slices")
    sites = [site for module in stats.get("modules", []) for site in module.get("sites", [])]
    if "sites" in expected and len(sites) != expected["sites"]:
        wrong.append(f"{len(sites)} launch sites found instead of {expected['sites']}")
    for kernel, reason in (expected.get("left", {}) | elsewhere).items():
        found = {site.get("reason") for site in sites
                 if not kernel or statistics_file.is_kernel(site["parent"], kernel)}
        if found != (set(reason) if isinstance(reason, list) else {reason}):
            wrong.append(f"sites of {kernel} were left for {found} instead of {reason}")
    others = statistics_file.ways(stats) - {f"{granularity}/{launcher}"}
    if others:
        wrong.append(f"rewritten for {', '.join(sorted(others))} instead of {granularity}/{launcher}")
    return wrong


def judge_benchmark(runs, seed):
    outcome, stats = runs.run(seed, runs.configuration, ["--reps", "1", "--warmup", "0", "--count-failures",
                                                         "--json", "-"])
    wrong = judge_result(outcome)
    if runs.configuration != "native":
        wrong += judge_sites(runs.case["expected"], runs.configuration, stats)
        return wrong or (judge_parents(outcome, stats, runs.case) if runs.configuration == "host" else [])
    if runs.case.get("loses_launches"):
        return [] if wrong else ["the run was right although launches must have been lost"]
    return wrong or judge_kernels(outcome, runs.case)


def judge_variants(runs):
    """The program's other ways to the same result: kernels too, but nothing to rewrite."""
    wrong = []
    for variant in runs.case.get("variants", []):
        outcome, _ = runs.run(0, "native", ["--reps", "1", "--warmup", "0", "--variant", variant, "--json", "-"])
        wrong += [f"--variant {variant}: {text}" for text in judge_result(outcome) or judge_kernels(outcome, runs.case)]
    return wrong


def is_as_native(expected, configuration):
    """Whether the configuration leaves a parent, whose launches are then CUDA's."""
    if configuration in HOST:
        return False
    granularity = configuration if configuration in ("block", "multiblock", "warp") else "grid"
    return bool(expected.get("left_at", {}).get(granularity) or expected.get("left_on_device"))


def judge_gpu_program(runs, seed):
    outcome, stats = runs.run(seed, runs.configuration)
    is_native = runs.configuration == "native"
    if runs.case.get("loses_launches") and (is_native or is_as_native(runs.case["expected"], runs.configuration)):
        return [] if programs.verdict(outcome) else ["the run was right although launches must have been lost"]
    if is_native:
        problem = programs.verdict(outcome)
        return [problem] if problem else []
    reference = runs.reference()
    expected = runs.case["expected"]
    if runs.configuration not in HOST:
        granularity = "grid" if runs.configuration == "device" else runs.configuration
        wrong = programs.judge_device_launcher(expected, reference, outcome, stats, granularity)
    else:
        if CONFIGURATIONS[runs.configuration].get("KLAP_COUNT_CHILDREN") == "0":
            expected = {key: value for key, value in expected.items() if key != "children"}
        wrong = programs.judge_preloaded(expected, reference, outcome, stats)
    return wrong + ([] if wrong else judge_sites(expected, runs.configuration, stats))


def count_launches(runs):
    """How many launches the program's kernels make in one plain run; None where the result is wrong."""
    outcome, _ = runs.run(0, runs.configuration, ["--reps", "1", "--warmup", "0", "--json", "-"])
    report = json.loads(last_line(outcome.out) or "{}")
    if outcome.code != 0 or report.get("result", {}).get("wrong") != 0:
        return None
    return report["launches_by_kernels"]


def print_launches(build):
    """For every benchmark program the launches of its kernels, natively and in each configuration, as JSON."""
    configurations = [name for name in CONFIGURATIONS if name not in ("host_without_runtime", "P", "PO")]
    table = {}
    for case in read_json(HERE, "cases.json")["cases"]:
        if case["folder"] != "bench" or "program" in case:
            continue
        runs = {name: Runs(process.Installation(build), case_named(case["name"]), name) for name in configurations}
        table[case["name"]] = {"arguments": case.get("arguments", []),
                               "launches": {name: count_launches(run) for name, run in runs.items()}}
    print(json.dumps(table, indent=1))


def how_to_repeat(seed):
    return " ".join(f"{name}={value}" for name, value in emulator_settings(seed).items())


def chosen_seeds(options, case):
    """The seeds of the runs to make."""
    count = min(options.seeds, case.get("most_seeds", options.seeds))
    if options.rotate is None:
        return range(options.first_seed, options.first_seed + count)
    # As many as there are schedules on both devices: more than these differ by chance only.
    kinds = 2 * len(SCHEDULES)
    # Programs with a limit take seconds a run, and the plain run is the shortest.
    plain = [] if options.no_plain_run and "most_seeds" not in case else [0]
    return plain + [1 + (options.rotate + i) % max(kinds, count) for i in range(count - len(plain))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--case", help="one of cases.json")
    parser.add_argument("--configuration", choices=CONFIGURATIONS)
    parser.add_argument("--launches", action="store_true",
                        help="instead count the launches that the kernels of all benchmark programs make")
    parser.add_argument("--seeds", type=int, default=4, help="how many runs")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--rotate", type=int, help="seed 0 first, and then seeds from another place for each number:"
                        " few seeds a program, but all schedules over all programs")
    parser.add_argument("--no-plain-run", action="store_true", help="without seed 0 in that; other configurations"
                        " have it")
    options = parser.parse_args()
    if options.launches:
        print_launches(options.build)
        return 0
    if not options.case or not options.configuration:
        parser.error("--case and --configuration, or --launches")
    case = case_named(options.case)
    runs = Runs(process.Installation(options.build), case, options.configuration)
    judge = judge_benchmark if case["folder"] == "bench" else judge_gpu_program
    failures = 0
    for seed in chosen_seeds(options, case):
        for text in judge(runs, seed):
            failures += 1
            print(f"{case['name']}, {options.configuration}, {how_to_repeat(seed)}: {text}", flush=True)
    if options.configuration == "native" and options.first_seed == 0:
        for text in judge_variants(runs):
            failures += 1
            print(f"{case['name']}: {text}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
