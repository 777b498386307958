"""Plain text tables for the end of a run."""


def render(rows):
    """Columns padded to their widest cell; the first row is the header."""
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    text = []
    for number, row in enumerate(rows):
        text.append("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())
        if number == 0:
            text.append("  ".join("-" * width for width in widths))
    return "\n".join(text)


def markdown(rows):
    """The same as a Markdown table."""
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in [cells[0], ["---"] * len(cells[0]), *cells[1:]])


def milliseconds(value):
    return "-" if value is None else f"{value:.4f}"
