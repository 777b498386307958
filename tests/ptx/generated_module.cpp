#include "generated_module.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <iterator>

namespace klap::test {
namespace {

// The same numbers on every platform, which the standard's distributions do not promise.
class Random {
 public:
  uint32_t below(uint32_t bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>((state_ >> 33) % bound);
  }
  template <size_t size>
  const char* one_of(const std::array<const char*, size>& choices) {
    return choices[below(size)];
  }

 private:
  uint64_t state_ = 20261120;
};

class Generator {
 public:
  std::string run(size_t bytes) {
    out_.reserve(bytes + (size_t{1} << 20));
    write(
        "//\n// Generated\n//\n\n.version 9.0\n.target sm_90\n.address_size 64\n\n.file\t1 "
        "\"/src/generated.cu\"\n");
    write(
        ".extern .func  (.param .b64 func_retval0) __cudaCDP2GetParameterBufferV2\n(\n\t.param .b64 p0,\n"
        "\t.param .align 4 .b8 p1[12],\n\t.param .align 4 .b8 p2[12],\n\t.param .b32 p3\n)\n;\n"
        ".extern .func  (.param .b32 func_retval0) __cudaCDP2LaunchDeviceV2\n(\n\t.param .b64 p0,\n"
        "\t.param .b64 p1\n)\n;\n");
    for (number_ = 0; out_.size() < bytes; ++number_) {
      if (number_ % 8 == 3) table();
      kernel();
    }
    return std::move(out_);
  }

 private:
  template <class... Arguments>
  void write(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Arguments>(arguments)...);
  }

  // A register that was written before, or a new one.
  uint32_t r() { return 1 + random_.below(words_); }
  uint32_t rd() { return 1 + random_.below(longs_); }
  uint32_t f() { return 1 + random_.below(floats_); }
  uint32_t fd() { return 1 + random_.below(doubles_); }
  uint32_t p() { return 1 + random_.below(predicates_); }
  uint32_t new_r() { return ++words_; }
  uint32_t new_rd() { return ++longs_; }
  uint32_t new_f() { return ++floats_; }
  uint32_t new_fd() { return ++doubles_; }
  uint32_t new_p() { return ++predicates_; }

  std::string name(const char* base) const {
    return fmt::format("_ZN5space{}{}IfLi{}EEEvPKT_PS1_iS1_", std::string_view(base).size(), base, number_);
  }

  void table() {
    write(".visible .global .align 4 .b8 table_{}[256] = {{", number_);
    for (int i = 0; i < 256; ++i) write("{}{}", i == 0 ? "" : ", ", random_.below(256));
    write(
        "}};\n.const .align 8 .f64 factors_{}[4] = {{0d3FF0000000000000, 0d4000000000000000, "
        "0dBFE0000000000000, 0}};\n",
        number_);
  }

  void kernel() {
    const std::string kernel_name =
        name(random_.one_of(std::array{"stencil", "reduce_by_key", "scatter", "k"}));
    words_ = 4, longs_ = 4, floats_ = 2, doubles_ = 1, predicates_ = 1, labels_ = 1;
    write(
        "\t// .globl\t{0}\n.visible .entry {0}(\n\t.param .u64 .ptr .align 1 {0}_param_0,\n\t.param .u64 "
        "{0}_param_1,\n"
        "\t.param .u32 {0}_param_2,\n\t.param .align 8 .b8 {0}_param_3[24]\n)\n",
        kernel_name);
    if (random_.below(3) == 0) write(".maxntid 256, 1, 1\n.minnctapersm 2\n");
    // Declared after the fact, as the compiler does it; the numbers are upper bounds here.
    write(
        "{{\n\t.reg .pred \t%p<999>;\n\t.reg .b16 \t%rs<9>;\n\t.reg .b32 \t%r<9999>;\n\t.reg .f32 "
        "\t%f<9999>;\n"
        "\t.reg .f64 \t%fd<999>;\n\t.reg .b64 \t%rd<9999>;\n\t// demoted variable\n"
        "\t.shared .align 4 .b8 _ZZ{}E4tile[1024];\n\n",
        kernel_name);
    prologue(kernel_name);
    const uint32_t pieces = 20 + random_.below(180);
    for (uint32_t i = 0; i < pieces; ++i) piece();
    write("\n$L__BB{}_{}:\n\tret;\n\n}}\n", number_, labels_);
  }

  void prologue(const std::string& kernel_name) {
    write(
        "\tld.param.u64 \t%rd1, [{0}_param_0];\n\tld.param.u64 \t%rd2, [{0}_param_1];\n"
        "\tld.param.u32 \t%r1, [{0}_param_2];\n\tld.param.v2.f32 \t{{%f1, %f2}}, [{0}_param_3+8];\n"
        "\tcvta.to.global.u64 \t%rd3, %rd1;\n\tmov.u32 \t%r2, %ctaid.x;\n\tmov.u32 \t%r3, %ntid.x;\n"
        "\tmov.u32 \t%r4, %tid.x;\n\tmad.lo.s32 \t%r1, %r2, %r3, %r4;\n\tsetp.ge.s32 \t%p1, %r1, %r2;\n",
        kernel_name);
  }

  // A few statements that belong together, as often as they do in programs.
  void piece() {
    const uint32_t kind = random_.below(100);
    if (kind < 22) {
      integers();
    } else if (kind < 40) {
      addresses();
    } else if (kind < 62) {
      floats();
    } else if (kind < 76) {
      branch();
    } else if (kind < 84) {
      vectors();
    } else if (kind < 89) {
      warp();
    } else if (kind < 94) {
      write("\t.loc\t1 {} {}, function_name $L__info_string{}, inlined_at 1 {} {}\n", random_.below(2000),
            random_.below(80), random_.below(30), random_.below(2000), random_.below(80));
    } else if (kind < 97) {
      inline_assembly();
    } else {
      launch();
    }
  }

  void integers() {
    static constexpr std::array kBinary = {"add.s32", "sub.s32", "mul.lo.s32", "and.b32",
                                           "or.b32",  "xor.b32", "mul.hi.u32", "min.s32",
                                           "max.u32", "shl.b32", "shr.u32"};
    write("\t{} \t%r{}, %r{}, %r{};\n", random_.one_of(kBinary), new_r(), r(), r());
    write("\t{} \t%r{}, %r{}, {};\n", random_.one_of(kBinary), new_r(), r(),
          static_cast<int>(random_.below(4096)) - 64);
    write("\tmad.lo.s32 \t%r{}, %r{}, %r{}, %r{};\n", new_r(), r(), r(), r());
    if (random_.below(2) == 0) write("\tshf.l.wrap.b32 \t%r{}, %r{}, %r{}, 7;\n", new_r(), r(), r());
    if (random_.below(4) == 0) write("\tlop3.b32 \t%r{}, %r{}, %r{}, %r{}, 0x96;\n", new_r(), r(), r(), r());
  }

  void addresses() {
    const uint32_t offset = new_rd(), address = new_rd();
    write("\tmul.wide.s32 \t%rd{}, %r{}, 4;\n\tadd.s64 \t%rd{}, %rd3, %rd{};\n", offset, r(), address,
          offset);
    static constexpr std::array kLoads = {"ld.global.nc.f32", "ld.global.f32", "ld.global.L2::128B.f32",
                                          "ld.shared.f32"};
    write("\t{} \t%f{}, [%rd{}+{}];\n", random_.one_of(kLoads), new_f(), address, 4 * random_.below(64));
    if (random_.below(2) == 0) write("\tst.global.f32 \t[%rd{}], %f{};\n", address, f());
    if (random_.below(6) == 0) write("\tatom.global.add.u32 \t%r{}, [%rd{}], 1;\n", new_r(), address);
  }

  void floats() {
    write("\tfma.rn.f32 \t%f{}, %f{}, %f{}, %f{};\n", new_f(), f(), f(), f());
    write("\tadd.f32 \t%f{}, %f{}, 0f{:08X};\n", new_f(), f(), 0x3F800000 + random_.below(1 << 20));
    write("\tmul.ftz.f32 \t%f{}, %f{}, %f{};\n", new_f(), f(), f());
    if (random_.below(3) == 0) write("\tcvt.f64.f32 \t%fd{}, %f{};\n", new_fd(), f());
    if (random_.below(3) == 0)
      write("\tfma.rn.f64 \t%fd{}, %fd{}, 0d3FE62E42FEFA39EF, %fd{};\n", new_fd(), fd(), fd());
    if (random_.below(3) == 0) write("\tex2.approx.ftz.f32 \t%f{}, %f{};\n", new_f(), f());
  }

  void branch() {
    static constexpr std::array kCompare = {"setp.lt.s32", "setp.ne.s32", "setp.gt.u32", "setp.eq.s32"};
    const uint32_t predicate = new_p();
    write("\t{} \t%p{}, %r{}, {};\n", random_.one_of(kCompare), predicate, r(), random_.below(512));
    write("\t@{}%p{} bra \t$L__BB{}_{};\n\n", random_.below(3) == 0 ? "!" : "", predicate, number_, labels_);
    if (random_.below(2) == 0) write("\tselp.b32 \t%r{}, %r{}, %r{}, %p{};\n", new_r(), r(), r(), p());
    if (random_.below(2) == 0) write("$L__BB{}_{}:\n", number_, labels_++);
  }

  void vectors() {
    const uint32_t address = rd();
    write("\tld.global.v4.f32 \t{{%f{}, %f{}, %f{}, %f{}}}, [%rd{}+16];\n", new_f(), new_f(), new_f(),
          new_f(), address);
    write("\tst.shared.v2.u32 \t[%r{}+{}], {{%r{}, %r{}}};\n", r(), 8 * random_.below(32), r(), r());
    write("\tmov.b64 \t{{%r{}, %r{}}}, %rd{};\n", new_r(), new_r(), rd());
  }

  void warp() {
    write("\tshfl.sync.down.b32 \t%r{}|%p{}, %r{}, {}, 31, -1;\n", new_r(), new_p(), r(),
          1 << random_.below(5));
    write("\tbar.sync \t0;\n");
    if (random_.below(2) == 0) write("\tvote.sync.ballot.b32 \t%r{}, %p{}, -1;\n", new_r(), p());
  }

  void inline_assembly() {
    write(
        "\t// begin inline asm\n\t{{ .reg .pred q; setp.ne.b32 q, %r{}, 0; selp.b32 %r{}, 1, 0, q; }}\n"
        "\t// end inline asm\n",
        r(), new_r());
  }

  void launch() {
    const uint32_t buffer = new_rd(), predicate = new_p(), label = labels_++;
    write(
        "\t{{ // callseq {0}, 0\n\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], %rd{1};\n"
        "\t.param .align 4 .b8 param1[12];\n\tst.param.b32 \t[param1+0], %r{2};\n\tst.param.b32 "
        "\t[param1+4], 1;\n"
        "\tst.param.b32 \t[param1+8], 1;\n\t.param .align 4 .b8 param2[12];\n\tst.param.b32 \t[param2+0], "
        "256;\n"
        "\tst.param.b32 \t[param2+4], 1;\n\tst.param.b32 \t[param2+8], 1;\n\t.param .b32 param3;\n"
        "\tst.param.b32 \t[param3+0], 0;\n\t.param .b64 retval0;\n\tcall.uni (retval0), \n"
        "\t__cudaCDP2GetParameterBufferV2, \n\t(\n\tparam0, \n\tparam1, \n\tparam2, \n\tparam3\n\t);\n"
        "\tld.param.b64 \t%rd{3}, [retval0+0];\n\t}} // callseq {0}\n",
        label, rd(), r(), buffer);
    write(
        "\tsetp.eq.s64 \t%p{0}, %rd{1}, 0;\n\t@%p{0} bra \t$L__BB{2}_{3};\n\n\tst.u64 \t[%rd{1}], %rd2;\n"
        "\tst.u32 \t[%rd{1}+8], %r{4};\n",
        predicate, buffer, number_, label, r());
    write(
        "\t{{ // callseq {0}, 1\n\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], %rd{1};\n\t.param .b64 "
        "param1;\n"
        "\tst.param.b64 \t[param1+0], 0;\n\t.param .b32 retval0;\n\tcall.uni (retval0), \n"
        "\t__cudaCDP2LaunchDeviceV2, \n\t(\n\tparam0, \n\tparam1\n\t);\n\tld.param.b32 \t%r{2}, "
        "[retval0+0];\n"
        "\t}} // callseq {0}\n\n$L__BB{3}_{0}:\n",
        label, buffer, new_r(), number_);
  }

  std::string out_;
  Random random_;
  uint32_t number_ = 0;
  uint32_t words_ = 0, longs_ = 0, floats_ = 0, doubles_ = 0, predicates_ = 0, labels_ = 0;
};

}  // namespace

std::string generated_module(size_t bytes) { return Generator().run(bytes); }

}  // namespace klap::test
