"""Tests of tools/check_comments: which comments it refuses, and that tools/check_style asks it."""

import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/check_comments"


def refused_lines(text, name="file.h"):
    """The numbers of the lines for which the tool refuses a file with this text."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "folder" / name
        file.parent.mkdir()
        file.write_text(text, encoding="utf-8")
        run = subprocess.run([TOOL, folder], capture_output=True, text=True)
        lines = [int(line.removeprefix(f"{file}:").split(":")[0]) for line in run.stderr.splitlines()]
        assert run.returncode == (1 if lines else 0), run
        return lines


class Comments(unittest.TestCase):
    def test_fragment_words_are_refused(self):
        for word in ("Of all sites.", "The same for a file.", "Those of a loop.", "What it reads.", "Who may leave."):
            self.assertEqual([1], refused_lines(f"// {word}\nint a;\n"), word)

    def test_sentences_are_allowed(self):
        for text in ("The sites of a kernel.", "The sameness of two.", "Offsets of a place.", "Whole words only.",
                     "Whatever fails ends here."):
            self.assertEqual([], refused_lines(f"// {text}\nint a;\n"), text)

    def test_only_the_first_word_of_a_block_counts(self):
        self.assertEqual([], refused_lines("// A place in front of it.\n// Of several, the first.\n  // Also a block.\n"))
        self.assertEqual([3], refused_lines("// One block.\n\n// Of another one.\n// Those of it.\n"))
        self.assertEqual([2], refused_lines("// One block.\n  // Of another column.\n"))

    def test_comments_behind_code_count(self):
        self.assertEqual([1], refused_lines("int a;  // Of the cell\n"))
        self.assertEqual([2], refused_lines("int a;  // bytes\nint b;  // What it has\n        // Those of it\n"))
        self.assertEqual([], refused_lines("int a;  // of the cell\nint b;  // A count.\n        // Of cells.\n"))

    def test_c_comments_and_documentation_count(self):
        self.assertEqual([1], refused_lines("/* The same for a file. */\n"))
        self.assertEqual([2], refused_lines("int a;\n  /// Who reads it.\n"))
        self.assertEqual([1], refused_lines("int a;  //< Of it.\n"))

    def test_literals_are_no_comments(self):
        self.assertEqual([], refused_lines('const char* a = "// Of it", b = \'"\', *c = "\\"// Of it";\n'))
        self.assertEqual([1], refused_lines('const char* a = "x";  // Of it\n'))
        self.assertEqual([1], refused_lines("int a = 1'000;  // Of it's own\n"))

    def test_only_cpp_and_cuda_files_are_read(self):
        for name in ("a.h", "a.c", "a.cpp", "a.cu", "a.cuh", "a.def"):
            self.assertEqual([1], refused_lines("// Of it.\n", name), name)
        for name in ("a.md", "a.py", "a.ptx"):
            self.assertEqual([], refused_lines("// Of it.\n", name), name)

    def test_check_style_asks_it_for_all_folders_of_the_product(self):
        style = (ROOT / "tools/check_style").read_text(encoding="utf-8")
        self.assertIn("\ntools/check_comments src include tools ptx-patterns\n", style)


if __name__ == "__main__":
    unittest.main()
