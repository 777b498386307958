"""The tables that are made from a result file: every row, geometric means, and the comparison of two files.

A time is shown only where its variant was right in every run; anything else shows its verdict and takes part in no
ratio.
"""

import statistics

from . import table
from .measure import variant
from .variants import AT_BEST, BEST, BY_HAND, FLAT, NATIVE, plain_order

AGREE = 0.05  # two runs on the same device should differ by no more


def usual(content):
    """The name of the variant with the library's own settings."""
    return content.get("settings", {}).get("usual", "grid/host")


def preloaded_names(content, usual_first=True):
    """Every preloaded variant in the file, the usual one first and the one at the best limit last."""
    names = []
    for row in content["rows"]:
        names += [v["name"] for v in row["variants"] if v["kind"] == "preloaded" and v["name"] not in names]
    order = {name: (AT_BEST in name, usual_first and name != usual(content), i) for i, name in enumerate(names)}
    return sorted(names, key=order.get)


def plain_names(content):
    """Every variant in the file that does without dynamic parallelism."""
    found = {v["name"] for row in content["rows"] for v in row["variants"] if v["kind"] == "plain"} | {FLAT}
    return sorted(found, key=plain_order)


def compared_names(content):
    """What a preloaded time is divided by: flat code, and the program aggregated by hand where there is one."""
    return [name for name in plain_names(content) if name in (FLAT, BY_HAND)]


def time_of(record, name):
    """The median of a variant that was right in every run, or None."""
    found = variant(record, name)
    if found is None or found["verdict"] != "right" or not found["median_ms"]:
        return None
    if name == BEST and record["best_limit"] is None:
        return None
    return found["median_ms"]


def ours(record, content):
    """(name, median) of what the library does for this row: at the default limit, else at native's best.

    Where only one preloaded variant was measured, that one: what is promoted is the same at every granularity.
    """
    names = [v["name"] for v in record["variants"] if v["kind"] == "preloaded"]
    for name in (usual(content), usual(content) + AT_BEST, *(names if len(names) == 1 else [])):
        ms = time_of(record, name)
        if ms:
            return name, ms
    return usual(content), None


def ms_text(value):
    """Milliseconds with about four digits, whatever their size."""
    if value is None:
        return "-"
    return f"{value:.{1 if value >= 100 else 2 if value >= 10 else 3 if value >= 1 else 4}f}"


def cell(record, name):
    """A variant's time, or what went wrong with it."""
    found = variant(record, name)
    if found is None:
        return "-"
    if found["verdict"] == "not available":
        return "not available"
    if found["verdict"] != "right":
        return found["verdict"]
    return ms_text(found["median_ms"])


def default_cell(record):
    """Native at CUDA's default limit, with the launches that were lost there."""
    found = variant(record, NATIVE)
    if found is None:
        return "-"
    lost = found.get("lost_launches")
    return cell(record, NATIVE) + (f" ({lost} lost)" if lost else "")


def ratio_text(value):
    if value is None:
        return "-"
    return f"{value:.0f}x" if value >= 100 else f"{value:.1f}x" if value >= 10 else f"{value:.2f}x"


def divide(a, b):
    return a / b if a and b else None


def sites_cell(record, content):
    """Sites rewritten and left with the reasons, as the process said; else as klap-ptx explains them."""
    found = variant(record, usual(content)) or {}
    facts = found if "sites_rewritten" in found else record["explained"]
    left = facts["sites_left"]
    text = f"{facts['sites_rewritten']}/{sum(left.values())}"
    return text + (" " + ", ".join(sorted(left)) if left else "")


def best_cell(record):
    if record["best_limit"] is not None:
        return str(record["best_limit"])
    return "-" if not record["limits"] else "not found" if record["cut_short"] else "none"


def main_rows(content):
    names = plain_names(content) + preloaded_names(content)
    header = ["row", "launches", "native default", "best limit", "native best", *names]
    header += ["faster than native best", *[f"time / {name}" for name in compared_names(content)]]
    header += ["sites rewritten/left", "notes"]
    rows = [header]
    for record in content["rows"]:
        _, our_ms = ours(record, content)
        cells = [record["name"], str(record["description"].get("child_launches", "-")), default_cell(record),
                 best_cell(record), cell(record, BEST)]
        cells += [cell(record, name) for name in names]
        cells += [ratio_text(divide(time_of(record, BEST), our_ms))]
        cells += [ratio_text(divide(our_ms, time_of(record, name))) for name in compared_names(content)]
        cells += [sites_cell(record, content)]
        rows.append(cells + [f"cut short: {record['cut_short']}" if record["cut_short"] else ""])
    return rows


def geometric_mean(values):
    return statistics.geometric_mean(values) if values else None


def papers(content):
    """The papers of the rows in the order they appear, then all together as None."""
    return list(dict.fromkeys(record["paper"] for record in content["rows"])) + [None]


def mean_text(pairs):
    """Geometric mean of the ratios of the (a, b) that both are there, and their number."""
    found = [a / b for a, b in pairs if a and b]
    return f"{ratio_text(geometric_mean(found))} ({len(found)})" if found else "-"


def mean_rows(content):
    """Geometric means of speed-ups over native best and of times against flat, per paper and over all."""
    names = preloaded_names(content)
    faster = plain_names(content) + names
    compared = compared_names(content)
    rows = [["geometric mean (rows)", "preloaded: faster by", *[f"{name}: faster by" for name in faster],
             *[f"preloaded time / {name}" for name in compared], *[f"{name} time / flat" for name in names]]]
    for paper in papers(content):
        records = [record for record in content["rows"] if paper in (None, record["paper"])]
        mine = {record["name"]: ours(record, content)[1] for record in records}
        cells = [paper or "all", mean_text([(time_of(r, BEST), mine[r["name"]]) for r in records])]
        cells += [mean_text([(time_of(r, BEST), time_of(r, name)) for r in records]) for name in faster]
        cells += [mean_text([(mine[r["name"]], time_of(r, name)) for r in records]) for name in compared]
        cells += [mean_text([(time_of(r, name), time_of(r, FLAT)) for r in records]) for name in names]
        rows.append(cells)
    return [list(column) for column in zip(*rows)]  # one line per ratio, one column per paper


def origin(content):
    """Where and when, in one line."""
    return (f"{content['device']}, driver {content['driver']}, CUDA {content['toolkit']}, "
            f"{content['date'].split('T')[0]}, commit {content['commit']}")


def text_of(content, markdown=False):
    """Everything that is printed at the end of a run."""
    show = table.markdown if markdown else table.render
    parts = []
    if content["rows"]:
        parts = [show(main_rows(content)),
                 "Times are medians in ms. Faster: native best / variant. \"preloaded\" is the library at its own\n"
                 f"settings ({usual(content)}), at native's best limit where it needs one.", show(mean_rows(content))]
    parts.append(origin(content))
    if content.get("interrupted"):
        parts.append("the run was interrupted")
    if content.get("not_run"):
        parts.append("not run: " + ", ".join(content["not_run"]))
    return "\n\n".join(parts)


def compare_rows(before, after):
    """(table of the ratios after / before of every variant that both files have, those that differ too much)."""
    earlier = {record["name"]: record for record in before["rows"]}
    pairs = [(earlier[record["name"]], record) for record in after["rows"] if record["name"] in earlier]
    names = [NATIVE, BEST, *plain_names(after)] + [n for n in preloaded_names(after) if n in preloaded_names(before)]
    rows, differ = [["row", *names]], []
    columns = {name: [] for name in names}
    for a, b in pairs:
        cells = [b["name"]]
        for name in names:
            ratio = divide(time_of(b, name), time_of(a, name))
            cells.append("-" if ratio is None else f"{ratio:.3f}")
            if ratio is not None:
                columns[name].append(ratio)
            if ratio is not None and abs(ratio - 1) > AGREE:
                differ.append(f"{b['name']} {name}: {ratio:.3f}")
        rows.append(cells)
    means = [geometric_mean(columns[name]) for name in names]
    rows.append(["geometric mean"] + ["-" if mean is None else f"{mean:.3f}" for mean in means])
    return rows, differ


def compare_text(before, after):
    rows, differ = compare_rows(before, after)
    parts = [f"before: {origin(before)}\nafter:  {origin(after)}", table.render(rows),
             "Time after / time before."]
    only = {r["name"] for r in before["rows"]} ^ {r["name"] for r in after["rows"]}
    if only:
        parts.append("in one file only: " + ", ".join(sorted(only)))
    if differ:
        parts.append(f"{len(differ)} differ by more than {AGREE:.0%}:\n  " + "\n  ".join(differ))
    else:
        parts.append(f"all agree within {AGREE:.0%}")
    return "\n\n".join(parts)
