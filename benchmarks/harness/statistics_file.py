"""Reading what a preloaded run wrote to the file that KLAP_STATS names."""

import collections
import json
import re

PROMOTION = "promotion"  # the granularity of sites in chains that are promoted
# Template arguments that tell instances of one kernel apart: whether lost launches are counted, and those of chains.
INSTANCE = re.compile(r"<(?:\(bool\)[01]|true|false|(?:\(int\))?\d+, \(bench::Link\)\d)>")


def read(path):
    """The statistics, or an empty dictionary with the reason under "missing"."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        return {"missing": error.strerror}  # without the path: results are for other people's eyes
    except ValueError as error:
        return {"missing": str(error)}


def is_kernel(symbol, name):
    """Whether a kernel's symbol belongs to the source-level name: plain, or mangled with its length."""
    return symbol == name or f"{len(name)}{name}" in symbol


def redirected(stats, name):
    """How many launches of the kernel ran its variant."""
    launches = stats.get("launches", {}).get("redirected", {})
    return sum(count for symbol, count in launches.items() if is_kernel(symbol, name))


def slices(stats, name):
    """In how many slices launches of the kernel ran, of those that ran in several."""
    launches = stats.get("launches", {}).get("sliced", {})
    return sum(sliced["slices"] for symbol, sliced in launches.items() if is_kernel(symbol, name))


def most_slices(stats):
    """In how many slices a launch ran in the mean, of the kernel whose launches ran in most; 1 if all ran whole."""
    sliced = stats.get("launches", {}).get("sliced", {})
    return max((found["slices"] / found["launches"] for found in sliced.values() if found["launches"]), default=1)


def ways(stats):
    """How sites are aggregated: a set of granularity/launcher. Chains that are promoted are not, whatever is asked."""
    sites = [site for module in stats.get("modules", []) for site in module.get("sites", [])]
    return {f"{site.get('granularity')}/{site.get('launcher')}" for site in sites
            if site.get("verdict") == "rewritten" and site.get("granularity") != PROMOTION}


def is_promoted(stats):
    """True if some chain is promoted."""
    return any(site.get("granularity") == PROMOTION for module in stats.get("modules", [])
               for site in module.get("sites", []))


def summary(stats):
    """The part worth keeping for every single run."""
    if "missing" in stats:
        return stats
    return {
        "modules": [{"how": m.get("how"), "load_path": m.get("load_path"), "load_ms": m.get("load_ms"),
                     "driver_ms": m.get("driver_ms"),
                     "compile_ms": m.get("compile_ms")} for m in stats.get("modules", [])],
        "sites": [{key: site.get(key) for key in ("parent_demangled", "child_demangled", "verdict", "granularity",
                                                  "launcher", "reason", "notes")}
                  for m in stats.get("modules", []) for site in m.get("sites", [])],
        "launches": stats.get("launches"),
    }


def program_sites(sites):
    """(rewritten, {reason: left}) of a list of sites, each source-level parent counted once.

    The programs hold their parents twice, as instances of a template over bool: one is timed, the other counts lost
    launches. Counting both would double every figure. Chains also come in tiles of two sizes, and with a hint.
    """
    instances = {}
    for site in sites:
        verdict = site.get("reason") if site.get("verdict") != "rewritten" else ""
        key = (site.get("parent_demangled"), site.get("child_demangled"), verdict)
        instances[key] = instances.get(key, 0) + 1
    found = collections.Counter()
    for (parent, child, verdict), count in instances.items():
        key = tuple(INSTANCE.sub("<>", name or "") for name in (parent, child)) + (verdict,)
        found[key] = max(found[key], count)
    left = collections.Counter()
    for (_, _, verdict), count in found.items():
        left[verdict] += count
    return left.pop("", 0), dict(left)


def launches_as_they_are(found):
    """The launches of rewritten parents that the guard ran as the program has them."""
    return sum(reasons.get("original is faster", 0) for reasons in found.get("launches_left", {}).values())


def trying(processes):
    """What trials of originals cost, and the time of all launches that the guard knows, over several processes."""
    guards = [guard for stats in processes for parent in stats.get("parents", {}).values() for guard in parent["guard"]]
    spent = [guard["launches"] * guard["original_ms" if guard["choice"] == "original" else "variant_ms"]
             for guard in guards]
    return {"lost_ms": sum(guard["lost_ms"] for guard in guards), "spent_ms": sum(spent)}


def of_a_benchmark(stats):
    """What a result file of benchmarks/run keeps: what became of the sites and how many launches were redirected."""
    if "missing" in stats or not stats:
        return {"statistics": stats.get("missing", "none")}
    modules = stats.get("modules", [])
    sites = [site for module in modules for site in module.get("sites", [])]
    launches = stats.get("launches", {})
    rewritten, left = program_sites(sites)
    keys = ("parent_demangled", "child_demangled", "verdict", "granularity", "launcher", "reason", "detail", "notes")
    return {"sites": [{key: site[key] for key in keys if key in site} for site in sites],
            "sites_rewritten": rewritten, "sites_left": left,
            "redirected": sum(launches.get("redirected", {}).values()),
            "launches_left": launches.get("left", {}), "parents": stats.get("parents", {}), "slices": most_slices(stats),
            "load_ms": [module.get("load_ms") for module in modules],
            "cache": [module.get("cache") for module in modules]}
