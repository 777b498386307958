// The table of driver functions: complete, or known not to be.
#include "runtime/driver.h"

#include <gtest/gtest.h>

#include <string>

namespace klap::runtime {
namespace {

void something() {}

TEST(Driver, CompleteTableMissesNothing) {
  const Driver table = resolve_driver([](const char*) { return reinterpret_cast<void*>(&something); });
  EXPECT_EQ(nullptr, table.missing);
  EXPECT_NE(nullptr, table.launch_kernel);
}

// A driver before 12.0 has neither libraries nor ids; what it has must be there, for the hooks that only
// forward.
TEST(Driver, OldDriverIsRecognised) {
  const Driver table = resolve_driver([](const char* symbol) {
    const std::string name = symbol;
    const bool recent =
        name.rfind("cuLibrary", 0) == 0 || name.rfind("cuKernel", 0) == 0 || name == "cuCtxGetId";
    return recent ? nullptr : reinterpret_cast<void*>(&something);
  });
  EXPECT_STREQ("cuLibraryLoadData", table.missing);
  EXPECT_NE(nullptr, table.launch_kernel);
  EXPECT_EQ(nullptr, table.library_load_data);
}

}  // namespace
}  // namespace klap::runtime
