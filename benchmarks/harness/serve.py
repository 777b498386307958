"""A benchmark program that was started with --serve: one warm process that does one repetition when it is told to.

A program whose device launches were lost may never answer, so every answer is waited for with a limit, and what
exceeds it is killed with everything it started. No process outlives the harness: each is in a group of its own that
is killed at the end, and the kernel kills it if the harness itself is killed.
"""

import ctypes
import json
import os
import select
import signal
import subprocess
import time

NO_LIBRARY = 4  # exit code of a program whose library variant cannot be had on this machine
NO_DEVICE = "no usable CUDA device"
GONE_SECONDS = 15.0  # a killed process has to give back its device memory first

_libc = ctypes.CDLL(None, use_errno=True)
_alive = set()


class Trouble(Exception):
    """The process is gone; `verdict` is a word for a table, the text says why."""

    def __init__(self, verdict, why):
        super().__init__(why)
        self.verdict = verdict


class NoDevice(Exception):
    """The machine has no GPU that programs can use."""


def _die_with_harness():
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def kill_all():
    """Ends every process that is still there."""
    for server in list(_alive):
        server.kill()


class Server:
    """One process. It is started at once; `ready` waits for the line with which it describes itself."""

    def __init__(self, command, environment, errors):
        self.errors_file = errors
        self.buffer = b""
        self.described = None
        with open(errors, "wb") as error_output:
            try:
                self.process = subprocess.Popen(
                    command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=error_output,
                    start_new_session=True, preexec_fn=_die_with_harness)
            except OSError as error:
                raise Trouble("failed", f"cannot start: {error.strerror}") from error
        _alive.add(self)

    def ready(self, seconds):
        """What the program says of itself."""
        if self.described is None:
            self.described = self._answer(seconds, "did not start")
        return self.described

    def ask(self, command, seconds):
        """Sends one command; returns the answer, or raises Trouble with the process gone."""
        try:
            self.process.stdin.write(command.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise self._ended() from None
        return self._answer(seconds, f'"{command}" was not answered')

    def _answer(self, seconds, what):
        deadline = time.monotonic() + seconds
        output = self.process.stdout.fileno()
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0:
                self.kill()
                raise Trouble("hangs", f"{what} within {seconds:.3g} s, killed")
            if not select.select([output], [], [], left)[0]:
                continue
            data = os.read(output, 65536)
            if not data:
                raise self._ended()
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        try:
            answer = json.loads(line)
            if isinstance(answer, dict):
                return answer
        except ValueError:
            pass
        self.kill()
        raise Trouble("failed", f"the answer is not a line of JSON: {line[:80].decode(errors='replace')!r}")

    def _ended(self):
        """Why the process is gone, as an exception to raise."""
        try:
            code = self.process.wait(5)
        except subprocess.TimeoutExpired:
            code = None
        self.kill()
        errors = self.last_error()
        if NO_DEVICE in errors:
            return NoDevice(errors)
        if code == NO_LIBRARY and self.described is None:
            return Trouble("not available", errors)
        if code is not None and code < 0:
            try:
                how = f"killed by {signal.Signals(-code).name}"
            except ValueError:
                how = f"killed by signal {-code}"
        else:
            how = "closed its output" if code is None else f"exit code {code}"
        return Trouble("failed", f"{how}: {errors}" if errors else how)

    def last_error(self):
        """The last line on standard error."""
        try:
            with open(self.errors_file, encoding="utf-8", errors="replace") as file:
                lines = file.read().strip().splitlines()
        except OSError:
            return ""
        return lines[-1][:300] if lines else ""

    def say_quit(self):
        """Asks the process to end and does not wait, so that several can end at the same time."""
        try:
            self.process.stdin.write(b"quit\n")
            self.process.stdin.close()
        except (OSError, ValueError):  # it is gone, or was told already
            pass

    def stop(self, seconds):
        """Ends the process the good way; returns whether it went by itself with exit code 0."""
        self.say_quit()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        self.kill()
        return code == 0

    def kill(self):
        """Ends the process and all it started; returns when it is gone, since a dying one may still use the GPU."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        try:
            self.process.wait(GONE_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        for stream in (self.process.stdin, self.process.stdout):
            try:
                stream.close()
            except OSError:
                pass
        _alive.discard(self)
