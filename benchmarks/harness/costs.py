"""What recording and running a child costs, from the rows of benchmarks/micro in a result file.

A series has one number that grows: children of one thread, children of a warp, or blocks of 1,000 children. Each cost
is the slope of the line through the series' medians that has the smallest squares of relative errors, so that a
thousand children count as much as ten million. With no children, the cost is the time over that of the same parent
without a launch.
"""

from . import report, table
from .floors import launch_costs, us_of
from .measure import variant
from .variants import BEST, FLAT, WITH, WITHOUT

SERIES = {"children": "child of one thread", "warps": "child of a warp", "blocks": "block of 128 threads"}
PARENTS, CONSUMERS = "parents", "consumers"
COUNTED = 0.01  # of the most units: points of fewer are the launches' more than the line's


def micro_rows(content):
    """Those whose program could say what it does."""
    return [record for record in content["rows"]
            if record["program"] == "micro" and "children" in record["description"]]


def series_of(record):
    """The series that a row belongs to; None for one without children."""
    found = next(iter(record["name"].split("-")[1:]), "")
    return found if found in SERIES and record["description"]["children"] else None


def units_of(record):
    """How many there are of what grows in the row's series."""
    about = record["description"]
    return about["children"] * (about["blocks"] if series_of(record) == "blocks" else 1)


def gpu_ms(record, who):
    """Of a run, in parents or consumers alone; None where it was not measured."""
    breakdown = record.get("breakdown") or {}
    times, runs = breakdown.get("gpu_ms"), breakdown.get("runs")
    if not times or not runs or breakdown.get("verdict") != "right":
        return None
    return sum(times.get(who, {}).values()) / runs


def ours(record, content):
    """The library's own choice; where that was not measured, the paper's."""
    name, ms = report.ours(record, content)
    return (name, ms) if ms else ("grid/host", report.time_of(record, "grid/host"))


def slices(record, content):
    """In how many parts the parent ran, because its records had not room all at once."""
    return (variant(record, ours(record, content)[0]) or {}).get("slices", 1)


def line_through(points):
    """(slope, value at 0) for points of (units, value), None where there are not two different ones."""
    if len({units for units, _ in points}) < 2:
        return None
    weights = [1 / value ** 2 for _, value in points]
    total = sum(weights)
    x = sum(w * units for w, (units, _) in zip(weights, points)) / total
    y = sum(w * value for w, (_, value) in zip(weights, points)) / total
    spread = sum(w * (units - x) ** 2 for w, (units, _) in zip(weights, points))
    slope = sum(w * (units - x) * (value - y) for w, (units, value) in zip(weights, points)) / spread
    return slope, y - slope * x


class Series:
    """The rows of one series in the order of their units; times in ms."""

    def __init__(self, content, name):
        self.name = name
        self.records = sorted((r for r in micro_rows(content) if series_of(r) == name), key=units_of)
        self.points = self.points_of(lambda record: ours(record, content)[1])
        self.line = line_through(self.points)

    def points_of(self, value):
        return [(units_of(record), value(record)) for record in self.records if value(record)]

    def slope_of(self, who):
        """ns a unit of the parents or consumers alone."""
        line = line_through(self.points_of(lambda record: gpu_ms(record, who)))
        return line[0] * 1e6 if line else None

    def off_the_line(self):
        """By what part the worst of the points is off that are long enough for the slope to matter."""
        slope, start = self.line
        return max(abs(ms / (slope * units + start) - 1) for units, ms in self.points
                   if units >= COUNTED * self.points[-1][0])

    def text(self):
        slope, start = self.line
        return (f"{shown(slope * 1e6)} ns each and {start * 1e3:.1f} us for none, at most "
                f"{100 * self.off_the_line():.0f} % off that line from {COUNTED:.0%} of the most on")


def series_in(content):
    """Those with a line."""
    return [found for found in (Series(content, name) for name in SERIES) if found.line]


def nothing_lines(content):
    """What a consumer costs that finds nothing to run."""
    for record in micro_rows(content):
        about = record["description"]
        if about["children"] or about.get("host_reads"):
            continue
        flat, us, rounds = us_of(record, FLAT), ours(record, content)[1], about.get("rounds", 1)
        if not flat or not us:
            continue
        threads = "one thread" if about["parents"] == 1 else f"{about['parents']:,} threads"
        more = f", {rounds} launches of it one after another" if rounds > 1 else ""
        yield (f"an empty consumer: {(us * 1000 - flat) / rounds:.2f} us (a parent of {threads}{more}; without the "
               f"launch {flat / rounds:.2f} us)")


def summary_lines(content):
    """A line for each cost: record, child, virtual block, empty consumer."""
    found = {series.name: series for series in series_in(content)}
    for name, what, who in (("children", "a record", PARENTS), ("children", "a child of one thread", None),
                            ("warps", "a child of a warp", None), ("blocks", "a virtual block", None)):
        if name not in found:
            yield f"{what}: not measured"
        elif who is None:
            yield f"{what}: {found[name].text()}"
        else:
            slope = found[name].slope_of(who)
            yield f"{what}: " + ("not measured" if slope is None else f"{shown(slope)} ns (the {who}' own time)")
    yield from list(nothing_lines(content)) or ["an empty consumer: not measured"]
    costs = launch_costs(content)
    if len(costs) == 3:
        yield (f"without the library: {costs['first']:.2f} us for an empty kernel, {costs['next']:.2f} us for each "
               f"behind it, {costs['read']:.2f} us for a host's read behind each")


def variants_in(content):
    """The variants that some micro row has a time of, in the order in which they are shown."""
    names = [BEST, FLAT, *[name for name in report.preloaded_names(content) if WITHOUT not in name and WITH not in name]]
    return [name for name in names if any(report.time_of(record, name) for record in micro_rows(content))]


def series_rows(series, content):
    """The table of a series: what each costs with all of the row, as a ratio to the row before, and what each of
    those costs that the row before has not."""
    names = variants_in(content)
    rows = [["number", *[f"{name}, us" for name in names], "ns each", "to the row before", "ns for each more",
             "parents, ns each", "consumers, ns each", "slices"]]
    before = None
    for record in series.records:
        units, ms = units_of(record), ours(record, content)[1]
        each, ratio, step = [ms * 1e6 / units if ms else None, None, None]
        if ms and before:
            ratio = each / (before[1] * 1e6 / before[0])
            step = (ms - before[1]) * 1e6 / (units - before[0]) if units > before[0] else None
        own = [report.divide(gpu_ms(record, who), units) for who in (PARENTS, CONSUMERS)]
        rows.append([f"{units:,}", *[shown(us_of(record, name)) for name in names], shown(each),
                     report.ratio_text(ratio), shown(step), *[shown(value * 1e6 if value else None) for value in own],
                     f"{slices(record, content):g}"])
        before = (units, ms) if ms else before
    return rows


def shown(value):
    return "-" if value is None else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def text_of(content, markdown=False):
    if not micro_rows(content):
        return f"{report.origin(content)}\n\nno rows of benchmarks/micro"
    show = table.markdown if markdown else table.render
    bullet = "- " if markdown else ""
    parts = [report.origin(content), "\n".join(bullet + line for line in summary_lines(content))]
    for series in series_in(content):
        parts += [f"Each {SERIES[series.name]}: {series.text()}.", show(series_rows(series, content))]
    return "\n\n".join(parts)
