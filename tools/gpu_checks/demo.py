"""The demonstration on a machine with a GPU: BFS natively at its best working limit, then preloaded."""

import os
import shutil
import tempfile

from harness import measure, offered, report, rows, serve, table, variants

BENCHMARKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "benchmarks")
SECONDS = 90


class Told:
    """Prints what the limit search says and nothing of the repetitions."""

    def step(self, what):
        if what.startswith("native at limit"):
            print(f"  {what}", flush=True)


def setup_rows(record, ours):
    """One line for each variant."""
    lines = [["setup", "median ms", "min", "max", "right", "wrong", "result", "lost launches",
              "preloaded is faster by"]]
    our_ms = report.time_of(record, ours)
    for found in record["variants"]:
        ms = report.time_of(record, found["name"])
        name = "preloaded" if found["name"] == ours else found["name"]
        if found["kind"] == "native":
            name = f"native, limit {found['limit']}" + (", the best" if found["limit"] == record["best_limit"] else "")
        lines.append([name, table.milliseconds(found["median_ms"]), table.milliseconds(found["min_ms"]),
                      table.milliseconds(found["max_ms"]), found["right"], found["wrong"], found["verdict"],
                      found.get("lost_launches", 0), report.ratio_text(report.divide(ms, our_ms))])
    return lines


def print_sites(found):
    """What was done to each launch site, from the preloaded process's own statistics."""
    print("\nwhat the library did to the program's launch sites:")
    for site in found.get("sites", []):
        what = (f"rewritten, granularity {site['granularity']}, launched by the {site['launcher']}"
                if site["verdict"] == "rewritten" else f"left: {site['reason']}")
        print(f"  {site['parent_demangled']} launching {site['child_demangled']}: {what}")
        for note in site.get("notes") or []:
            print(f"    {note}")
    print(f"parent launches redirected: {found.get('redirected')}; children run without a launch of their own: "
          f"{found.get('children_aggregated')}")


def measure_bfs(where):
    """(the measured row, the name of its preloaded variant)."""
    usual = offered.combinations(offered.settings(where))[1]
    ours = variants.preloaded(*usual).name
    row = next(row for row in rows.read_all(BENCHMARKS) if row.name == "bfs")
    options = measure.Options(variants=[variants.NATIVE, variants.BEST, variants.FLAT, ours], row_seconds=SECONDS)
    folder = tempfile.mkdtemp(prefix="klap-demo-")
    try:
        session = measure.Session(where, options, folder, Told(), [usual], usual)
        return measure.RowRun(session, row, SECONDS).measure(), ours
    finally:
        serve.kill_all()
        shutil.rmtree(folder, ignore_errors=True)


def show(where, found):
    """Returns the exit code: 0 only if the preloaded run was right and something was rewritten."""
    print(f"\nbreadth-first search, 10,000 vertices, 10 million edges, on {found['device']}\n", flush=True)
    print("natively, one device launch for every vertex, at each pending-launch limit:", flush=True)
    record, ours = measure_bfs(where)
    print("\n" + table.render(setup_rows(record, ours)))
    preloaded = measure.variant(record, ours)
    print_sites(preloaded)
    wrong = list(record["wrong"])
    if not preloaded.get("redirected"):
        wrong.append("no launch was redirected")
    for problem in wrong:
        print(f"WRONG: {problem}")
    factor = report.divide(report.time_of(record, variants.BEST), report.time_of(record, ours))
    if not wrong and factor:
        times = f"{factor:.{0 if factor >= 100 else 1}f}"
        print(f"\nthe same executable, preloaded: {times} times faster, every result checked against the CPU")
    return 1 if wrong else 0
