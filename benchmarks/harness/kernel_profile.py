"""What a row's kernels do to the machine, by Nsight Compute (ncu): efficiency, occupancy, instructions, DRAM traffic.

The papers explain their speed-ups with these figures. Profiling replays kernels, so no time in it is comparable with
a measurement, and kernels launched from the device are not seen: natively only parents are.
"""

import csv
import io
import os
import shutil
import tempfile

from . import offered, process, statistics_file, table
from .rows import BadInput
from .variants import NATIVE, PLAIN

SECONDS = 540
TIME = "gpu__time_duration.sum"
METRICS = {
    "threads": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "instructions": "smsp__inst_executed.sum",
    "read": "dram__bytes_read.sum",
    "written": "dram__bytes_write.sum",
    "time": TIME,
}
NOT_PERMITTED = "ERR_NVGPUCTRPERM"


def find():
    usual = "/usr/local/cuda/bin/ncu"
    found = shutil.which("ncu") or (usual if os.access(usual, os.X_OK) else None)
    if found is None:
        raise BadInput("--profile needs ncu (Nsight Compute), part of the CUDA toolkit: package nsight-compute")
    return found


def number(text):
    return float(text.replace(",", ""))


def kernels_in(text):
    """ncu's CSV, one line for each kernel and metric, as a list of {name, metrics}."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    kernels = {}
    for entry in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        if not entry.get("Metric Name"):
            continue
        found = kernels.setdefault(entry["ID"], {"name": entry["Kernel Name"], "metrics": {}})
        try:
            found["metrics"][entry["Metric Name"]] = number(entry["Metric Value"])
        except ValueError:
            pass  # ncu says "n/a" where a kernel has no such value
    return list(kernels.values())


def per_kernel(kernels):
    """Launches of one kernel together: sums, and means weighted by time."""
    names = dict.fromkeys(kernel["name"] for kernel in kernels)
    result = []
    for name in names:
        mine = [kernel["metrics"] for kernel in kernels if kernel["name"] == name]
        total = sum(metrics.get(TIME, 0) for metrics in mine)

        def mean(key, mine=mine):
            weighted = [(m[METRICS[key]], m.get(TIME, 0)) for m in mine if METRICS[key] in m]
            weight = sum(w for _, w in weighted)
            return sum(value * w for value, w in weighted) / weight if weight else None

        def total_of(key, mine=mine):
            return sum(m.get(METRICS[key], 0) for m in mine)

        threads, moved = mean("threads"), total_of("read") + total_of("written")
        result.append({"kernel": name, "launches": len(mine), "time_us": total / 1000,
                       "warp_execution_efficiency_pct": threads / 32 * 100 if threads is not None else None,
                       "achieved_occupancy_pct": mean("occupancy"), "instructions": total_of("instructions"),
                       "dram_read_bytes": total_of("read"), "dram_written_bytes": total_of("written"),
                       "dram_gb_per_s": moved / total if total else None})
    return sorted(result, key=lambda kernel: -kernel["time_us"])


def variant_of(name, program, combinations):
    """(arguments, library settings or None) of a variant by name."""
    if name == NATIVE:
        return [], None
    if name in offered.variants_of(program) and name != "cdp":
        return ["--variant", name], None
    for granularity, launcher in combinations:
        if name == f"{granularity}/{launcher}":
            return [], {"KLAP_GRANULARITY": granularity, "KLAP_LAUNCHER": launcher}
    known = [NATIVE, *[v for v in offered.variants_of(program) if v != "cdp"], *["/".join(c) for c in combinations]]
    raise BadInput(f"there is no variant {name} to profile; there are {', '.join(known)}")


def run_ncu(where, program, arguments, settings):
    """(what ncu printed, the library's statistics)."""
    target = [program, *arguments, "--reps", "1", "--warmup", "1"]
    environment = where.native()
    with tempfile.TemporaryDirectory() as folder:
        stats_file = os.path.join(folder, "statistics.json")
        if settings is not None:
            # Set inside, so that it is the program that is preloaded and not ncu.
            inside = 'export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD:}$0"; exec "$@"'
            target = ["sh", "-c", inside, where.library, *target]
            environment.update(KLAP_STATS=stats_file, KLAP_CACHE_DISABLE="1", **settings)
        command = [find(), "--csv", "--print-units", "base", "--target-processes", "all",
                   "--metrics", ",".join(METRICS.values()), *target]
        outcome = process.run(command, environment, SECONDS)
        stats = statistics_file.read(stats_file) if settings is not None else {}
    if NOT_PERMITTED in outcome.out + outcome.err:
        raise BadInput("the driver gives performance counters to administrators only: run as root, or load the "
                       "nvidia module with NVreg_RestrictProfilingToAdminUsers=0")
    if outcome.timed_out:
        raise BadInput(f"ncu: {outcome.describe()}")
    return outcome, stats


def profile(where, row, name, combinations):
    """The record of one row and variant."""
    program = where.program("bench", row.program)
    arguments, settings = variant_of(name, program, combinations)
    outcome, stats = run_ncu(where, program, [*row.arguments, *arguments], settings)
    kernels = per_kernel(kernels_in(outcome.out))
    if not kernels:
        last = (outcome.err + outcome.out).strip().splitlines()[-3:]
        raise BadInput(f"ncu saw no kernel ({outcome.describe()}): " + " / ".join(last))
    note = ""
    if settings is not None and not any(stats.get("launches", {}).get("redirected", {}).values()):
        note = ("NOT a preloaded profile: under ncu no launch was redirected, so these are the program's own kernels; "
                "the library steps aside for tools that load their own driver layer")
    return {"row": row.name, "variant": name, "profiled": NATIVE if note else name, "note": note, "kernels": kernels}


def shown(value, digits=1):
    return "-" if value is None else f"{value:,.{digits}f}"


def text_of(record):
    lines = [["kernel", "launches", "time, us", "warp execution efficiency, %", "achieved occupancy, %",
              "instructions", "DRAM read, MB", "DRAM written, MB", "DRAM, GB/s"]]
    for kernel in record["kernels"]:
        lines.append([kernel["kernel"][:60], kernel["launches"], shown(kernel["time_us"]),
                      shown(kernel["warp_execution_efficiency_pct"]), shown(kernel["achieved_occupancy_pct"]),
                      shown(kernel["instructions"], 0), shown(kernel["dram_read_bytes"] / 1e6, 2),
                      shown(kernel["dram_written_bytes"] / 1e6, 2), shown(kernel["dram_gb_per_s"])])
    title = f"{record['row']}, {record['variant']}; two runs under ncu"
    if record["variant"] not in PLAIN:
        title += "; children that the device launches are not seen by ncu"
    return "\n\n".join([title, table.render(lines), *([record["note"]] if record["note"] else [])])
