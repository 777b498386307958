"""Result files: one JSON file per run, with every sample; reading, checking and merging them.

A file says on what it was measured, and files of different devices, drivers, toolkits or commits are never mixed.
Files compressed by xz (NAME.json.xz), as those of benchmarks/results/archive, are read like others.
"""

import json
import lzma
import os
import re

from .rows import BadInput

SCHEMA = 1
KIND = "klap_jit benchmark results"
SAME = ("device", "driver", "toolkit", "commit")


def default_path(root, header, what="run"):
    """benchmarks/results/<date>-<device>/<what>-<time>.json"""
    day, clock = header["date"].split("T")
    device = re.sub(r"[^a-z0-9]+", "-", header["device"].lower().replace("nvidia", "")).strip("-") or "device"
    clock = re.sub(r"\D", "", clock.split("+")[0])
    return os.path.join(root, "benchmarks", "results", f"{day}-{device}", f"{what}-{clock}.json")


def content_of(header, command, settings, rows, **more):
    return {"kind": KIND, "schema": SCHEMA, **header, "command": command, "settings": settings, **more, "rows": rows}


def write(path, content):
    """Writes the whole file or leaves the old one."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    partial = path + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        file.write(compact(content) + "\n")
    os.replace(partial, path)


def compact(content):
    """Indented JSON in which lists of numbers stay on one line: samples are most of a file."""
    text = json.dumps(content, indent=1)
    return re.sub(r"\[[\s\d.,eE+-]*\]", lambda found: re.sub(r"\s+", " ", found.group(0)).replace("[ ", "[")
                  .replace(" ]", "]"), text)


def opened(path):
    return (lzma.open if path.endswith(".xz") else open)(path, "rt", encoding="utf-8")


def read(path):
    """A result file's content; BadInput if it is none."""
    name = os.path.basename(path)
    try:
        with opened(path) as file:
            content = json.load(file)
    except OSError as error:
        raise BadInput(f"{name}: {error.strerror}") from error
    except (ValueError, EOFError, lzma.LZMAError) as error:
        raise BadInput(f"{name} is damaged: {error}") from error
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise BadInput(f"{name} is not a result file of benchmarks/run")
    if content.get("schema") != SCHEMA:
        raise BadInput(f"{name} has schema {content.get('schema')}; this version reads schema {SCHEMA}")
    check(content, name)
    return content


def check(content, name):
    """BadInput unless everything is there that the tables need."""
    try:
        for key in SAME + ("date",):
            content[key].split()
        for row in content["rows"]:
            needed = ("name", "paper", "program", "description", "best_limit", "limits", "cut_short", "explained")
            missing = [key for key in needed if key not in row]
            for found in row["variants"]:
                missing += [key for key in ("name", "kind", "limit", "verdict", "median_ms", "samples", "why",
                                            "first_mistake") if key not in found]
            if missing:
                raise BadInput(f"{name} is damaged: row {row.get('name')} has no {missing[0]}")
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{name} is damaged: {type(error).__name__} {error}") from error


def merge(paths):
    """One content of several parts' files."""
    parts = [(os.path.basename(path), read(path)) for path in paths]
    first_name, merged = parts[0]
    owner = {row["name"]: first_name for row in merged["rows"]}
    for name, part in parts[1:]:
        for key in SAME:
            if part[key] != merged[key]:
                raise BadInput(f"{name} does not belong to {first_name}: {key} {part[key]!r}, not {merged[key]!r}")
        for row in part["rows"]:
            if row["name"] in owner:
                raise BadInput(f"the row {row['name']} is in {owner[row['name']]} and in {name}")
            owner[row["name"]] = name
        merged["rows"] += part["rows"]
        for key in ("not_run", "wrong"):
            merged[key] = merged.get(key, []) + part.get(key, [])
        merged["seconds"] = round(merged.get("seconds", 0) + part.get("seconds", 0), 1)
        merged["interrupted"] = merged.get("interrupted", False) or part.get("interrupted", False)
    # A part may begin what an earlier one had no time for.
    merged["not_run"] = [row for row in dict.fromkeys(merged.get("not_run", [])) if row not in owner]
    merged["command"] = ["--merge"] + [name for name, _ in parts]
    return merged
