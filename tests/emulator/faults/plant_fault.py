"""Copies a file with one text replaced, which must be in it exactly once: plant_fault.py FROM TO OLD NEW

In OLD and NEW, backslash n is a line's end.
"""

import os
import sys


def main():
    source, target = sys.argv[1:3]
    old, new = (text.replace("\\n", "\n") for text in sys.argv[3:])
    with open(source, encoding="utf-8") as file:
        text = file.read()
    if text.count(old) != 1:
        sys.exit(f"{source}: the text to be replaced is there {text.count(old)} times instead of once:\n{old}")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))


if __name__ == "__main__":
    main()
