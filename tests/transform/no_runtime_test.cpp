// Rewritten code without the device runtime: nothing of it is left, whatever a unit calls.
#include "transform/runtime_calls/no_runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analysis/launches/idioms.h"
#include "jit/module.h"
#include "support/file.h"

namespace klap::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

ptx::Module without_runtime(const std::string& text) {
  return ptx::parse(transform::without_device_runtime(ptx::parse(text, "unit")), "without");
}

std::string body_of(const ptx::Module& m, const std::string& name) {
  const ptx::Function* const f = m.find_function(name);
  return f == nullptr || !f->is_definition ? "" : std::string(m.text(f->body.tokens));
}

TEST(NoRuntime, NoUnitDeclaresAnyOfIt) {
  size_t units = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KLAP_IDIOM_DIR)) {
    if (entry.path().extension() != ".ptx") continue;
    ++units;
    const ptx::Module m = without_runtime(read_file(entry.path()));
    for (const ptx::Function& f : m.functions) {
      EXPECT_FALSE(f.linkage == ptx::Linkage::Extern && analysis::idioms().is_device_runtime(f.name))
          << entry.path() << ": " << f.name;
    }
  }
  EXPECT_GE(units, 12u);
}

TEST(NoRuntime, LaunchesEndTheKernelAndThereIsNoLastError) {
  std::string text = read_file(std::string(KLAP_IDIOM_DIR) + "/cdp2.ptx");
  text.insert(text.find(".visible .entry"),
              ".extern .func (.param .b32 error) __cudaCDP2GetLastError()\n;\n"
              ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values)\n;\n");
  const ptx::Module m = without_runtime(text);
  for (const char* const name : {"__klap_no_runtime_0", "__klap_no_runtime_1"})
    EXPECT_THAT(body_of(m, name), HasSubstr("trap;")) << name;
  EXPECT_THAT(body_of(m, "__klap_no_runtime_2"), AllOf(HasSubstr("[error], 0;"), Not(HasSubstr("trap;"))));
  EXPECT_NE(nullptr, m.find_function("vprintf")) << "which is not of the device runtime";
}

TEST(NoRuntime, LinkedImageHasNothingOfIt) {
  const jit::Program program =
      jit::program_from_ptx(read_file(std::string(KLAP_IDIOM_DIR) + "/cdp2.ptx"), "unit");
  jit::Request request;
  EXPECT_THAT(jit::rewrite_module(program, request).cubin, HasSubstr("cudaCDP2"));
  request.device_runtime = false;
  const jit::RewrittenModule without = jit::rewrite_module(program, request);
  EXPECT_FALSE(without.from_memory_cache);
  EXPECT_THAT(without.cubin, Not(HasSubstr("cudaCDP2")));
  EXPECT_THAT(without.cubin, HasSubstr("_Z6parentB18klap_grid_"));
  EXPECT_THAT(without.remarks.at(0).notes, testing::Contains(HasSubstr("without the device runtime")));
}

}  // namespace
}  // namespace klap::test
