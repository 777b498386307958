// Modules that are made from the inputs of a program's link, with a device runtime that klap_jit's own linker
// refuses: Python's packages bring one of their own version.
#include "runtime/load/image_rewrite.h"

#include <algorithm>

#include "runtime/links/compiled_code.h"
#include "runtime/links/program_links.h"
#include "runtime/load/link_calls.h"
#include "support/error.h"
#include "tests/container/synthetic.h"
#include "tests/runtime/launch/fake_driver.h"

namespace klap::runtime {
namespace {

// Said before the settings are read.
struct WithoutCache {
  WithoutCache() { setenv("KLAP_CACHE_DISABLE", "1", 1); }
};

class ImageRewriteTest : WithoutCache, public FakeDriverTest {
 protected:
  // The device runtime for sm_90 in a fatbin; `change` may damage its machine code.
  template <class Change>
  static std::string device_runtime(const Change& change) {
    const ProgramLink archive{{{CodeKind::Binary, "runtime", read_file(KLAP_CUDADEVRT), ""}}, {}, ""};
    std::vector<jit::Unit> units = program_from(archive, 90).units;
    const auto runtime = std::ranges::find_if(units, &jit::Unit::is_device_runtime);
    if (runtime == units.end()) return "";
    change(runtime->cubin);
    container::SyntheticEntry entry = container::raw_entry(runtime->cubin);
    entry.kind = static_cast<uint16_t>(container::EntryKind::Cubin);
    return container::fatbin_of({entry});
  }

  // Rewrites what a link of the launching module with that runtime results in.
  ModuleRecord rewrite(const std::string& runtime) {
    const std::string ptx = read_file(KLAP_LAUNCHING_PTX);
    std::string image = container::minimal_machine_code();
    ProgramLinks& links = ProgramLinks::instance();
    links.begin(this, "");
    links.add(this, {CodeKind::Ptx, "module", ptx, ""});
    links.add(this, {CodeKind::Binary, "runtime", runtime, ""});
    EXPECT_NE(nullptr, links.complete(this, image));
    links.end(this);
    ModuleRecord record;
    ImageSource source;
    source.load_path = "test";
    source.image = image.data();
    source.readable_bytes = image.size();
    const auto rewritten = rewrite_image(source, record);
    EXPECT_NE(nullptr, rewritten);
    return record;
  }
};

// What is linked in a program without device launches is not kept.
TEST_F(ImageRewriteTest, OnlyLinksThatLaunchAreKept) {
  auto* const link = reinterpret_cast<CUlinkState>(this);
  const std::string launching = container::minimal_machine_code("its own");
  std::string quiet = launching;
  quiet.replace(quiet.find("LaunchDevice"), 12, "AnotherThing");
  for (const std::string& image : {launching, quiet}) {
    link_created(link, {});
    link_data_added(link, CU_JIT_INPUT_PTX, "ptx", 4, nullptr, {});
    link_completed(link, image.data(), image.size());
    link_about_to_end(link);
  }
  EXPECT_NE(nullptr, ProgramLinks::instance().link_of(launching));
  EXPECT_EQ(nullptr, ProgramLinks::instance().link_of(quiet));
}

// CuPy says PTX where NVRTC has given it machine code.
TEST_F(ImageRewriteTest, MachineCodeIsFoundWhateverTheProgramCallsIt) {
  auto* const link = reinterpret_cast<CUlinkState>(this);
  const std::string code = container::minimal_machine_code("compiled"),
                    image = container::minimal_machine_code("linked");
  CompiledCode::instance().keep(code, "its PTX");
  link_created(link, {});
  link_data_added(link, CU_JIT_INPUT_PTX, code.data(), code.size(), "cupy.ptx", {});
  link_completed(link, image.data(), image.size());
  link_about_to_end(link);
  const auto found = ProgramLinks::instance().link_of(image);
  ASSERT_NE(nullptr, found);
  ASSERT_EQ(1u, found->inputs.size());
  EXPECT_EQ(CodeKind::Binary, found->inputs[0].kind);
  EXPECT_EQ(code, found->inputs[0].bytes);
  EXPECT_EQ("its PTX", found->inputs[0].ptx);
}

TEST_F(ImageRewriteTest, OfALinkTakesItsDeviceRuntime) {
  const std::string runtime = device_runtime([](std::string&) {});
  ASSERT_NE("", runtime);
  const ModuleRecord record = rewrite(runtime);
  EXPECT_TRUE(std::ranges::any_of(record.remarks, &jit::SiteRemark::rewritten));
}

TEST_F(ImageRewriteTest, OfALinkTakesAnotherDeviceRuntimeIfItMust) {
  // No linker knows that version of machine code.
  const std::string runtime = device_runtime([](std::string& cubin) { cubin.at(8) = '\x7f'; });
  const ModuleRecord record = rewrite(runtime);
  EXPECT_TRUE(std::ranges::any_of(record.remarks, &jit::SiteRemark::rewritten));
}

}  // namespace
}  // namespace klap::runtime
