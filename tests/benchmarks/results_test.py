"""Tests of what benchmarks/run makes of results: files that are merged and compared, texts of pages, and figures."""

import importlib.util
import json
import lzma
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from made_up_programs import HARD, KLAP_PTX, ROOT, STATS, WithPrograms  # noqa: E402
from harness import figures, offered, results, texts  # noqa: E402


class FilesTest(WithPrograms):
    """Parts, merging, comparing, and files that cannot be used."""

    def measured(self, name, **plan):
        """A result file of one row called `name`."""
        for old in ("benchmarks", "build/bin/bench"):
            subprocess.run(["rm", "-rf", os.path.join(self.folder, old)], check=True)
        offered.help_of.cache_clear()
        self.program(name, **plan)
        path = os.path.join(self.folder, f"{name}.json")
        os.environ.pop("KLAP_STATS", None)
        self.assertEqual(self.main(*self.words("--all", "--out", path))[0], 0)
        return path

    def changed(self, path, new, **changes):
        with open(path, encoding="utf-8") as file:
            content = dict(json.load(file), **changes)
        return self.write(new, json.dumps(content))

    def test_merge(self):
        one, two = self.measured("one"), self.measured("two", paper="Wu", **{"grid/host": {"ms": 1.5}})
        one = self.changed(one, "cut.json", not_run=["two", "three"])
        code, out, err = self.main("--merge", self.out, one, two)
        self.assertEqual((code, out), (0, "2 rows of 2 files\n"), err)
        self.assertEqual(results.read(self.out)["not_run"], ["three"])
        code, out, _ = self.main("--table", self.out)
        self.assertEqual(code, 0)
        means = next(line for line in out.splitlines() if line.startswith("preloaded: faster by"))
        self.assertEqual(means.split()[3:], ["12.0x", "(1)", "4.00x", "(1)", "6.93x", "(2)"])
        code, out, _ = self.main("--table", self.out, "--markdown")
        self.assertIn("| one | 5000 |", out)

    def test_merge_refuses(self):
        one = self.measured("one")
        self.assertIn("the row one is in one.json and in one.json", self.main("--merge", self.out, one, one)[2])
        for key in ("device", "driver", "toolkit", "commit"):
            other = self.changed(one, "other.json", rows=[], **{key: "another"})
            code, _, err = self.main("--merge", self.out, one, other)
            self.assertEqual(code, 2)
            self.assertIn(f"other.json does not belong to one.json: {key} 'another'", err)
        self.assertFalse(os.path.exists(self.out))

    def test_compare(self):
        before = self.measured("one")
        os.rename(before, before := os.path.join(self.folder, "before.json"))
        after = self.measured("one", **{"grid/host": {"ms": 0.55}})
        code, out, _ = self.main("--compare", before, after)
        self.assertEqual(code, 0)
        self.assertIn("1 differ by more than 5%:\n  one grid/host: 1.100", out)
        self.assertEqual(next(line for line in out.splitlines() if line.startswith("geometric")).split(),
                         ["geometric", "mean", "1.000", "1.000", "1.000", "1.100", "1.000"])
        self.assertIn("all agree within 5%", self.main("--compare", before, before)[1])

    def test_damaged_files(self):
        good = self.measured("one")
        with open(good, encoding="utf-8") as file:
            content = json.load(file)
        del content["rows"][0]["variants"][0]["samples"]
        cases = [("{", "is damaged"), ("[]", "not a result file"), ('{"kind": "x"}', "not a result file"),
                 (json.dumps(dict(content, schema=99)), "schema 99"),
                 (json.dumps(content), "row one has no samples"),
                 (json.dumps(dict(content, rows=[3])), "is damaged"),
                 (json.dumps(dict(content, driver=1)), "is damaged")]
        for text, message in cases:
            path = self.write("bad.json", text)
            for words in (["--table", path], ["--compare", good, path], ["--merge", self.out, good, path]):
                code, _, err = self.main(*words)
                self.assertEqual(code, 2, words)
                self.assertIn(message, err)
                self.assertIn("bad.json", err)
        self.assertEqual(self.main("--table", os.path.join(self.folder, "none.json"))[0], 2)

    def test_compressed_files(self):
        plain = self.measured("one")
        with open(plain, "rb") as file:
            whole = lzma.compress(file.read())
        path = os.path.join(self.folder, "one.json.xz")
        for content, wanted in ((whole, 0), (whole[:-40], 2), (b"no xz", 2), (b"", 2)):
            with open(path, "wb") as file:
                file.write(content)
            code, out, err = self.main("--table", path)
            self.assertEqual(code, wanted, err)
            if wanted:
                self.assertIn("one.json.xz is damaged", err)
            else:
                self.assertEqual(out, self.main("--table", plain)[1])

    def test_result_file_names_no_place_on_this_machine(self):
        with open(self.measured("one"), encoding="utf-8") as file:
            text = file.read()
        self.assertNotIn(self.folder, text)
        self.assertNotIn(ROOT, text)


class TextsTest(WithPrograms):
    README = "# fake\n\nText.\n\n{}\nold\n{}\nafter\n"

    def measured(self, readme):
        self.program(native={"limits": HARD})
        self.measure()
        return self.write("benchmarks/fake/README.md", readme)

    def texts(self):
        return self.main("--texts", self.out, "--benchmarks", os.path.join(self.folder, "benchmarks"))

    def test_block_is_rewritten(self):
        path = self.measured(self.README.format(texts.BEGIN, texts.END))
        for _ in range(2):  # the second time changes nothing more
            self.assertEqual(self.texts()[0], 0)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            self.assertTrue(text.startswith(f"# fake\n\nText.\n\n{texts.BEGIN}\nMedians in ms on assumed"), text)
            # 4 MB take 1 us, flat 2 ms and preloaded 0.5 ms.
            self.assertIn("| fake | 5,000 | 1.00 | 6.000 (limit 32,768) | 2.000 | 0.5000 | 2000x | 500x |", text)
            self.assertTrue(text.endswith(f"{texts.END}\nafter\n"))
            self.assertNotIn("old", text)

    def test_column_of_the_program_aggregated_by_hand(self):
        self.program(variants=["cdp", "flat", "klap"], klap={"ms": 1.25})
        self.measure()
        path = self.write("benchmarks/fake/README.md", self.README.format(texts.BEGIN, texts.END))
        self.assertEqual(self.texts()[0], 0)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("| flat | klap | preloaded |", text)
        self.assertIn("| 2.000 | 1.250 | 0.5000 | 2000x | 500x |", text)

    def test_missing_block(self):
        path = self.measured("# fake\n")
        code, _, err = self.texts()
        self.assertEqual(code, 2)
        self.assertIn("fake/README.md: the lines around the measured table are missing", err)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "# fake\n")


class FiguresTest(WithPrograms):
    TIMING = {"variable": "KLAP_TIMING", "values": "0 | 1", "default": "0"}

    def test_kernel_times_are_taken_apart_from_the_others(self):
        """One more process for them, which the timings know nothing of."""
        offered_too = KLAP_PTX.replace('"host"}]', '"host"}, ' + json.dumps(self.TIMING) + "]")
        self.write("build/bin/klap-ptx", offered_too, 0o755)
        self.program(stats=dict(STATS, gpu_ms={"parents": {"expand": 0.5}, "consumers": {"visit": 1.0, "more": 0.5}}))
        code, text, content = self.measure()
        self.assertEqual(code, 0, text)
        row = content["rows"][0]
        self.assertEqual(len({pid for name, pid, _ in self.log() if name == "grid/host"}), 2)
        self.assertEqual(row["breakdown"]["runs"], 5)
        # 2 ms in kernels in 5 runs of 0.5 ms.
        self.assertEqual({who: round(part, 3) for who, part in figures.shares(row).items()},
                         {"parents": 0.2, "consumers": 0.6, "rest": 0.2})

    def test_no_kernel_times(self):
        self.program()
        _, _, content = self.measure()
        self.assertNotIn("breakdown", content["rows"][0])
        self.assertIsNone(figures.shares(content["rows"][0]))

    def test_speed_ups(self):
        self.program(native={"limits": HARD})
        _, _, content = self.measure()
        found = figures.speed_ups(content, content["rows"])[1]
        self.assertEqual({name: [round(value, 6) for value in values] for name, values in found.items()},
                         {"flat": [3, 3], "grid/host": [12, 12], "grid/device": [4, 4]})

    def test_drawing(self):
        self.program(native={"limits": HARD})
        self.measure()
        folder = os.path.join(self.folder, "figures")
        code, out, err = self.main("--figures", folder, self.out)
        if importlib.util.find_spec("matplotlib") is None:
            self.assertEqual((code, out), (2, ""))
            self.assertIn("pip install matplotlib", err)
        else:
            self.assertEqual(code, 0, err)
            self.assertEqual(sorted(os.listdir(folder)), ["speed-up-klap.png", "speed-up-klap.svg"])
            self.assertIn("breakdown, promotion", out)


if __name__ == "__main__":
    unittest.main()
