// What becomes of the macros of include/klap/annotate.cuh in programs that nvcc compiled: as PTX, in a fatbin
// (which carries no comments), unoptimised, and in machine code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>

#include "container/elf64.h"
#include "container/image.h"
#include "jit/module.h"
#include "support/file.h"

namespace klap::test {
namespace {

using jit::SiteRemark;
using testing::Contains;
using testing::HasSubstr;

jit::Program ptx_program(const std::string& name) {
  return jit::program_from_ptx(read_file(KLAP_PROGRAMS + name), name);
}

jit::Program fatbin_program() {
  const container::File file = container::open_file(KLAP_PROGRAMS "annotated.fatbin");
  return jit::program_from_fatbins(file.images.at(0).units, 90);
}

// The remarks of each parent, in text order.
std::map<std::string, std::vector<SiteRemark>> explained(const jit::Program& program, bool debug = false) {
  jit::Request request;
  request.debug_units = debug;
  request.setting = [](auto, auto&, auto&) { return std::nullopt; };
  std::map<std::string, std::vector<SiteRemark>> by_parent;
  for (SiteRemark& remark : jit::explain_module(program, request))
    by_parent[remark.parent].push_back(std::move(remark));
  return by_parent;
}

std::string verdict(const SiteRemark& remark) {
  return remark.rewritten ? remark.granularity + "/" + remark.launcher : remark.reason;
}

// "a", "a b": the verdicts of a parent's launches.
std::string verdicts(const std::vector<SiteRemark>& remarks) {
  std::string text;
  for (const SiteRemark& remark : remarks) text += (text.empty() ? "" : " ") + verdict(remark);
  return text;
}

constexpr const char* kInstantiated = "_Z12instantiatedIxEvPiT_";

class Annotated : public testing::TestWithParam<const char*> {
 protected:
  jit::Program program() const {
    return std::string_view(GetParam()) == "fatbin" ? fatbin_program() : ptx_program("annotated.ptx");
  }
};

TEST_P(Annotated, KernelsAndLaunchesGoAsTheyAsk) {
  auto of = explained(program());
  EXPECT_EQ(verdicts(of["whole_kernel"]), "multiblock/device");
  EXPECT_EQ(of["whole_kernel"].at(0).group_blocks, 8);
  EXPECT_EQ(verdicts(of["each_launch"]), "warp/device config-none");
  EXPECT_EQ(verdicts(of["two_minds"]), "grid/device grid/device");
  EXPECT_EQ(verdicts(of["two_launchers"]), "grid/device grid/device grid/device");
  EXPECT_EQ(verdicts(of["kernel_and_launch"]), "warp/device");
  EXPECT_EQ(verdicts(of["unrolled"]), "warp/device warp/device");
  EXPECT_EQ(verdicts(of[kInstantiated]), "warp/device");
  EXPECT_EQ(verdicts(of["unhinted"]), "grid/host");
}

TEST_P(Annotated, RemarksSayWhoAsked) {
  auto of = explained(program());
  EXPECT_THAT(of["whole_kernel"].at(0).notes, Contains(HasSubstr("asks for granularity multiblock")));
  EXPECT_THAT(of["whole_kernel"].at(0).notes, Contains(HasSubstr("the annotation at line ")));
  EXPECT_THAT(of["two_minds"].at(1).notes,
              Contains(HasSubstr("granularity block is ignored: a kernel's launches "
                                 "all use one strategy, and the one at line ")));
  EXPECT_THAT(of["two_launchers"].at(1).notes, Contains(HasSubstr("asks for launcher device")));
  EXPECT_THAT(of["two_launchers"].at(2).notes,
              Contains(HasSubstr("launcher host is ignored: a kernel's launches")));
  EXPECT_THAT(of["unhinted"].at(0).notes, testing::Not(Contains(HasSubstr("asks for"))));
}

TEST_P(Annotated, WhatIsWrongIsSaidOnceAndIgnored) {
  auto of = explained(program());
  const SiteRemark& wrong = of["wrong_hints"].at(0);
  EXPECT_EQ(verdict(wrong), "grid/host");
  for (const char* const said :
       {"annotation granularity(gird) at line ",
        " is ignored: granularity is none, warp, block, multiblock, grid or auto",
        "annotation launcher(device) at line ", " is ignored: launcher(host) at line ",
        "annotation pool_bytes(64M) at line ", " is ignored: it is for all launches of a kernel",
        "annotation granularity(warp) at line ", " is ignored: no launch follows it"}) {
    EXPECT_THAT(wrong.notes, Contains(HasSubstr(said)).Times(1));
  }
}

INSTANTIATE_TEST_SUITE_P(As, Annotated, testing::Values("ptx", "fatbin"),
                         [](const auto& as) { return std::string(as.param); });

TEST(AnnotatedForDebugging, HintsAreKeptByTheUnoptimisingCompiler) {
  auto of = explained(ptx_program("debug.ptx"), true);
  EXPECT_EQ(verdicts(of["whole_kernel"]), "multiblock/device");
  EXPECT_EQ(verdicts(of["each_launch"]), "order-kept config-none");
  EXPECT_EQ(verdicts(of["kernel_and_launch"]), "order-kept");
}

TEST(AnnotatedFatbin, VariantsCarryWhatTheRuntimeIsToKnow) {
  jit::Request request;
  request.setting = [](auto, auto&, auto&) { return std::nullopt; };
  const jit::RewrittenModule module = jit::rewrite_module(fatbin_program(), request);
  const auto variant = std::ranges::find(module.variants, "whole_kernel", &jit::Variant::parent);
  ASSERT_NE(variant, module.variants.end());
  EXPECT_EQ(variant->pool_bytes, uint64_t{64} << 20);
  EXPECT_EQ(variant->buffer, jit::Buffer::Malloc);
  EXPECT_EQ(variant->queues.at(0).concurrency, 16);
  const auto other = std::ranges::find(module.variants, "unhinted", &jit::Variant::parent);
  ASSERT_NE(other, module.variants.end());
  EXPECT_EQ(other->pool_bytes, 0);
  EXPECT_EQ(other->buffer, jit::Buffer::Pool);
  EXPECT_EQ(other->queues.at(0).concurrency, 0);
}

// How many instructions each kernel has, by name. One takes 16 bytes; those behind the last (NOP, opcode
// 0x918) fill up.
std::map<std::string, size_t> instructions(const std::string& name) {
  const std::string bytes = read_file(KLAP_PROGRAMS + name);
  const container::Elf64 elf(std::as_bytes(std::span(bytes)), name);
  std::map<std::string, size_t> counts;
  for (const container::ElfSection& section : elf.sections()) {
    const auto content = elf.content(section);
    if (!elf.name(section).starts_with(".text.")) continue;
    size_t& count = counts[std::string(elf.name(section))];
    for (size_t at = 0; at + 16 <= content.size(); at += 16) {
      const unsigned opcode =
          std::to_integer<unsigned>(content[at]) | (std::to_integer<unsigned>(content[at + 1]) & 0xF) << 8;
      if (opcode != 0x918) ++count;
    }
  }
  return counts;
}

// The compiler may put the others into another order.
TEST(MachineCode, HasNoInstructionForHints) {
  const auto with = instructions("annotated.cubin"), without = instructions("plain.cubin");
  ASSERT_TRUE(without.contains(".text.whole_kernel"));
  EXPECT_GT(without.at(".text.whole_kernel"), 20u);
  EXPECT_EQ(with, without);
}

}  // namespace
}  // namespace klap::test
