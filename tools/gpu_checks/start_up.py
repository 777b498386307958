"""What preloading adds to the start of a program that launches kernels from kernels: cold, and from the disk cache.

The library's own account of a load (load_ms of the statistics) has the driver's load of the rewritten image in it, which
stands in place of the driver's load of the program's own. So that is measured, too, and taken off. Whole-process times
stand beside it, but most of those is context creation inside the driver and scatters by more than a warm start costs.
Each round starts four fresh processes in turn: native, with an empty cache, with the cache that this one left, and one
that only loads the program's own machine code.
"""

import os
import statistics
import sys
import tempfile

from harness import process, statistics_file

ALLOWED_WARM_MS = 5.0
ALLOWED_COLD_MS = 400.0
# As small as the program goes: its start is what is looked at.
ARGUMENTS = ["--vertices", "64", "--degree", "4", "--reps", "5", "--warmup", "0"]


def run_once(where, how, folder):
    stats_file = os.path.join(folder, "stats.json")
    command = [where.program("bench", "bfs"), *ARGUMENTS]
    if how == "native":
        outcome = process.run(command, where.native(), 60)
        return {"how": how, "code": outcome.code, "process_ms": round(outcome.seconds * 1000, 2)}
    cache = {"KLAP_CACHE_DIR": os.path.join(folder, "cache"), "KLAP_CACHE_DISABLE": "0"}
    outcome = process.run(command, where.preloaded(stats_file, **cache), 60)
    stats = statistics_file.read(stats_file)
    modules = stats.get("modules", [])
    return {"how": how, "code": outcome.code, "process_ms": round(outcome.seconds * 1000, 2),
            "load_ms": sum(m.get("load_ms", 0) for m in modules),
            "driver_ms": sum(m.get("driver_ms", 0) for m in modules), "cache": [m.get("cache") for m in modules],
            "toolchain_calls": stats.get("toolchain_calls"),
            "redirected": sum(stats.get("launches", {}).get("redirected", {}).values())}


def extract_image(where, folder):
    """The machine code that the program itself loads; None where cuobjdump is missing or finds several."""
    program = os.path.abspath(where.program("bench", "bfs"))
    process.run(["sh", "-c", 'cd "$1" && cuobjdump -xelf all "$2"', "sh", folder, program], where.native(), 60)
    images = [name for name in os.listdir(folder) if name.endswith(".cubin")]
    return os.path.join(folder, images[0]) if len(images) == 1 else None


def load_natively(where, image):
    script = os.path.join(os.path.dirname(__file__), "load_image.py")
    outcome = process.run([sys.executable, script, image], where.native(), 60)
    return {"how": "image", "code": outcome.code, "process_ms": round(outcome.seconds * 1000, 2),
            "load_ms": float(outcome.out) if outcome.code == 0 else 0.0}


def judge(records, warm_ms, cold_ms):
    wrong = [f"{r['how']} run failed ({r['code']})" for r in records if r["code"] != 0]
    for r in records:
        if r["how"] in ("cold", "warm") and not r["redirected"]:
            wrong.append(f"{r['how']} run redirected no launch")
        if r["how"] == "warm" and any((r["toolchain_calls"] or {"nvrtc": 1}).values()):
            wrong.append(f"warm run called the toolchain: {r['toolchain_calls']}")
    if warm_ms >= ALLOWED_WARM_MS:
        wrong.append(f"a warm start takes {warm_ms:.2f} ms, {ALLOWED_WARM_MS:g} ms are allowed")
    if cold_ms >= ALLOWED_COLD_MS:
        wrong.append(f"a cold start takes {cold_ms:.0f} ms, {ALLOWED_COLD_MS:g} ms are allowed")
    return wrong


def medians_of(records):
    return {key: statistics.median(r[key] for r in records)
            for key in ("process_ms", "load_ms", "driver_ms") if key in records[0]}


def measure(where, rounds, say):
    """Interleaved native, cold and warm starts of BFS, and loads of its own machine code."""
    records = []
    with tempfile.TemporaryDirectory() as images:
        image = extract_image(where, images)
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                records += [run_once(where, how, folder) for how in ("native", "cold", "warm")]
            if image:
                records.append(load_natively(where, image))
    medians = {how: medians_of([r for r in records if r["how"] == how])
               for how in ("native", "cold", "warm", "image") if image or how != "image"}
    natively = medians["image"]["load_ms"] if image else 0.0
    added = {how: medians[how]["load_ms"] - natively if how in ("cold", "warm") else None for how in medians}
    say(f"start of bfs: {added['cold']:.1f} ms added cold, {added['warm']:.2f} ms warm; "
        + (f"its own code loads in {natively:.2f} ms" if image else "without cuobjdump its own load is not taken off")
        + f", the rewritten one in {medians['warm']['driver_ms']:.2f} ms, with what is made ready for launches")
    return {"medians": medians, "added_ms": added, "wrong": judge(records, added["warm"], added["cold"]), "runs": records}
