"""The rows of the results table: reading every benchmarks/*/rows.json, choosing among them, splitting them in parts.

A row is one benchmark program with one set of arguments. It belongs to the program's folder, so a new program brings
its rows along and nothing central has to be edited.
"""

import fnmatch
import glob
import json
import os
from dataclasses import asdict, dataclass, field


class BadInput(Exception):
    """Something given to the command cannot be used; the text says what and where."""


@dataclass
class Row:
    name: str
    paper: str
    program: str
    arguments: list
    quick: bool = False
    figure: str = ""
    native: bool = True  # whether it is measured natively: no pending-launch limit is large enough for some
    folder: str = ""  # where the row is from, of the program's name unless it holds several
    waits: str = ""  # the program that solves the same by kernels that wait for their children
    more: dict = field(default_factory=dict)

    def programs(self):
        """All programs that the row needs."""
        return [self.program, self.waits] if self.waits else [self.program]

    def facts(self):
        """What a result file keeps of the row."""
        facts = asdict(self)
        facts.pop("more")
        return facts


def read_row(entry, folder, file):
    """One entry of a rows.json, checked. Its program has the folder's name, or names itself."""
    if not isinstance(entry, dict):
        raise BadInput(f"{file}: a row must be an object, not {entry!r}")
    for key in ("paper", "name"):
        if not isinstance(entry.get(key), str) or not entry[key]:
            raise BadInput(f"{file}: a row has no {key}: {entry}")
    arguments = entry.get("arguments")
    if not isinstance(arguments, list) or not all(isinstance(word, str) for word in arguments):
        raise BadInput(f"{file}: row {entry['name']}: \"arguments\" must be a list of strings")
    known = ("paper", "name", "program", "arguments", "quick", "figure", "native", "waits")
    return Row(entry["name"], entry["paper"], entry.get("program", folder), arguments, bool(entry.get("quick")),
               entry.get("figure", ""), bool(entry.get("native", True)), folder, entry.get("waits", ""),
               {key: value for key, value in entry.items() if key not in known})


def read_all(benchmarks):
    """Every row of the programs below the folder `benchmarks`, programs in alphabetical order."""
    rows, origin = [], {}
    for file in sorted(glob.glob(os.path.join(glob.escape(benchmarks), "*", "rows.json"))):
        shown = os.path.join(*file.split(os.sep)[-2:])
        try:
            with open(file, encoding="utf-8") as content:
                entries = json.load(content)["rows"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadInput(f"{shown}: no list of rows in it ({type(error).__name__}: {error})") from error
        if not isinstance(entries, list):
            raise BadInput(f'{shown}: "rows" is not a list')
        for entry in entries:
            row = read_row(entry, os.path.basename(os.path.dirname(file)), shown)
            if row.name in origin:
                raise BadInput(f"{shown}: the row {row.name} is in {origin[row.name]} already")
            origin[row.name] = shown
            rows.append(row)
    if not rows:
        raise BadInput(f"no */rows.json below {os.path.basename(benchmarks)}")
    return rows


def choose(rows, patterns, paper=None, quick=False, everything=False):
    """The rows meant by the command line, in the order of `rows`."""
    chosen = rows
    if patterns:
        unknown = [p for p in patterns if not any(fnmatch.fnmatchcase(row.name, p) for row in rows)]
        if unknown:
            raise BadInput(f"no row is called {', '.join(unknown)} (benchmarks/run --list prints them)")
        chosen = [row for row in rows if any(fnmatch.fnmatchcase(row.name, p) for p in patterns)]
    elif not (paper or quick or everything):
        raise BadInput("name rows, or give --paper, --quick or --all (--list prints the rows)")
    if paper:
        papers = sorted({row.paper for row in rows})
        if paper.lower() not in [p.lower() for p in papers]:
            raise BadInput(f"no rows of paper {paper}; there are {', '.join(papers)}")
        chosen = [row for row in chosen if row.paper.lower() == paper.lower()]
    if quick:
        chosen = [row for row in chosen if row.quick]
    if not chosen:
        raise BadInput("no row fits all of what was asked for")
    return chosen


def expected_seconds(row, earlier):
    """How long a row will take: as in an earlier result, else a guess."""
    return earlier.get(row.name) or (8.0 if row.quick else 14.0)


def part_of(rows, number, count, earlier):
    """Part `number` of `count` with about equal expected time: the longest rows first, each to the emptiest part."""
    loads = [0.0] * count
    owner = {}
    for row in sorted(rows, key=lambda row: (-expected_seconds(row, earlier), row.name)):
        lightest = loads.index(min(loads))
        owner[row.name] = lightest
        loads[lightest] += expected_seconds(row, earlier)
    return [row for row in rows if owner[row.name] == number - 1]


def parse_part(text):
    """(I, N) of "I/N"."""
    try:
        number, count = (int(word) for word in text.split("/"))
    except ValueError:
        number, count = 0, 0
    if not 1 <= number <= count:
        raise BadInput(f"--part {text}: it is I/N with 1 <= I <= N, as 2/3")
    return number, count
