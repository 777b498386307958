"""The demonstration on a machine with a GPU: BFS natively at its best working limit, then preloaded."""

from harness import table

from . import benchmarks


def quiet(_):
    pass


def print_sites(record):
    """What was done to each launch site, from the preloaded run's own statistics."""
    stats = record["statistics"]
    print("\nwhat the library did to the program's launch sites:")
    for site in stats.get("sites", []):
        what = (f"rewritten, granularity {site['granularity']}, launched by the {site['launcher']}"
                if site["verdict"] == "rewritten" else f"left: {site['reason']}")
        print(f"  {site['parent_demangled']} launching {site['child_demangled']}: {what}")
        for note in site.get("notes") or []:
            print(f"    {note}")
    launches = (stats.get("launches") or {}).get("redirected", {})
    print(f"parent launches redirected: {sum(launches.values())}; children run without a launch of their own: "
          f"{stats.get('children_aggregated')}")


def show(where, found):
    """Returns the exit code: 0 only if the preloaded run was right and something was rewritten."""
    print(f"\nbreadth-first search, 10,000 vertices, 10 million edges, on {found['device']}\n", flush=True)
    print("natively, one device launch for every vertex, at each pending-launch limit:", flush=True)
    limits = benchmarks.try_limits(where, "bfs", [], lambda text: print(f"  {text}", flush=True))
    best = benchmarks.best_limit(limits)
    setups = [benchmarks.Setup("preloaded", True), benchmarks.Setup("flat", False, ["--variant", "flat"])]
    if best:
        setups.insert(0, benchmarks.native("native, best limit", best))
    records, summaries = benchmarks.interleave(where, "bfs", setups, ["--reps", "21"], 3, quiet)
    benchmarks.add_lost_launches(summaries, setups, limits)
    print("\n" + table.render(table.benchmark_rows({"summary": summaries, "best_limit": best})))
    wrong = benchmarks.judge(summaries, records)
    preloaded = next(r for r in records if r["setup"] == "preloaded")
    print_sites(preloaded)
    for problem in wrong:
        print(f"WRONG: {problem}")
    factor = benchmarks.ratios(summaries).get("native, best limit")
    if not wrong and factor:
        print(f"\nthe same executable, preloaded: {factor:g} times faster, every result checked against the CPU")
    return 1 if wrong else 0
