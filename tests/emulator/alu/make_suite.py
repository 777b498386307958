#!/usr/bin/env python3
"""Writes the instruction suite: suite.h says what its lines mean.

Usage: make_suite.py [--check] SUITE

Keeps the results that SUITE already has for lines that stay as they are, so that adding instructions does not lose what
was recorded. With --check nothing is written, and the exit code says whether the file is up to date.
"""

import itertools
import sys

CASES = {}  # line without results -> its place, in order
ORDER = []

F32 = {
    "0": "00000000", "-0": "80000000", "1": "3f800000", "-1": "bf800000", "1.5": "3fc00000", "-2.5": "c0200000",
    "inf": "7f800000", "-inf": "ff800000", "nan": "7fc00000", "-nan": "ffc12345", "snan": "7f800001",
    "denormal": "00000001", "-denormal": "80000001", "large_denormal": "007fffff", "-large_denormal": "807fffff",
    "tiny": "00800000", "-tiny": "80800000", "max": "7f7fffff", "-max": "ff7fffff", "next1": "3f800001",
    "below1": "3f7fffff", "third": "3eaaaaab", "2^24": "4b800000", "0.5": "3f000000", "2^126": "7e800000",
    "2^127": "7f000000", "over2^126": "7e800001", "pi": "40490fdb", "ulp/2": "33800000", "over_ulp/2": "33800001",
    "2^-126*1.99": "00ffffff", "100": "42c80000", "-0.75": "bf400000", "0.25": "3e800000",
}
F64 = {
    "0": "0000000000000000", "-0": "8000000000000000", "1": "3ff0000000000000", "-1": "bff0000000000000",
    "1.5": "3ff8000000000000", "inf": "7ff0000000000000", "-inf": "fff0000000000000", "nan": "7ff8000000000000",
    "-nan": "fff8000000012345", "snan": "7ff0000000000001", "denormal": "0000000000000001",
    "-denormal": "8000000000000001", "large_denormal": "000fffffffffffff", "tiny": "0010000000000000",
    "max": "7fefffffffffffff", "-max": "ffefffffffffffff", "next1": "3ff0000000000001", "third": "3fd5555555555555",
    "ulp/2": "3ca0000000000000", "over_ulp/2": "3ca0000000000001", "0.5": "3fe0000000000000", "-2.5": "c004000000000000",
    "2^1000": "7e70000000000000",
}
F16 = {
    "0": "0000", "-0": "8000", "1": "3c00", "-1": "bc00", "1.5": "3e00", "inf": "7c00", "-inf": "fc00", "nan": "7e00",
    "-nan": "fe12", "snan": "7c01", "denormal": "0001", "-denormal": "8001", "large_denormal": "03ff", "tiny": "0400",
    "max": "7bff", "-max": "fbff", "next1": "3c01", "ulp/2": "1000", "over_ulp/2": "1001", "third": "3555", "0.5": "3800",
    "-2.5": "c100",
}
BF16 = {
    "0": "0000", "-0": "8000", "1": "3f80", "-1": "bf80", "1.5": "3fc0", "inf": "7f80", "-inf": "ff80", "nan": "7fc0",
    "-nan": "ffd2", "snan": "7f81", "denormal": "0001", "-denormal": "8001", "large_denormal": "007f", "tiny": "0080",
    "max": "7f7f", "-max": "ff7f", "next1": "3f81", "ulp/2": "3b80", "over_ulp/2": "3b81", "third": "3eab", "0.5": "3f00",
    "-2.5": "c020",
}
INT = {
    16: ["0000", "0001", "ffff", "7fff", "8000", "1234", "fff9", "0003"],
    32: ["00000000", "00000001", "ffffffff", "7fffffff", "80000000", "12345678", "deadbeef", "00000007"],
    64: ["0000000000000000", "0000000000000001", "ffffffffffffffff", "7fffffffffffffff", "8000000000000000",
         "123456789abcdef0", "00000000ffffffff", "fffffffffffffff9"],
}
# Pairs in which something happens: overflow, exact halves, NaN against numbers, infinities against each other.
FLOAT_PAIRS = [
    ("1", "third"), ("1", "ulp/2"), ("1", "over_ulp/2"), ("next1", "ulp/2"), ("-1", "ulp/2"), ("max", "max"),
    ("-max", "-max"), ("max", "-max"), ("inf", "-inf"), ("inf", "inf"), ("inf", "0"), ("nan", "1"), ("1", "-nan"),
    ("snan", "inf"), ("-nan", "nan"), ("0", "-0"), ("-0", "-0"), ("denormal", "denormal"), ("denormal", "-denormal"),
    ("large_denormal", "denormal"), ("tiny", "-denormal"), ("denormal", "0.5"), ("tiny", "0.5"), ("1.5", "-2.5"),
    ("max", "denormal"), ("0", "0"), ("third", "third"), ("-1", "inf"),
]
FLOAT_TRIPLES = [
    ("1", "third", "-1"), ("next1", "next1", "-1"), ("max", "1.5", "-max"), ("inf", "0", "1"), ("inf", "1", "-inf"),
    ("nan", "1", "1"), ("1", "-nan", "nan"), ("1", "1", "snan"), ("denormal", "0.5", "0"), ("denormal", "0.5", "denormal"),
    ("tiny", "0.5", "-denormal"), ("-1", "0", "0"), ("-1", "0", "-0"), ("third", "third", "ulp/2"),
    ("1.5", "-2.5", "third"), ("max", "max", "-inf"), ("next1", "ulp/2", "1"), ("0.5", "ulp/2", "next1"),
]


def add(instruction, destinations, sources, *rows):
    """One case a row of values."""
    for row in rows:
        values = " ".join(row) if isinstance(row, (tuple, list)) else row
        line = f"{instruction} | {destinations} | {sources} | {values}"
        if line not in CASES:
            CASES[line] = len(ORDER)
            ORDER.append(line)


def named(table, rows):
    return [tuple(table[name] for name in ((row,) if isinstance(row, str) else row)) for row in rows]


def int_pairs(bits):
    v = INT[bits]
    return [(v[0], v[0]), (v[1], v[2]), (v[2], v[1]), (v[2], v[2]), (v[3], v[1]), (v[4], v[2]), (v[3], v[3]), (v[4], v[4]),
            (v[5], v[6]), (v[6], v[5]), (v[6], v[7]), (v[4], v[1])]


def int_triples(bits):
    return [(a, b, INT[bits][(i * 3 + 1) % 8]) for i, (a, b) in enumerate(int_pairs(bits))]


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


def integer_conversions():
    for to, source in itertools.product([s + str(b) for b in (8, 16, 32, 64) for s in "us"], repeat=2):
        from_bits, to_bits = max(int(source[1:]), 16), max(int(to[1:]), 16)
        values = [v for v in (INT[from_bits][2], INT[from_bits][3], INT[from_bits][4], INT[from_bits][5])]
        values.append(f"{0x80:0{from_bits // 4}x}")
        add(f"cvt.{to}.{source}", to_bits, from_bits, *values[:3:2], values[4])
        # PTX has no .sat where every value fits.
        fits = int(to[1:]) > int(source[1:]) if to[0] == "s" else source[0] == "u" and int(to[1:]) >= int(source[1:])
        if not fits and to != source:
            add(f"cvt.sat.{to}.{source}", to_bits, from_bits, *values)
    for to in ("u8", "s8", "u16", "s16"):
        add(f"cvt.{to}.u32", 32, 32, "000080ff", "ffff7f80")
        add(f"cvt.{to}.u32", 64, 32, "000080ff", "ffff7f80")
    add("cvt.s32.s8", 64, 32, "00000080")


F32_TO_INT = ["0", "-0", "0.5", "1.5", "-2.5", "-0.75", "max", "-max", "inf", "-inf", "nan", "denormal", "-denormal", "2^24", "third"]
# 2^31, -2^31, just below 2^32, 2^32, just below 2^63, 2^63, 2^64, 127.5, 255.5, -128.5, 32767.5, 65535.5
LIMITS32 = ["4f000000", "cf000000", "4f7fffff", "4f800000", "5effffff", "5f000000", "5f800000", "42ff0000", "437f8000", "c3008000",
            "46fffeff", "477fff80"]
LIMITS64 = ["41dfffffffe00000", "41dfffffffc00000", "c1e0000000100000", "41efffffffe00000", "41f0000000000000", "43dfffffffffffff",
            "43e0000000000000", "43f0000000000000", "c3e0000000000001", "405fe00000000000", "406ff00000000000"]


def float_to_integer():
    for number, (sign, bits) in enumerate(itertools.product("us", (8, 16, 32, 64))):
        to, width = f"{sign}{bits}", max(bits, 16)
        for rounding in ("rni", "rzi", "rmi", "rpi"):
            add(f"cvt.{rounding}.{to}.f32", width, 32, *named(F32, F32_TO_INT[:6] + F32_TO_INT[12:]))
            add(f"cvt.{rounding}.{to}.f64", width, 64, *named(F64, ["0.5", "1.5", "-2.5", "nan", "-inf", "max", "-denormal"]))
            add(f"cvt.{rounding}.{to}.f16", width, 16, *named(F16, ["0.5", "1.5", "-2.5", "nan", "-inf", "max", "-denormal"]))
        add(f"cvt.rzi.{to}.f32", width, 32, *named(F32, F32_TO_INT[6:12]), *LIMITS32)
        add(f"cvt.rni.{to}.f64", width, 64, *LIMITS64)
        add(f"cvt.rni.sat.{to}.f32", width, 32, *LIMITS32[number % 2::2], F32["nan"], F32["-inf"])
        add(f"cvt.rpi.ftz.{to}.f32", width, 32, F32["denormal"], F32["-denormal"], F32["third"])
        if bits > 8:
            add(f"cvt.rzi.{to}.bf16", width, 16, *named(BF16, ["1.5", "-2.5", "nan", "inf", "-max"]))


def integer_to_float():
    values = {8: ["0000", "007f", "0080", "00ff"], 16: ["0000", "ffff", "7fff", "8000", "0801", "0803"],
              32: ["00000000", "ffffffff", "7fffffff", "80000000", "01000001", "01000003", "7fffff40", "00000801"],
              64: ["ffffffffffffffff", "7fffffffffffffff", "8000000000000000", "0020000000000001", "0020000000000003",
                   "7ffffffffffffdff", "0000008000000001", "000000000000ffe0", "0080000000000001"]}
    for (sign, bits), rounding in itertools.product(itertools.product("us", (8, 16, 32, 64)), ("rn", "rz", "rm", "rp")):
        source, width = f"{sign}{bits}", max(bits, 16)
        rows = values[bits]
        add(f"cvt.{rounding}.f32.{source}", 32, width, *rows)
        add(f"cvt.{rounding}.f64.{source}", 64, width, *rows[-5:])
        add(f"cvt.{rounding}.f16.{source}", 16, width, *rows)
        if rounding == "rn":
            if bits > 8:
                add(f"cvt.rn.bf16.{source}", 16, width, *rows)
            add(f"cvt.rn.sat.f32.{source}", 32, width, *rows[:2])


def float_to_float():
    kinds = ["0", "-0", "1", "inf", "-inf", "nan", "-nan", "snan", "denormal", "-denormal", "large_denormal", "tiny", "max", "third"]
    # 1 + 2^-24 and the like, halves of the narrower formats' last places, and what they overflow at.
    between = ["3f801000", "3f803000", "3f801001", "3f808000", "3f818000", "477fefff", "477ff000", "33000000", "33000001",
               "387fe000", "7f7f8000", "7f7f7fff", "00004000", "38800fff", "b3800000"]
    between64 = ["3ff0000010000000", "3ff0000030000000", "3ff0000010000001", "47efffffefffffff", "47effffff0000000",
                 "3690000000000000", "3690000000000001", "380fffffffffffff", "b6a8000000000000", "40effe0000000000"]
    for rounding in ("rn", "rz", "rm", "rp"):
        add(f"cvt.{rounding}.f32.f64", 32, 64, *named(F64, kinds), *between64)
        add(f"cvt.{rounding}.ftz.f32.f64", 32, 64, *between64[5:])
        add(f"cvt.{rounding}.f16.f32", 16, 32, *named(F32, kinds), *between)
        add(f"cvt.{rounding}.f16.f64", 16, 64, *named(F64, kinds[::3]), *between64)
        add(f"cvt.{rounding}.bf16.f32", 16, 32, *named(F32, kinds), *between)
    for rounding, relu in itertools.product(("rn", "rz"), ("", ".relu")):
        for kind in ("f16", "bf16"):
            if relu:
                add(f"cvt.{rounding}{relu}.{kind}.f32", 16, 32, *named(F32, ["-1", "-0", "nan", "-inf", "third"]))
            add(f"cvt.{rounding}{relu}.{kind}x2.f32", 32, "32 32",
                *zip([F32[k] for k in kinds], between), *zip(between, between[3:]))
    add("cvt.rna.tf32.f32", 32, 32, *named(F32, kinds), *between)
    for mode in (".rn", ".rz", ".rn.relu"):
        add(f"cvt{mode}.tf32.f32", 32, 32, *named(F32, kinds[::2] + ["-1"]), *between[::2])
    add("cvt.f64.f32", 64, 32, *named(F32, kinds))
    add("cvt.ftz.f64.f32", 64, 32, *named(F32, kinds[8:12]))
    add("cvt.f32.f16", 32, 16, *named(F16, kinds))
    add("cvt.f64.f16", 64, 16, *named(F16, kinds))
    add("cvt.f32.bf16", 32, 16, *named(BF16, kinds))
    add("cvt.sat.f32.f32", 32, 32, *named(F32, ["nan", "-1", "1.5", "0.5", "-0", "denormal"]))
    add("cvt.ftz.sat.f32.f32", 32, 32, *named(F32, ["nan", "-1", "1.5", "0.5", "-0", "denormal"]))
    add("cvt.sat.f32.f16", 32, 16, *named(F16, ["nan", "-1", "1.5", "0.5", "-0", "denormal"]))
    add("cvt.rn.sat.f16.f32", 16, 32, *named(F32, ["nan", "-1", "1.5", "third", "-0", "denormal"]))
    add("cvt.sat.f64.f64", 64, 64, *named(F64, ["nan", "-1", "1.5", "0.5", "-0", "denormal"]))
    integral = ["0.5", "1.5", "-2.5", "third", "-0", "nan", "snan", "-inf", "max", "denormal", "-denormal"]
    for rounding in ("rni", "rzi", "rmi", "rpi"):
        add(f"cvt.{rounding}.f32.f32", 32, 32, *named(F32, integral + ["-0.75"]))
        add(f"cvt.{rounding}.ftz.f32.f32", 32, 32, *named(F32, integral[-2:]))
        add(f"cvt.{rounding}.sat.f32.f32", 32, 32, *named(F32, integral[:6]))
        add(f"cvt.{rounding}.f64.f64", 64, 64, *named(F64, integral))
        add(f"cvt.{rounding}.f16.f16", 16, 16, *named(F16, integral))


def packed_conversions():
    floats = ["00000000", "80000000", "3f800000", "43e00000", "43e80000", "43e80001", "43f00000", "47600000", "47700000", "47c00000", "7f800000",
              "ffc00000", "3b000000", "3a800000", "3a800001", "37000000", "37000001", "bfa80000", "3f880000", "3f980000", "00000001"]
    for kind, relu in itertools.product(("e4m3x2", "e5m2x2"), ("", ".relu")):
        add(f"cvt.rn.satfinite{relu}.{kind}.f32", 16, "32 32", *zip(floats, floats[7:] + floats[:7]))
        add(f"cvt.rn.satfinite{relu}.{kind}.f16x2", 16, 32, "3c00bc00", "7c007bff", "7e00fc00", "5f005f40", "14001800", "80000001")
        add(f"cvt.rn{relu}.f16x2.{kind}", 32, 16, "3c7f", "ff80", "0107", "7b7c", "fd7e", "8088")
    rows = [("00000000", "ffffffff"), ("7fffffff", "80000000"), ("00000080", "ffffff7f"), ("00008000", "ffff7fff"), ("00000003", "fffffffe")]
    for kind in ("s16", "u16"):
        add(f"cvt.pack.sat.{kind}.s32", 32, "32 32", *rows)
    for kind in ("s8", "u8", "s4", "u4", "s2", "u2"):
        add(f"cvt.pack.sat.{kind}.s32.b32", 32, "32 32 32", *[(*r, "89abcdef") for r in rows])


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
