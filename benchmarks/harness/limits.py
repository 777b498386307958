"""The search for the pending-launch limit at which a program natively is at its best.

CUDA loses device launches beyond the limit, and a larger limit makes every launch slower. A limit works if results
are right and a counting run loses no launch; of those that work the fastest is what a fair comparison is with.
Limits are doubled from CUDA's default; once one works, as long as the next is clearly faster.
"""

import statistics
import time

from .variants import DEFAULT_LIMIT

LIMITS = [DEFAULT_LIMIT << i for i in range(10)]  # to 1,048,576
WORTH_GOING_ON = 0.97
SECONDS_AFTER_A_HANG = 3.0
SECONDS_A_LAUNCH = 20e-6  # ten times what a launch costs at large limits


def patience(timeout, launches, hung_before):
    """Seconds to wait for an answer: once a limit hung, others may too, and each wait is paid for."""
    if not hung_before or launches is None:
        return timeout
    return min(timeout, SECONDS_AFTER_A_HANG + launches * SECONDS_A_LAUNCH)


def try_limit(runner, limit, seconds):
    """One limit in the runner's process, which must be ready; returns its record."""
    begin = time.monotonic()
    record = {"limit": limit, "verdict": "", "why": "", "lost_launches": None, "ms": []}
    if limit != DEFAULT_LIMIT:
        answer = runner.ask(f"limit {limit}", seconds)
        if answer is not None and "refused" in answer:
            record.update(verdict="refused", why=answer["refused"])
            return record
    wrong_before = runner.wrong
    if not runner.gone and runner.run(False, seconds):
        record["ms"].append(runner.last_ms)
    if not runner.gone:
        runner.count_lost(seconds)
        record["lost_launches"] = runner.lost
    for _ in range(2):
        # What does not work already needs no good time here.
        if not runner.gone and runner.wrong == wrong_before and record["lost_launches"] == 0:
            runner.run(False, seconds)
            record["ms"].append(runner.last_ms)
    mistaken = runner.wrong > wrong_before
    record["verdict"] = runner.verdict or ("wrong" if mistaken else "right")
    record["why"] = runner.why or (runner.first_mistake if mistaken else "")
    # The first run at a limit also pays for setting it up.
    record["median_ms"] = statistics.median(record["ms"][1:] or record["ms"]) if record["ms"] else None
    record["seconds"] = round(time.monotonic() - begin, 3)
    return record


def works(record):
    return record["verdict"] == "right" and record["lost_launches"] == 0


def best_of(records):
    """The fastest limit that works, or None."""
    working = [record for record in records if works(record)]
    return min(working, key=lambda record: record["median_ms"])["limit"] if working else None


def is_over(records):
    """Whether a larger limit needs to be looked at no more."""
    working = [record for record in records if works(record)]
    if not working:
        return False
    if not works(records[-1]):
        return True
    return len(working) > 1 and working[-1]["median_ms"] > WORTH_GOING_ON * working[-2]["median_ms"]


def search(first, second, fresh, timeout, deadline, note):
    """Tries limits one after another, each record to `note`; returns why it was cut short, or "".

    `first` is the ready process at the default limit, `second` one for the other limits, and `fresh()` starts
    another when that is gone.
    """
    records = []
    launches = first.description.get("child_launches")
    for limit in LIMITS:
        if records and time.monotonic() >= deadline:
            return f"limits from {limit} on were not tried"
        runner = first if limit == DEFAULT_LIMIT else second
        if limit != DEFAULT_LIMIT and runner.gone:
            runner = second = fresh()
        if runner.gone:  # it did not even start
            records.append({"limit": limit, "verdict": runner.verdict, "why": runner.why, "lost_launches": None,
                            "ms": [], "median_ms": None, "seconds": 0.0})
        else:
            hung = any(record["verdict"] == "hangs" for record in records)
            records.append(try_limit(runner, limit, patience(timeout, launches, hung)))
        note(records[-1])
        # Two fresh processes that end the same way before any limit matters will not be mended by a third.
        if is_over(records) or [r["verdict"] for r in records[-3:]] == ["failed"] * 3:
            break
    return ""
