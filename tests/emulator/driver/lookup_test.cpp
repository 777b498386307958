// Every function of the headers is there, under every name and version by which it can be asked for.
#include <dlfcn.h>

#include <regex>
#include <set>

#include "driver_fixture.h"
#include "support/file.h"

namespace klap::emulator::driver_test {
namespace {

std::vector<std::smatch> all_matches(const std::string& text, const std::regex& pattern) {
  return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
}

std::string header(const std::string& name) { return read_file(std::string(KLAP_CUDA_INCLUDE) + "/" + name); }

void* exported(const std::string& symbol) {
  void* const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return dlsym(library, symbol.c_str());
}

TEST(LookupTest, ExportsAllOfTheHeader) {
  const std::string text = header("cuda.h");
  std::set<std::string> names;
  for (const auto& match : all_matches(text, std::regex(R"(CUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\()"))) {
    names.insert(match[1]);
  }
  for (const auto& match : all_matches(text, std::regex(R"(#\s*define\s+cu[A-Z]\w+\s+(cu[A-Z]\w+_v\d))"))) {
    names.insert(match[1]);
  }
  EXPECT_GT(names.size(), 400U);
  for (const std::string& name : names) EXPECT_NE(nullptr, exported(name)) << name;
}

TEST(LookupTest, FindsEveryVersion) {
  const std::string text = header("cudaTypedefs.h");
  const auto matches = all_matches(text, std::regex(R"(\*PFN_(cu[A-Z]\w*?)_v(\d+)(_pt[ds][sz])?\))"));
  EXPECT_GT(matches.size(), 500U);
  for (const auto& match : matches) {
    const std::string name = match[1];
    const bool per_thread = match[3].matched;
    void* function = nullptr;
    CUdriverProcAddressQueryResult status{};
    const CUresult result = cuGetProcAddress(
        name.c_str(), &function, std::stoi(match[2]),
        per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM,
        &status);
    EXPECT_RESULT(CUDA_SUCCESS, result) << match[0];
    EXPECT_EQ(CU_GET_PROC_ADDRESS_SUCCESS, status);
    Dl_info info{};
    ASSERT_NE(0, dladdr(function, &info)) << match[0];
    const std::string symbol = info.dli_sname;
    EXPECT_TRUE(symbol.starts_with(name)) << symbol;
    EXPECT_EQ(per_thread, symbol.ends_with(match[3].str()) && per_thread) << symbol;
  }
}

std::string symbol_for(const char* name, int version, cuuint64_t flags = 0) {
  void* function = nullptr;
  Dl_info info{};
  if (cuGetProcAddress(name, &function, version, flags, nullptr) != CUDA_SUCCESS) return "none";
  return dladdr(function, &info) != 0 ? info.dli_sname : "unknown";
}

TEST(LookupTest, GivesNothingNewerThanAskedFor) {
  EXPECT_EQ("cuStreamDestroy", symbol_for("cuStreamDestroy", 3020));
  EXPECT_EQ("cuStreamDestroy_v2", symbol_for("cuStreamDestroy", 13000));
  EXPECT_EQ("cuGetProcAddress", symbol_for("cuGetProcAddress", 11040));
  EXPECT_EQ("cuGetProcAddress_v2", symbol_for("cuGetProcAddress", 12000));
  EXPECT_EQ("cuCtxCreate_v2", symbol_for("cuCtxCreate", 11030));
  EXPECT_EQ("cuCtxCreate_v3", symbol_for("cuCtxCreate", 12000));
  EXPECT_EQ("cuCtxCreate_v4", symbol_for("cuCtxCreate", 12050));
  EXPECT_EQ("cuGraphInstantiate_v2", symbol_for("cuGraphInstantiate", 11080));
  EXPECT_EQ("cuGraphInstantiateWithFlags", symbol_for("cuGraphInstantiate", 12000));
  EXPECT_EQ("cuMemcpy_ptds", symbol_for("cuMemcpy", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
  EXPECT_EQ("cuMemcpy", symbol_for("cuMemcpy", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM));
  EXPECT_EQ("cuMemAlloc_v2", symbol_for("cuMemAlloc_v2", 13000));
  CUdriverProcAddressQueryResult status{};
  void* function = &status;
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuLibraryLoadData", &function, 11080, 0, &status));
  EXPECT_EQ(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, status);
  EXPECT_EQ(nullptr, function);
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND, cuGetProcAddress("cuNothing", &function, 13000, 0, &status));
  EXPECT_EQ(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, status);
}

TEST(LookupTest, HasNoTablesOfInternalFunctions) {
  const CUuuid any{};
  const void* table = &any;
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND, cuGetExportTable(&table, &any));
  EXPECT_EQ(nullptr, table);
}

}  // namespace
}  // namespace klap::emulator::driver_test
