"""What preloading costs a program that launches nothing from the device.

Whole-process times scatter by several milliseconds, most of it context creation inside the driver, so the cost is
put together from the places where the library can act at all: being loaded (measured on /bin/true), loading a
module, finding a kernel and launching it.
"""

import json
import statistics

from harness import process

ALLOWED_MS = 1.0


def run_once(where, program, preloaded):
    environment = where.preloaded() if preloaded else where.native()
    outcome = process.run([where.program("bench", program), "--json", "-"], environment, 60)
    try:
        report = json.loads(outcome.out)
    except ValueError:
        report = {"right": False, "errors": outcome.err.splitlines()[-5:]}
    return {"preloaded": preloaded, "code": outcome.code, "process_ms": round(outcome.seconds * 1000, 2), **report}


def loading_ms(where, rounds):
    """Milliseconds that preloading adds to a process that does nothing, from interleaved runs."""
    times = {False: [], True: []}
    for _ in range(rounds):
        for preloaded, found in times.items():
            environment = where.preloaded() if preloaded else where.native()
            found.append(process.run(["/bin/true"], environment, 10).seconds * 1000)
    return statistics.median(times[True]) - statistics.median(times[False])


def median_difference(records, key):
    """Preloaded minus native."""
    split = {flag: [r[key] for r in records if r["preloaded"] == flag and key in r] for flag in (True, False)}
    if not split[True] or not split[False]:
        return None
    return statistics.median(split[True]) - statistics.median(split[False])


def measure(where, program, rounds, say):
    """Interleaved native and preloaded runs of one build of the program."""
    records = [run_once(where, program, preloaded) for _ in range(rounds) for preloaded in (False, True)]
    wrong = [f"{'preloaded' if r['preloaded'] else 'native'} run failed ({r['code']})"
             for r in records if r["code"] != 0 or not r["right"]]
    added = {key: median_difference(records, key)
             for key in ("context_ms", "load_ms", "first_launch_ms", "launch_us", "whole_ms", "process_ms")}
    added["loading_the_library_ms"] = loading_ms(where, 5 * rounds)
    parts = [added["loading_the_library_ms"], added["load_ms"], added["first_launch_ms"]]
    total = sum(parts) if None not in parts else None
    if total is not None and total >= ALLOWED_MS:
        wrong.append(f"{total:.2f} ms added, {ALLOWED_MS:g} ms are allowed")
    if total is not None:
        say(f"{program}: {total:.3f} ms added at start, {added['launch_us']:.3f} us a launch")
    return {"program": program, "added": added, "added_ms": total, "wrong": wrong, "runs": records}
