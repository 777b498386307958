// Names that say what a kernel was made from, in every form of C++ name that a kernel has.
#include "support/generated_name.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/demangle.h"

namespace klap {
namespace {

struct Form {
  const char *kernel, *shown;
};

TEST(GeneratedName, ShowsTheKernelAndWhatWasMade) {
  const std::vector<Form> forms = {
      {"_Z6parentPii", "parent[abi:klap_grid_1](int*, int)"},
      {"_ZN3foo3barEPi", "foo::bar[abi:klap_grid_1](int*)"},
      {"_ZN3foo3barIiLb0EEEvPT_N2ns1TE", "void foo::bar[abi:klap_grid_1]<int, false>(int*, ns::T)"},
      {"_Z3fooIN2ns1TELi4EEvT_S2_", "void foo[abi:klap_grid_1]<ns::T, 4>(ns::T, ns::T)"},
      {"_ZN1AILi4EE3barEPS0_", "A<4>::bar[abi:klap_grid_1](A<4>*)"},
      {"_ZN12_GLOBAL__N_15childEi", "(anonymous namespace)::child[abi:klap_grid_1](int)"},
      {"_ZN3cub16CUB_300001_SM_906kernelB4deviEv",
       "cub::CUB_300001_SM_90::kernel[abi:devi][abi:klap_grid_1]()"},
      {"_Z7descendILb0EEvN5bench10DeviceTreeEiPy",
       "void descend[abi:klap_grid_1]<false>(bench::DeviceTree, int, unsigned long long*)"}};
  for (const Form& form : forms) {
    const std::string name = generated_name(form.kernel, "grid_1");
    EXPECT_EQ(form.shown, demangle(name)) << name;
    EXPECT_EQ(form.kernel, name_made_from(name));
  }
}

TEST(GeneratedName, HasThePartAtTheEndOfOtherNames) {
  for (const std::string kernel : {"kernel", "_Z", "_Zz9", "__nv_static_4_abcd__Z5childPi", "triton_0d1d2"}) {
    EXPECT_EQ(kernel + "$klap_run_64x1x1", generated_name(kernel, "run_64x1x1"));
    EXPECT_EQ(kernel, name_made_from(kernel + "$klap_run_64x1x1"));
  }
}

TEST(GeneratedName, LeavesNamesOfThePrograms) {
  for (const char* const name : {"kernel", "_Z6parentPii", "klap_kernel", "_Z11klap_kernelPi", "B9klap_like",
                                 "_Z12B9klap_likexPi", "_Z3fooB3abcPi", "_Z3fooN1AB6klap_xE", ""})
    EXPECT_EQ("", name_made_from(name)) << name;
}

}  // namespace
}  // namespace klap
