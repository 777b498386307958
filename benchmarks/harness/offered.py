"""What the built programs and the built library offer, asked of themselves.

Variants and options come from a program's --help, granularities and launchers from klap-ptx, so that a new one
appears in the tables without a change here.
"""

import functools
import json
import re

from . import process

SECONDS = 60
DEVICE_ONLY = {"warp", "block", "multiblock"}  # granularities that ignore launchers by which the host launches
WISHES = {"none", "auto"}  # values that are no way to rewrite


@functools.lru_cache(maxsize=None)
def help_of(program):
    """The text that a program prints for --help, empty if it does not."""
    outcome = process.run([program, "--help"], process.without_ours(), SECONDS)
    return outcome.out if outcome.code == 0 else ""


def variants_of(program):
    """The words that --variant takes."""
    found = re.search(r"--variant (\S+)", help_of(program))
    return found.group(1).split("|") if found else []


def has_option(program, name):
    return re.search(rf"^\s*--{re.escape(name)}\b", help_of(program), re.MULTILINE) is not None


def klap_ptx(where, *arguments):
    """klap-ptx's answer, as JSON or as text; None if it gives none."""
    outcome = process.run([where.klap_ptx, *arguments], where.native(), SECONDS)
    if outcome.code != 0:
        return None
    try:
        return json.loads(outcome.out)
    except ValueError:
        return outcome.out


def words(values):
    """The values of a setting as a list: "none | grid" or a list already."""
    return [word.strip() for word in values.split("|")] if isinstance(values, str) else list(values)


def settings_from_text(text):
    """Variable -> {values, default} from a table as `klap-ptx settings` prints it in Markdown."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if len(cells) >= 4 and cells[0].startswith("`KLAP_"):
            found[cells[0].strip("`")] = {"values": words(cells[2].replace("\\|", "|")), "default": cells[3]}
    return found


def settings(where):
    """The library's settings: variable -> {values, default}."""
    answer = klap_ptx(where, "settings", "--json")
    if isinstance(answer, list):
        return {entry["variable"]: {"values": words(entry.get("values", "")), "default": entry.get("default", "")}
                for entry in answer if entry.get("variable")}
    answer = klap_ptx(where, "settings", "--markdown")
    return settings_from_text(answer) if isinstance(answer, str) else {}


def combinations(known):
    """(every (granularity, launcher) to measure, the library's own choice)."""
    granularity = known.get("KLAP_GRANULARITY", {"values": ["grid"], "default": "grid"})
    launcher = known.get("KLAP_LAUNCHER", {"values": ["host"], "default": "host"})
    usual = (granularity["default"], launcher["default"])
    found = [(g, l) for g in granularity["values"] if g not in WISHES for l in launcher["values"]
             if l not in WISHES and (g not in DEVICE_ONLY or l == "device")]
    return found if usual in found else [usual] + found, usual


@functools.lru_cache(maxsize=None)
def sites_of(klap_ptx_path, program):
    """What the library would do with each launch site of a program, at its own settings."""
    outcome = process.run([klap_ptx_path, "explain", program, "--json"], process.without_ours(), SECONDS)
    try:
        return json.loads(outcome.out)["sites"]
    except (ValueError, KeyError, TypeError):
        return []
