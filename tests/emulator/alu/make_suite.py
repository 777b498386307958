#!/usr/bin/env python3
"""Writes the instruction suite: suite.h says what its lines mean.

Usage: make_suite.py [--check] SUITE

Keeps the results that SUITE already has for lines that stay as they are, so that adding instructions does not lose what
was recorded. With --check nothing is written, and the exit code says whether the file is up to date.
"""

import itertools
import sys

from suite_conversions import (float_to_float, float_to_integer, integer_conversions, integer_to_float,
                               packed_conversions)
from suite_values import BF16, F16, F32, F64, FLOAT_PAIRS, FLOAT_TRIPLES, INT, ORDER, add, int_pairs, int_triples, named


def integer_arithmetic():
    for bits in (16, 32, 64):
        for sign in "us":
            kind, pairs = f"{sign}{bits}", int_pairs(bits)
            for name in ("add", "sub", "mul.lo", "mul.hi", "min", "max"):
                add(f"{name}.{kind}", bits, f"{bits} {bits}", *pairs)
            zero = INT[bits][0]
            for name in ("div", "rem"):
                add(f"{name}.{kind}", bits, f"{bits} {bits}", *[p for p in pairs if p[1] != zero],
                    *[(v, zero) for v in (zero, INT[bits][1], INT[bits][4], INT[bits][5])])
            for name in ("mad.lo", "mad.hi", "sad"):
                add(f"{name}.{kind}", bits, f"{bits} {bits} {bits}", *int_triples(bits)[::2])
            if bits < 64:
                add(f"mul.wide.{kind}", bits * 2, f"{bits} {bits}", *pairs)
                add(f"mad.wide.{kind}", bits * 2, f"{bits} {bits} {bits * 2}",
                    *[(a, b, INT[bits * 2][i % 8]) for i, (a, b) in enumerate(pairs[::2])])
        add(f"neg.s{bits}", bits, bits, *INT[bits][:6])
        add(f"abs.s{bits}", bits, bits, *INT[bits][:7])
    for kind in ("u32", "s32"):
        for name in ("mul24.lo", "mul24.hi"):
            add(f"{name}.{kind}", 32, "32 32", *int_pairs(32)[::2], ("00800000", "00800000"), ("007fffff", "ff7fffff"))
        for name in ("mad24.lo", "mad24.hi"):
            add(f"{name}.{kind}", 32, "32 32 32", *int_triples(32)[::3])
    add("mad24.hi.sat.s32", 32, "32 32 32", ("007fffff", "007fffff", "7fffffff"), ("00800000", "007fffff", "80000000"))
    for name in ("add.sat.s32", "sub.sat.s32"):
        add(name, 32, "32 32", *int_pairs(32))
    add("mad.hi.sat.s32", 32, "32 32 32", ("7fffffff", "7fffffff", "7fffffff"), ("80000000", "7fffffff", "80000000"),
        ("00000001", "ffffffff", "00000005"))
    packed = [("00010002", "ffffffff"), ("7fff8000", "00018000"), ("12345678", "fedcba98"), ("80007fff", "80007fff")]
    for name in ("add.u16x2", "add.s16x2", "min.u16x2", "max.u16x2", "min.s16x2", "max.s16x2", "min.relu.s16x2",
                 "max.relu.s16x2"):
        add(name, 32, "32 32", *packed)
    for name in ("min.relu.s32", "max.relu.s32"):
        add(name, 32, "32 32", *int_pairs(32)[::2])
    for a, b in itertools.product("us", "us"):
        rows = [("80ff7f01", "807fff01", "00000010"), ("ffffffff", "ffffffff", "ffffffff"), ("12345678", "9abcdef0", "7fffffff")]
        add(f"dp4a.{a}32.{b}32", 32, "32 32 32", *rows)
        add(f"dp2a.lo.{a}32.{b}32", 32, "32 32 32", *rows)
        add(f"dp2a.hi.{a}32.{b}32", 32, "32 32 32", *rows)


def carries():
    for bits in (32, 64):
        pairs = int_pairs(bits)[1:9]
        for sign in "us":
            for name in ("add", "sub"):
                add(f"{name}.cc.{sign}{bits}", f"{bits} cc", f"{bits} {bits}", *pairs[::2])
                for carry in "01":
                    rows = [(a, b, carry) for a, b in pairs[::2]]
                    add(f"{name}c.cc.{sign}{bits}", f"{bits} cc", f"{bits} {bits} cc", *rows)
                    add(f"{name}c.{sign}{bits}", bits, f"{bits} {bits} cc", *rows[:2])
            for half in ("lo", "hi"):
                rows = int_triples(bits)[1::3]
                add(f"mad.{half}.cc.{sign}{bits}", f"{bits} cc", f"{bits} {bits} {bits}", *rows)
                add(f"madc.{half}.cc.{sign}{bits}", f"{bits} cc", f"{bits} {bits} {bits} cc", *[(*r, "1") for r in rows])
                add(f"madc.{half}.{sign}{bits}", bits, f"{bits} {bits} {bits} cc", *[(*r, "1") for r in rows[:2]])


def logic():
    for bits in (16, 32, 64):
        v = INT[bits]
        for name in ("and", "or", "xor"):
            add(f"{name}.b{bits}", bits, f"{bits} {bits}", (v[5], v[6]), (v[4], v[2]), (v[0], v[7]))
        for name in ("not", "cnot"):
            add(f"{name}.b{bits}", bits, bits, v[0], v[2], v[5])
    for a, b in itertools.product("01", "01"):
        for name in ("and", "or", "xor"):
            add(f"{name}.pred", "p", "p p", (a, b))
            add(f"{name}.pred", "p", "!p p", (a, b))
    add("not.pred", "p", "p", "0", "1")
    for table in ("00", "ff", "80", "fe", "96", "e8", "ca", "1b", "d8", "01", "40"):
        add("lop3.b32", 32, "32 32 32 imm", ("f0f0f0f0", "cccccccc", "aaaaaaaa", table), ("12345678", "deadbeef", "0badf00d", table))
    for combine, q in itertools.product(("and", "or"), "01"):
        for table in ("00", "e8"):
            add(f"lop3.{combine}.b32", "32+p", "32 32 32 imm p", ("12345678", "deadbeef", "0badf00d", table, q))


def shifts_and_fields():
    for bits in (16, 32, 64):
        v = INT[bits]
        amounts = ["00000000", "00000001", f"{bits - 1:08x}", f"{bits:08x}", f"{bits + 1:08x}", "00000100", "ffffffff", "80000001"]
        for kind in (f"b{bits}", f"u{bits}", f"s{bits}"):
            names = ("shl", "shr") if kind[0] == "b" else ("shr",)
            for name in names:
                add(f"{name}.{kind}", bits, f"{bits} 32", *[(x, n) for n in amounts for x in (v[4], v[5])])
    for side, mode in itertools.product("lr", ("wrap", "clamp")):
        add(f"shf.{side}.{mode}.b32", 32, "32 32 32",
            *[("12345678", "9abcdef0", f"{n:08x}") for n in (0, 1, 8, 31, 32, 33, 63, 64, 0xffffffff)])
    fields = [(0, 0), (0, 8), (4, 4), (28, 8), (31, 1), (32, 4), (60, 8), (64, 1), (0, 32), (0, 64), (255, 255), (256, 8),
              (8, 256 + 4), (16, 40), (1, 31)]
    for bits in (32, 64):
        v = INT[bits]
        for sign in "us":
            add(f"bfe.{sign}{bits}", bits, f"{bits} 32 32",
                *[(v[5 + i % 2 * (bits == 32)], f"{p:08x}", f"{n:08x}") for i, (p, n) in enumerate(fields)],
                (v[4], "00000010", "00000020"), (v[2], "00000005", "00000007"))
            for name in ("bfind", "bfind.shiftamt"):
                add(f"{name}.{sign}{bits}", 32, bits, *v)
        add(f"bfi.b{bits}", bits, f"{bits} {bits} 32 32", *[(v[6], v[5], f"{p:08x}", f"{n:08x}") for p, n in fields])
        for name in ("popc", "clz", "brev"):
            add(f"{name}.b{bits}", bits if name == "brev" else 32, bits, *v)
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        selectors = ("00003210", "00007654", "0000fedc", "00000123", "ffff8888", "00005410") if not mode else \
            ("00000000", "00000001", "00000002", "00000003", "00000007")
        add(f"prmt.b32{mode}", 32, "32 32 32", *[("83729104", "f5e6b7c8", s) for s in selectors])
    masks = [("ffffffff", "00000000", "00000001"), ("00000010", "00000004", "00000000"), ("00000010", "00000005", "00000000"),
             ("f0f0f0f0", "00000000", "00000005"), ("f0f0f0f0", "0000001f", "fffffffd"), ("f0f0f0f0", "00000010", "ffffffff"),
             ("00000000", "00000000", "00000001"), ("ffffffff", "0000001f", "00000002"), ("80000001", "0000001f", "fffffffe"),
             ("80000001", "0000001f", "00000001")]
    add("fns.b32", 32, "32 32 32", *masks)
    widths = [(0, 0), (0, 32), (4, 8), (31, 1), (31, 2), (32, 1), (1, 31), (5, 33), (40, 4), (0, 0xffffffff)]
    for mode in ("clamp", "wrap"):
        add(f"bmsk.{mode}.b32", 32, "32 32", *[(f"{a:08x}", f"{b:08x}") for a, b in widths])
        for sign in "us":
            add(f"szext.{mode}.{sign}32", 32, "32 32",
                *[("89abcdef", f"{n:08x}") for n in (0, 1, 4, 8, 31, 32, 33, 0xffffffff)], ("00000080", "00000008"))


def float_arithmetic():
    for rounding in ("", ".rn", ".rz", ".rm", ".rp"):
        for name in ("add", "sub", "mul", "div"):
            if name == "div" and not rounding:
                continue
            pairs = FLOAT_PAIRS if rounding == ".rn" else FLOAT_PAIRS[:24:2] if not rounding else FLOAT_PAIRS[:26]
            add(f"{name}{rounding}.f32", 32, "32 32", *named(F32, pairs))
            add(f"{name}{rounding}.f64", 64, "64 64", *named(F64, pairs))
            some = FLOAT_PAIRS[::2] + [("large_denormal", "tiny"), ("tiny", "-denormal")]
            add(f"{name}{rounding}.ftz.f32", 32, "32 32", *named(F32, some), ("00ffffff", "3f000000"), ("00800001", "3f7fffff"))
            if name != "div":
                add(f"{name}{rounding}.sat.f32", 32, "32 32", *named(F32, FLOAT_PAIRS[::4] + [("nan", "1"), ("-0", "-0")]))
                add(f"{name}{rounding}.ftz.sat.f32", 32, "32 32", *named(F32, FLOAT_PAIRS[17:22]))
        if not rounding:
            continue
        for name in ("fma", "mad"):
            triples = FLOAT_TRIPLES if name == "fma" else FLOAT_TRIPLES[::5]
            add(f"{name}{rounding}.f32", 32, "32 32 32", *named(F32, triples))
            add(f"{name}{rounding}.f64", 64, "64 64 64", *named(F64, triples))
        add(f"fma{rounding}.ftz.f32", 32, "32 32 32", *named(F32, FLOAT_TRIPLES[8:14]))
        add(f"fma{rounding}.sat.f32", 32, "32 32 32", *named(F32, FLOAT_TRIPLES[::3]))
        one = ["0", "-0", "1", "-1", "1.5", "third", "inf", "-inf", "nan", "-nan", "snan", "denormal", "-denormal", "large_denormal",
               "tiny", "max", "next1", "-2.5"]
        for name in ("sqrt", "rcp"):
            add(f"{name}{rounding}.f32", 32, 32, *named(F32, one))
            add(f"{name}{rounding}.f64", 64, 64, *named(F64, one))
            add(f"{name}{rounding}.ftz.f32", 32, 32, *named(F32, one[::3] + ["denormal", "max", "2^127"]))


def approximations():
    values = ["0", "-0", "1", "-1", "1.5", "third", "inf", "-inf", "nan", "snan", "denormal", "-denormal", "large_denormal", "tiny",
              "max", "next1", "below1", "-2.5", "0.5", "pi", "100", "-0.75", "2^127"]
    for name in ("rcp", "sqrt", "rsqrt", "lg2", "ex2"):
        add(f"{name}.approx.f32", 32, 32, *named(F32, values))
        add(f"{name}.approx.ftz.f32", 32, 32, *named(F32, values[::3] + ["denormal", "-denormal"]))
    # Beyond two pi the error of sin and cos has no bound.
    small = [v for v in values if v not in ("max", "2^127", "100")]
    for name in ("sin", "cos"):
        add(f"{name}.approx.f32", 32, 32, *named(F32, small))
        add(f"{name}.approx.ftz.f32", 32, 32, *named(F32, small[::4] + ["denormal"]))
    add("tanh.approx.f32", 32, 32, *named(F32, values))
    add("rcp.approx.ftz.f64", 64, 64, *named(F64, ["0", "-0", "1", "1.5", "third", "inf", "-inf", "nan", "denormal", "max", "-2.5", "2^1000"]))
    add("rsqrt.approx.f64", 64, 64, *named(F64, ["1", "1.5", "third", "inf", "2^1000", "nan", "-1", "0", "-0"]))
    add("rsqrt.approx.ftz.f64", 64, 64, *named(F64, ["0", "-0", "1", "third", "inf", "-1", "denormal"]))
    pairs = FLOAT_PAIRS + [("1", "over2^126"), ("inf", "over2^126"), ("-1", "2^127"), ("nan", "2^127"), ("1", "2^126"), ("1", "max")]
    for mode in ("approx", "full"):
        add(f"div.{mode}.f32", 32, "32 32", *named(F32, pairs))
        add(f"div.{mode}.ftz.f32", 32, "32 32", *named(F32, pairs[::3]))


def signs_and_kinds():
    for name in ("min", "max"):
        add(f"{name}.f32", 32, "32 32", *named(F32, FLOAT_PAIRS))
        add(f"{name}.f64", 64, "64 64", *named(F64, FLOAT_PAIRS))
        for mode in (".ftz", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs", ".ftz.NaN"):
            add(f"{name}{mode}.f32", 32, "32 32", *named(F32, FLOAT_PAIRS[10:24] + [("-1", "1.5"), ("-2.5", "-0.75")]))
    kinds = ["0", "-0", "1", "inf", "-inf", "nan", "-nan", "snan", "denormal", "-denormal", "large_denormal", "tiny", "max"]
    for name in ("neg", "abs"):
        add(f"{name}.f32", 32, 32, *named(F32, kinds))
        add(f"{name}.ftz.f32", 32, 32, *named(F32, kinds))
        add(f"{name}.f64", 64, 64, *named(F64, kinds))
    for name in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        add(f"testp.{name}.f32", "p", 32, *named(F32, kinds))
        add(f"testp.{name}.f64", "p", 64, *named(F64, kinds[::2]))
    signs = [("1", "-1"), ("-1", "nan"), ("-0", "1.5"), ("nan", "-inf"), ("-nan", "1")]
    add("copysign.f32", 32, "32 32", *named(F32, signs))
    add("copysign.f64", 64, "64 64", *named(F64, signs))


def pair_up(rows, other):
    """Packed operands from the values of two rows: the low half from one, the high half from the other."""
    return [tuple(h + l for l, h in zip(a, b)) for a, b in zip(rows, other)]


def halves():
    for kind, table in (("f16", F16), ("bf16", BF16)):
        is_f16 = kind == "f16"
        pairs, triples = named(table, FLOAT_PAIRS), named(table, FLOAT_TRIPLES)
        packed, packed3 = pair_up(pairs, pairs[5:] + pairs[:5]), pair_up(triples, triples[5:] + triples[:5])
        modes = ("", ".rn", ".ftz", ".sat", ".ftz.sat") if is_f16 else ("", ".rn")
        for name, mode in itertools.product(("add", "sub", "mul"), modes):
            add(f"{name}{mode}.{kind}", 16, "16 16", *(pairs if mode == ".rn" else pairs[::3]))
            add(f"{name}{mode}.{kind}x2", 32, "32 32", *packed[::5])
        for mode in (".rn", ".rn.ftz", ".rn.sat", ".rn.relu") if is_f16 else (".rn", ".rn.relu"):
            add(f"fma{mode}.{kind}", 16, "16 16 16", *triples)
            add(f"fma{mode}.{kind}x2", 32, "32 32 32", *packed3[::4])
        ones = named(table, ["0", "-0", "1", "inf", "nan", "-nan", "snan", "denormal", "-denormal", "max", "-2.5"])
        for name in ("neg", "abs"):
            add(f"{name}.{kind}", 16, 16, *ones)
            add(f"{name}.{kind}x2", 32, 32, *pair_up(ones, ones[3:])[::3])
            if is_f16:
                add(f"{name}.ftz.{kind}", 16, 16, *ones[-4:])
        for name, mode in itertools.product(("min", "max"), ("", ".NaN", ".xorsign.abs") + ((".ftz",) if is_f16 else ())):
            add(f"{name}{mode}.{kind}", 16, "16 16", *pairs[11:24])
            add(f"{name}{mode}.{kind}x2", 32, "32 32", *packed[10:20:4])
        more = ones + named(table, ["third", "0.5", "1.5", "large_denormal", "-inf"])
        ftz = "" if is_f16 else ".ftz"
        add(f"ex2.approx{ftz}.{kind}", 16, 16, *more)
        add(f"ex2.approx{ftz}.{kind}x2", 32, 32, *pair_up(more, more[4:])[::3])
        add(f"tanh.approx.{kind}", 16, 16, *more)
        add(f"tanh.approx.{kind}x2", 32, 32, *pair_up(more, more[4:])[::3])
        for by in ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"):
            add(f"setp.{by}.{kind}", "p", "16 16", *[pairs[i] for i in (0, 11, 15, 17, 20)])
            add(f"setp.{by}.{kind}x2", "p+p", "32 32", *packed[8:24:7])
        add(f"set.lt.u32.{kind}", 32, "16 16", *pairs[::6])
        add(f"set.geu.{kind}.{kind}", 16, "16 16", *pairs[::6])
        add(f"set.gt.{kind}x2.{kind}x2", 32, "32 32", *packed[::6])
        add(f"set.gtu.u32.{kind}x2", 32, "32 32", *packed[::6])


def comparisons():
    for bits in (16, 32, 64):
        v = INT[bits]
        pairs = [(v[0], v[0]), (v[1], v[2]), (v[2], v[1]), (v[4], v[3])]
        for by in ("eq", "ne", "lt", "le", "gt", "ge"):
            for sign in "us" if by not in ("eq", "ne") else "usb":
                add(f"setp.{by}.{sign}{bits}", "p", f"{bits} {bits}", *pairs)
        for by in ("lo", "ls", "hi", "hs"):
            add(f"setp.{by}.u{bits}", "p", f"{bits} {bits}", *pairs)
    floats = [("1", "1.5"), ("1.5", "1"), ("1", "1"), ("0", "-0"), ("nan", "1"), ("1", "nan"), ("nan", "nan"), ("inf", "inf"),
              ("denormal", "-denormal"), ("denormal", "0"), ("-inf", "max")]
    for by in ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"):
        add(f"setp.{by}.f32", "p", "32 32", *named(F32, floats))
        add(f"setp.{by}.ftz.f32", "p", "32 32", *named(F32, floats[-3:]))
        add(f"setp.{by}.f64", "p", "64 64", *named(F64, floats))
    for combine, c, third in itertools.product(("and", "or", "xor"), "01", ("p", "!p")):
        for pair in (("1", "1.5"), ("nan", "1")):
            a, b = named(F32, [pair])[0]
            add(f"setp.lt.{combine}.f32", "p+p", f"32 32 {third}", (a, b, c))
        add(f"setp.ge.{combine}.s32", "p", f"32 32 {third}", ("80000000", "7fffffff", c), ("00000001", "ffffffff", c))
        add(f"set.ne.{combine}.u32.u32", 32, f"32 32 {third}", ("00000001", "00000001", c), ("00000001", "00000000", c))
    add("setp.ne.s32", "p+p", "32 32", ("00000001", "00000001"), ("00000001", "00000002"))
    for kind in ("u32", "s32", "f32"):
        add(f"set.lt.{kind}.f32", 32, "32 32", *named(F32, floats[:6]))
        add(f"set.leu.ftz.{kind}.f32", 32, "32 32", *named(F32, floats[4:9]))
        add(f"set.hi.{kind}.u32", 32, "32 32", *int_pairs(32)[1:4])
        add(f"set.le.{kind}.s16", 32, "16 16", *int_pairs(16)[1:4])
        add(f"set.num.{kind}.f64", 32, "64 64", *named(F64, floats[3:6]))
    for bits in (16, 32, 64):
        for kind in (f"b{bits}", f"u{bits}", f"s{bits}"):
            add(f"selp.{kind}", bits, f"{bits} {bits} p", (INT[bits][5], INT[bits][4], "0"), (INT[bits][5], INT[bits][4], "1"))
        for n in ("00000000", "00000001", "ffffffff", "80000000"):
            add(f"slct.u{bits}.s32", bits, f"{bits} {bits} 32", (INT[bits][5], INT[bits][4], n))
    for c in ("0", "-0", "1", "-1", "nan", "-nan", "-inf", "denormal", "-denormal"):
        add("slct.f32.f32", 32, "32 32 32", (F32["1"], F32["snan"], F32[c]))
        add("slct.ftz.f32.f32", 32, "32 32 32", (F32["1"], F32["snan"], F32[c]))
    add("slct.f64.f32", 64, "64 64 32", (F64["1"], F64["snan"], F32["-1"]))


def moves():
    for bits, kinds in ((16, "bus"), (32, "busf"), (64, "busf")):
        for kind in kinds:
            add(f"mov.{kind}{bits}", bits, bits, INT[bits][5], INT[bits][2])
    add("mov.f32", 32, 32, F32["snan"])
    add("mov.pred", "p", "p", "0", "1")
    add("mov.b32", 32, "{16,16}", ("1234", "abcd"))
    add("mov.b32", "{16,16}", 32, "1234abcd")
    add("mov.b64", 64, "{32,32}", ("12345678", "9abcdef0"))
    add("mov.b64", "{32,32}", 64, "123456789abcdef0")
    add("mov.b64", 64, "{16,16,16,16}", ("1234", "5678", "9abc", "def0"))
    add("mov.b64", "{16,16,16,16}", 64, "123456789abcdef0")
    add("mov.b128", 128, "{64,64}", ("123456789abcdef0", "0fedcba987654321"))
    add("mov.b128", "{64,64}", 128, "123456789abcdef00fedcba987654321")
    add("mov.b128", 128, 128, "123456789abcdef00fedcba987654321")


def recorded(path):
    """Line without results -> results, of an existing suite."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.rstrip("\n") for line in file if line.strip() and not line.startswith("#")]
    except FileNotFoundError:
        return {}
    parts = [line.rsplit(" | ", 1) for line in lines if line.count("|") == 4]
    return {case: results for case, results in parts}


def main():
    check = "--check" in sys.argv
    path = sys.argv[-1]
    for family in (integer_arithmetic, carries, logic, shifts_and_fields, float_arithmetic, approximations, signs_and_kinds,
                   halves, comparisons, integer_conversions, float_to_integer, integer_to_float, float_to_float,
                   packed_conversions, moves):
        family()
    results = recorded(path)
    text = "# Written by make_suite.py; suite.h says what a line means.\n"
    text += "".join(line + (f" | {results[line]}" if line in results else "") + "\n" for line in ORDER)
    if check:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
        sys.exit(f"{path} is not what make_suite.py writes; run make_suite.py {path}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


main()
