"""One line on standard error that says how far a run is.

On a terminal it is rewritten in place; in a log a line comes every few seconds, and at the end of each row.
"""

import sys
import time

EVERY_SECONDS = 5.0


class Progress:
    def __init__(self, stream=None):
        self.stream = stream or sys.stderr
        self.begin = time.monotonic()
        self.row = ""
        self.shown = 0.0
        self.width = 0

    def seconds(self):
        return time.monotonic() - self.begin

    def start_row(self, number, count, name):
        self.row = f"{number}/{count} {name}"
        self.step("starting")

    def step(self, what):
        """Something that is over soon."""
        text = f"[{self.seconds():4.0f} s] {self.row}: {what}"
        if self.stream.isatty():
            self.stream.write("\r" + text.ljust(self.width))
            self.width = len(text)
            self.stream.flush()
        elif time.monotonic() - self.shown >= EVERY_SECONDS:
            self.shown = time.monotonic()
            print(text, file=self.stream, flush=True)

    def say(self, what):
        """Something that stays."""
        text = f"[{self.seconds():4.0f} s] " + (f"{self.row}: " if self.row else "") + what
        start = "\r" if self.width else ""
        print(start + text.ljust(self.width), file=self.stream, flush=True)
        self.width = 0
        self.shown = time.monotonic()
