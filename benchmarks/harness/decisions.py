"""The table of what the library decided for each row: which engine, and whether the guard took the faster form.

A row's parents may run as they are where that is faster (src/runtime/README.md, the guard). `--guard` measures each row
without the guard, too, and once more after earlier runs of the same program, whose times the guard goes on from. The
decision is right if the form that ran is the faster one, or no more than 3 % slower. If the original ran, its time is that of
this run: natively, in a process of its own, it may take longer. Where the original was not tried, the variant is what was
decided. Natively a row counts only if it is right at CUDA's default limit and loses no launch there, since the guard may run
nothing else.
"""

from . import table
from .measure import variant
from .report import ms_text, time_of, usual
from .statistics_file import launches_as_they_are
from .variants import EARLIER_RUNS, FLAT, NATIVE, UNGUARDED

CLOSE = 0.03  # as in the guard
ORIGINAL, VARIANT, LEFT = "native, by the guard", "variant", "left"


def has_decisions(content):
    """Whether the file has what the table needs."""
    return any(variant(record, usual(content) + UNGUARDED) for record in content["rows"])


def decided(record, content):
    """The record of the variant whose decision counts: after earlier runs, where that was measured."""
    name = usual(content)
    return variant(record, name + EARLIER_RUNS) or variant(record, name)


def chosen_form(found):
    """The form that ran most of the launches of rewritten parents."""
    parents = found.get("parents", {}).values()
    originals = launches_as_they_are(found)
    variants = sum(parent["variant_launches"] for parent in parents)
    if originals > variants:
        return ORIGINAL
    return VARIANT if variants else LEFT


def engines(found):
    """How the launched parents are replaced."""
    names = {parent["engine"] for parent in found.get("parents", {}).values() if parent["variant_launches"]}
    return ", ".join(sorted(names)) or "-"


def native_time(record):
    """The median at the default limit, or None where it loses launches."""
    found = variant(record, NATIVE)
    return time_of(record, NATIVE) if found is not None and not found.get("lost_launches") else None


def was_tried(found):
    return any(guard["original_ms"] for parent in found.get("parents", {}).values() for guard in parent["guard"])


def is_right(form, unguarded, native, original=None):
    """Whether that form is the faster one; None if there was no choice. `original`: its time where it was decided for."""
    if unguarded is None or native is None or form == LEFT:
        return None
    as_it_is = native if original is None else min(native, original)
    taken, other = (as_it_is, unguarded) if form == ORIGINAL else (unguarded, native)
    return taken <= other * (1 + CLOSE)


def lost_share(found):
    """The part of the launches' time that trials took, of all processes of the variant; None if nothing was measured."""
    trying = found.get("trying", {"spent_ms": 0})
    return trying["lost_ms"] / trying["spent_ms"] if trying["spent_ms"] else None


def share_text(share):
    return "-" if share is None else f"{100 * share:.1f} %"


def decision_of(record, content):
    """(form, whether it is right, share lost by trials) of a row; None if it was not measured."""
    found = decided(record, content)
    if found is None or found["verdict"] != "right":
        return None
    form = chosen_form(found)
    original = found["median_ms"] if form == ORIGINAL else None
    return form, is_right(form, time_of(record, usual(content) + UNGUARDED), native_time(record), original), lost_share(found)


def decision_text(right, found):
    if right is None:
        return "no choice"
    return ("right" if right else "WRONG") + ("" if was_tried(found) else ", not tried")


def decision_rows(content):
    name = usual(content)
    rows = [["row", "engine", "runs as", "time", "without guard", "native", FLAT, "decision", "lost by trials"]]
    for record in content["rows"]:
        found, decision = decided(record, content), decision_of(record, content)
        times = [ms_text(time_of(record, name + UNGUARDED)), ms_text(native_time(record)), ms_text(time_of(record, FLAT))]
        if decision is None:
            rows.append([record["name"], "-", "-", found["verdict"] if found else "-", *times, "-", "-"])
            continue
        form, right, share = decision
        rows.append([record["name"], engines(found), form, ms_text(found["median_ms"]), *times,
                     decision_text(right, found), share_text(share)])
    return rows


def summary(content):
    """One sentence about all rows."""
    found = [decision for decision in (decision_of(record, content) for record in content["rows"]) if decision]
    answers = [right for _, right, _ in found if right is not None]
    shares = [share for _, _, share in found if share is not None]
    if not answers:
        return "The guard had no choice in any row."
    text = f"The guard's decision is right in {sum(answers)} of {len(answers)} rows ({100 * sum(answers) / len(answers):.0f} %)"
    return text + (f"; trials took {share_text(max(shares))} of a row's launches at most." if shares else ".")


def text_of(content, markdown=False):
    show = table.markdown if markdown else table.render
    return show(decision_rows(content)) + "\n\n" + summary(content)
