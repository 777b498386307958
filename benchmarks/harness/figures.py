"""The papers' figures from a result file: speed-ups, where the time of a preloaded run goes, and promotion by size;
and what children cost that do next to nothing, by their number.

Colours stand for granularities and are those of Okabe and Ito, which colour-blind readers can tell apart; hatching
stands for the device as the launcher. Every figure says at its foot what it was made from.
"""

import os
import statistics

from . import costs, report
from .rows import BadInput
from .variants import AT_BEST, BEST, BY_HAND, FLAT, LIBRARY

GRANULARITY_COLOURS = {"grid": "#0072B2", "multiblock": "#009E73", "block": "#E69F00", "warp": "#CC79A7",
                       "thread": "#F0E442", "none": "#BBBBBB"}
NAMED_COLOURS = {FLAT: "#555555", LIBRARY: "#000000", BY_HAND: "#56B4E9", BEST: "#D55E00"}
SPARE_COLOURS = ["#56B4E9", "#D55E00", "#999999"]
PART_COLOURS = {"parents": "#E69F00", "consumers": "#0072B2", "rest": "#BBBBBB"}
ROWS_A_LINE = 12
NO_MATPLOTLIB = "figures need matplotlib: python3 -m pip install matplotlib (or apt-get install python3-matplotlib)"


def load_matplotlib():
    try:
        import matplotlib  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        raise BadInput(NO_MATPLOTLIB) from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt  # pylint: disable=import-outside-toplevel
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
                         "axes.grid.axis": "y", "grid.color": "#DDDDDD", "grid.linewidth": 0.6,
                         "axes.axisbelow": True, "hatch.linewidth": 0.6, "svg.hashsalt": "klap"})
    return plt


def style(name):
    """Colour and hatching of a variant."""
    if name in NAMED_COLOURS:
        return {"color": NAMED_COLOURS[name]}
    granularity, _, launcher = name.removesuffix(AT_BEST).partition("/")
    colour = GRANULARITY_COLOURS.get(granularity, SPARE_COLOURS[sum(granularity.encode()) % len(SPARE_COLOURS)])
    look = {"color": colour, "edgecolor": "white", "linewidth": 0.3}
    if launcher == "device":
        look["hatch"] = "////"
    if AT_BEST in name:
        look["alpha"] = 0.6
    return look


def save(figure, folder, name, content, source):
    """As SVG and PNG, with the origin at the foot."""
    figure.text(0.01, 0.005, f"{os.path.basename(source)}: {report.origin(content)}", fontsize=6, color="#555555",
                ha="left", va="bottom")
    paths = []
    for ending, more in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 200})):
        paths.append(os.path.join(folder, f"{name}.{ending}"))
        figure.savefig(paths[-1], **more)
    return paths


def speed_ups(content, records):
    """(labels, {variant: speed-ups over native best, None where there is none}), the geometric mean last."""
    usable = [record for record in records if report.time_of(record, BEST)]
    series = {}
    for name in report.plain_names(content) + report.preloaded_names(content, usual_first=False):
        values = [report.divide(report.time_of(record, BEST), report.time_of(record, name)) for record in usable]
        found = [value for value in values if value]
        if found:
            series[name] = values + [statistics.geometric_mean(found)]
    return [record["name"] for record in usable] + ["geometric\nmean"], series


def is_sweep(record):
    """Whether a row is there for a figure by size only; its program has another row for the comparison."""
    return bool(record.get("figure")) and not record.get("quick")


def draw_speed_up_line(axes, labels, series, shown, places):
    """One line of groups of bars with room for `places` of them; `shown` are the indices of the rows on it."""
    width = 0.84 / len(series)
    for position, (name, values) in enumerate(series.items()):
        x = [i + (position - (len(series) - 1) / 2) * width for i in range(len(shown))]
        heights = [values[i] for i in shown]
        axes.bar([a for a, h in zip(x, heights) if h], [h for h in heights if h], width, label=name, **style(name))
    axes.axhline(1, color=NAMED_COLOURS[BEST], linewidth=1)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlim(-0.6, places - 0.4)
    axes.set_xticks(range(len(shown)), [labels[i] for i in shown], rotation=30, ha="right", rotation_mode="anchor")
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("times faster than\nnative at its best limit")


def speed_up_figure(plt, content, records, title):
    """Bars per row; None where no row has both times."""
    labels, series = speed_ups(content, records)
    if not series:
        return None
    a_line = -(-len(labels) // -(-len(labels) // ROWS_A_LINE))
    lines = [list(range(i, min(i + a_line, len(labels)))) for i in range(0, len(labels), a_line)]
    places = max(4, a_line)
    size = (2 + places * max(0.7, 0.16 * len(series)), 0.7 + 2.7 * len(lines))
    figure, axes = plt.subplots(len(lines), 1, figsize=size, squeeze=False, sharey=True, layout="constrained")
    figure.get_layout_engine().set(rect=(0, 0.03, 1, 0.9))
    for axis, line in zip(axes[:, 0], lines):
        draw_speed_up_line(axis, labels, series, line, places)
    axes[0, 0].set_title(title, fontsize=10, loc="left")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="upper right", ncols=min(len(series), 6), frameon=False, fontsize=8)
    return figure


def shares(record):
    """Shares of a preloaded run's time in parents, in consumers and outside both; None where that is not known."""
    breakdown = record.get("breakdown") or {}
    measured, runs = breakdown.get("gpu_ms"), breakdown.get("run_ms")
    if not measured or not runs or breakdown.get("verdict") != "right":
        return None
    parts = {who: sum(measured.get(who, {}).values()) / len(runs) for who in ("parents", "consumers")}
    # The first run also sets up the library's queues: the median keeps that out.
    total = max(statistics.median(runs), sum(parts.values()))
    if not total:
        return None
    parts["rest"] = total - sum(parts.values())
    return {who: ms / total for who, ms in parts.items()}


def breakdown_figure(plt, content, records):
    """Two lines: next to native best as 1, and the shares alone, since the former are often too small to see."""
    found = []
    for record in records:
        parts, best = shares(record), report.time_of(record, BEST)
        _, ms = report.ours(record, content)
        if parts and best and ms:
            found.append((record["name"], ms / best, parts))
    if not found:
        return None
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(2 + 0.6 * max(len(found), 6), 5.5), sharex=True,
                                          layout="constrained")
    figure.get_layout_engine().set(rect=(0, 0.02, 1, 0.92))
    places = range(len(found))
    upper.bar([x - 0.2 for x in places], [1] * len(found), 0.36, color=NAMED_COLOURS[BEST], label="native best")
    for axes, x_shift, width in ((upper, 0.2, 0.36), (lower, 0, 0.7)):
        bottoms = [0.0] * len(found)
        for who, colour in PART_COLOURS.items():
            heights = [parts[who] * (relative if axes is upper else 100) for _, relative, parts in found]
            axes.bar([x + x_shift for x in places], heights, width, bottom=bottoms, color=colour,
                     label=f"preloaded: {who}")
            bottoms = [a + b for a, b in zip(bottoms, heights)]
    for x, (_, relative, _) in zip(places, found):
        upper.text(x + 0.2, relative + 0.02, f"{relative:.2g}", ha="center", va="bottom", fontsize=7, rotation=90)
    upper.set_ylabel("time, native best = 1")
    lower.set_ylabel("share of the\npreloaded run, %")
    lower.set_xticks(places, [name for name, _, _ in found], rotation=30, ha="right", rotation_mode="anchor")
    handles, names = upper.get_legend_handles_labels()
    figure.legend(handles, names, loc="upper center", ncols=4, frameon=False, fontsize=8)
    return figure


def throughput(record, name):
    """Million elements a second."""
    ms, elements = report.time_of(record, name), record["description"].get("elements")
    return elements / ms / 1000 if ms and elements else None


def promotion_figure(plt, content, records):
    """Throughput by size, one drawing per program."""
    records = [record for record in records if record.get("figure") == "promotion"]
    programs = list(dict.fromkeys(record["program"] for record in records))
    names = [BEST] + report.plain_names(content) + report.preloaded_names(content)
    if not any(throughput(record, name) for record in records for name in names):
        return None
    columns = min(3, len(programs))
    lines = -(-len(programs) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(1 + 3.6 * columns, 1 + 2.8 * lines), squeeze=False,
                                layout="constrained")
    figure.get_layout_engine().set(rect=(0, 0.03, 1, 0.9))
    seen = {}
    for axes, program in zip(grid.flat, programs):
        mine = sorted((r for r in records if r["program"] == program),
                      key=lambda record: record["description"].get("elements", 0))
        for name in names:
            points = [(r["description"]["elements"], throughput(r, name)) for r in mine if throughput(r, name)]
            if points:
                line = axes.plot(*zip(*points), color=style(name)["color"], marker="o", markersize=3,
                                 linestyle="--" if name.endswith("/device") else "-")[0]
                seen.setdefault(name, line)
        axes.set(xscale="log", yscale="log", title=program, xlabel="elements", ylabel="million elements / s")
    for axes in list(grid.flat)[len(programs):]:
        axes.set_visible(False)
    figure.legend(seen.values(), seen, loc="upper center", ncols=min(len(seen), 5), frameon=False, fontsize=8)
    return figure


def draw_series(axes, content, series, seen):
    """Times of all variants by number, and the line through ours; squares are runs in several slices."""
    for name in costs.variants_in(content):
        points = series.points_of(lambda record, name=name: report.time_of(record, name))
        if points:
            line = axes.plot(*zip(*points), color=style(name)["color"], marker="o", markersize=3, linewidth=1.2)[0]
            seen.setdefault(name, line)
    slope, start = series.line
    numbers = [units for units, _ in series.points]
    line = axes.plot(numbers, [slope * units + start for units in numbers], color="#888888", linestyle=":", zorder=0)[0]
    seen.setdefault("line of least squares", line)
    cut = [(costs.units_of(record), costs.ours(record, content)[1]) for record in series.records
           if costs.slices(record, content) > 1]
    if cut:
        marks = axes.plot(*zip(*cut), linestyle="", marker="s", markersize=8, color="black", markerfacecolor="none")[0]
        seen.setdefault("in several slices", marks)
    axes.text(0.98, 0.02, series.text().replace(", at", "\nat"), transform=axes.transAxes, ha="right", va="bottom",
              fontsize=7)
    axes.set(xscale="log", yscale="log", title=f"each a {costs.SERIES[series.name]}", xlabel="number", ylabel="ms")


def costs_figure(plt, content):
    """Time by number of children or blocks, one drawing per series."""
    found = costs.series_in(content)
    if not found:
        return None
    figure, grid = plt.subplots(1, len(found), figsize=(1 + 3.9 * len(found), 4.2), squeeze=False, layout="constrained")
    figure.get_layout_engine().set(rect=(0, 0.03, 1, 0.9))
    seen = {}
    for axes, series in zip(grid.flat, found):
        draw_series(axes, content, series, seen)
    figure.legend(seen.values(), seen, loc="upper center", ncols=min(len(seen), 7), frameon=False, fontsize=8)
    return figure


def write(content, source, folder):
    """Draws what the file has data for; returns (paths, what was left out and why)."""
    plt = load_matplotlib()
    os.makedirs(folder, exist_ok=True)
    paths, left_out = [], []
    jobs = [(f"speed-up-{paper.lower()}", lambda paper=paper: speed_up_figure(
        plt, content, [r for r in content["rows"] if r["paper"] == paper and not is_sweep(r)], f"{paper} programs"))
        for paper in report.papers(content)[:-1]]
    jobs += [("breakdown", lambda: breakdown_figure(plt, content, content["rows"])),
             ("promotion", lambda: promotion_figure(plt, content, content["rows"])),
             ("costs", lambda: costs_figure(plt, content))]
    for name, draw in jobs:
        figure = draw()
        if figure is None:
            left_out.append(name)
        else:
            paths += save(figure, folder, name, content, source)
            plt.close(figure)
    return paths, left_out
