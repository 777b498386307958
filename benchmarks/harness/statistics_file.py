"""Reading what a preloaded run wrote to the file that KLAP_STATS names."""

import json


def read(path):
    """The statistics, or an empty dictionary with the reason under "missing"."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        return {"missing": str(error)}


def is_kernel(symbol, name):
    """Whether a kernel's symbol belongs to the source-level name: plain, or mangled with its length."""
    return symbol == name or f"{len(name)}{name}" in symbol


def redirected(stats, name):
    """How many launches of the kernel ran its variant."""
    launches = stats.get("launches", {}).get("redirected", {})
    return sum(count for symbol, count in launches.items() if is_kernel(symbol, name))


def launchers(stats):
    """Who launches the children of the rewritten sites: a set of "host" and "device"."""
    sites = [site for module in stats.get("modules", []) for site in module.get("sites", [])]
    return {site.get("launcher") for site in sites if site.get("verdict") == "rewritten"}


def summary(stats):
    """The part worth keeping for every single run."""
    if "missing" in stats:
        return stats
    return {
        "modules": [{"how": m.get("how"), "load_path": m.get("load_path"), "load_ms": m.get("load_ms"),
                     "compile_ms": m.get("compile_ms")} for m in stats.get("modules", [])],
        "sites": [{key: site.get(key) for key in ("parent_demangled", "child_demangled", "verdict", "granularity",
                                                  "launcher", "reason", "notes")}
                  for m in stats.get("modules", []) for site in m.get("sites", [])],
        "launches": stats.get("launches"),
        "children_aggregated": stats.get("children_aggregated"),
    }
