#!/usr/bin/env python3
"""Loads a page of klap report in a headless chromium: no script error, no request, all tables, nothing too wide.

Without chromium the test is skipped (exit code 77). With --screenshots FOLDER it keeps pictures of the page, wide and
narrow, light and dark. With --page FILE it does so for a page that is there already, and checks no contents.
"""
import argparse
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
WIDTHS = {"wide": 1280, "narrow": 400}
SCHEMES = ("light", "dark")
HOSTILE = "evil<script>document.title='broken'</script>&\"'"
MOST_BYTES = 1 << 26  # of one message of the browser


class Browser:
    """A chromium that is driven through a pipe, by the protocol of its developer tools."""

    def __init__(self, program, profile):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        # The browser wants its pipes to be descriptors 3 and 4.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "sh",
             program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.reading = os.fdopen(ours_in, "rb", buffering=0)
        self.writing = os.fdopen(ours_out, "wb", buffering=0)
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def message(self):
        while b"\0" not in self.buffer:
            piece = self.reading.read(MOST_BYTES)
            if not piece:
                sys.exit(f"chromium ended with {self.process.wait()}")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        self.writing.write(json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") != self.number:
                self.events.append(answer)
            elif "error" in answer:
                sys.exit(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def open(self, page):
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def ask(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            sys.exit(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def show(self, width, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self):
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"])

    def problems(self):
        """Script errors, messages such as those of the content security policy, and requests besides the page."""
        for event in self.events:
            method, what = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                yield json.dumps(what)
            if method == "Network.requestWillBeSent" and what.get("type") != "Document":
                if not what["request"]["url"].startswith("data:"):
                    yield "request: " + what["request"]["url"]

    def end(self):
        self.process.kill()
        self.process.wait()


def statistics(rank):
    """A rank with three kernels: one in order, one with a hostile name, and one that has a launch site left."""
    names = ["_Z6parentPi", HOSTILE, "_Z5otherPi"]
    launches = [{"parent": names[i % 2], "context": 1, "begin_ms": 0.1 * i + (7 if i > 5 else 0), "parent_ms": 0.02,
                 "children_ms": 0.01 * i, "is_slice": False} for i in range(12)]
    site = {"unit": "u", "line": 3, "child": "_Z5childPi", "child_demangled": f"child {HOSTILE}", "detail": "block 32x1x1",
            "verdict": "rewritten", "granularity": "grid", "launcher": "host", "notes": ["order kept: " + HOSTILE]}
    left = {"unit": "u", "line": 9, "child": "", "verdict": "left", "reason": "callee-unknown", "detail": HOSTILE}
    sites = [dict(site, parent=names[0]), dict(site, parent=names[1]), dict(left, parent=names[2])]
    sizes = [{"up_to": 1, "children": 3}, {"up_to": 15, "children": 9}, {"up_to": None, "children": 1}]
    return {
        "format": 1, "process": 100 + rank, "children_aggregated": 13, "devices": ["NVIDIA H200"],
        "modules": [{"how": "rewritten", "loads": 1, "cache": "hit", "sites": sites}],
        "launches": {"redirected": {names[0]: 6, names[1]: 6}, "left": {names[0]: {"stream capture": 2}}},
        "parents": {names[0]: {"engine": "aggregation at grid by the host"}},
        "gpu_ms": {"launches": {names[0]: 6, names[1]: 6}, "parents": {names[0]: 0.12, names[1]: 0.12},
                   "consumers": {names[0]: 0.3, names[1]: 0.36}},
        "timeline": {"first": launches, "slowest": launches[::-1]},
        "child_sizes": [{"parent": names[0], "child": "_Z5childPi", "counted": "threads", "sizes": sizes}],
        "queues": {"most_bytes": 1 << 20},
        "run": {"command": ["./app", HOSTILE], "seconds": 1.0, "exit_code": 0, "is_native": False,
                "native": {"seconds": 3.0, "exit_code": 0}},
    }


def make_page(klap, folder):
    files = []
    for rank in range(2):
        files.append(folder / f"rank-{rank}.json")
        files[-1].write_text(json.dumps(statistics(rank)), encoding="utf-8")
    page = folder / "page.html"
    subprocess.run([klap, "report", *files, "--html", page], check=True, stdout=subprocess.DEVNULL)
    return page


def check_contents(browser):
    def expect(expression, value):
        found = browser.ask(expression)
        if found != value:
            sys.exit(f"{expression} is {found!r} instead of {value!r}")

    expect("document.title.includes('evil<script>')", True)
    expect("document.querySelectorAll('script').length", 1)
    expect("document.querySelectorAll('#kernel-table tbody tr').length", 3)
    expect("document.querySelectorAll('.timeline').length", 2)
    expect("document.querySelectorAll('.timeline .pause').length", 4 + 2)  # one in each lane, and one in each legend
    expect("document.querySelectorAll('.timeline rect.parents').length", 24)
    expect("document.querySelectorAll('.slowest tbody tr').length", 12)
    expect("document.querySelectorAll('.histogram tbody tr').length", 5)
    expect("document.querySelectorAll('.findings > li').length", 3)
    expect("document.querySelectorAll('#memory tr').length", 1)
    expect("document.querySelector('.tiles .main strong').textContent", "3.00\u00d7")
    first = "document.querySelector('#kernel-table tbody tr').cells"
    button = "document.querySelectorAll('#kernel-table th button')[0].click()"
    expect(first + "[0].textContent.trim()", HOSTILE)  # it takes the longest
    browser.ask(button)
    expect(first + "[0].textContent.trim()", "parent")
    expect("document.querySelectorAll('#kernel-table th')[0].getAttribute('aria-sort')", "descending")
    browser.ask(button)
    expect(first + "[0].textContent.trim()", HOSTILE)
    expect("document.getElementById('k3').open", False)
    browser.ask("location.hash = 'k3'")
    # The browser tells the page of it a moment later.
    browser.call("Runtime.evaluate", expression="new Promise((done) => setTimeout(done, 50))", awaitPromise=True)
    expect("document.getElementById('k3').open", True)


# The contrast between each text and what is behind it, as WCAG defines it, where it is below 4.5.
CONTRAST = """
(() => {
  const numbers = (colour) => (colour.match(/[0-9.]+/g) || []).map(Number);
  const light = (colour) => numbers(colour).slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor, parts = numbers(colour);
      if (parts.length === 3 || parts[3] > 0.5) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const bad = [];
  for (const one of document.querySelectorAll("body *")) {
    if (one instanceof SVGElement || ![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const a = light(getComputedStyle(one).color), b = light(behind(one));
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) bad.push(one.className + ": " + one.textContent.trim().slice(0, 30) + " " + contrast.toFixed(2));
  }
  return bad;
})()
"""


def check_look(browser, page, screenshots):
    for scheme in SCHEMES:
        for name, width in WIDTHS.items():
            browser.show(width, scheme)
            wide = browser.ask("document.documentElement.scrollWidth")
            if wide > width:
                sys.exit(f"the page is {wide} pixels wide on a screen of {width}")
            if screenshots:
                (screenshots / f"{page.stem}-{name}-{scheme}.png").write_bytes(browser.picture())
        if bad := browser.ask(CONTRAST):
            sys.exit(f"{scheme}: text that is hard to read: {bad}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--klap", help="the program that makes the page")
    parser.add_argument("--page", type=pathlib.Path, help="a page that is there already")
    parser.add_argument("--screenshots", type=pathlib.Path, help="folder that keeps pictures")
    options = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        print("SKIPPED: there is no chromium; the page is not tested in a browser (apt-get install chromium)")
        return SKIPPED
    if options.screenshots:
        options.screenshots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="klap-browser-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        page = options.page or make_page(options.klap, folder)
        browser = Browser(program, folder / "profile")
        try:
            browser.open(page)
            check_look(browser, page, options.screenshots)
            if not options.page:
                check_contents(browser)
            if problems := list(browser.problems()):
                sys.exit("\n".join(problems))
        finally:
            browser.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
