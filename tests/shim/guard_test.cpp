// Every hook goes through the guard. What it does is tested in tests/support/boundary_test.cpp, and what it
// is good for in tests/faults; here, that no hook can be written without it.
#include <gmock/gmock.h>

#include <regex>

#include "run_program.h"
#include "shim/hooks.h"
#include "support/file.h"

namespace klap::shim_test {
namespace {

namespace fs = std::filesystem;

std::string all_sources() {
  std::string text;
  for (const fs::directory_entry& file : fs::directory_iterator(KLAP_SHIM_SOURCES)) {
    if (file.path().extension() == ".cpp") text += read_file(file.path());
  }
  return text;
}

// What stands between the braces of the function that is exported as `symbol`.
std::string body_of(const std::string& sources, const std::string& symbol) {
  const size_t head = sources.find("KLAP_EXPORT CUresult CUDAAPI " + symbol + "(");
  if (head == std::string::npos) return "";
  const size_t begin = sources.find('{', head);
  const std::string_view end = sources.at(begin + 1) == '\n' ? "\n}\n" : "}\n";  // or it is one line
  return sources.substr(begin + 1, sources.find(end, begin) - begin);
}

// The text behind the brace that closes the first one that is opened.
std::string behind_braces(const std::string& text) {
  int depth = 0;
  for (size_t at = text.find('{'); at < text.size(); ++at) {
    if (text[at] == '{') ++depth;
    if (text[at] == '}' && --depth == 0) return text.substr(at + 1);
  }
  return "";
}

// A body is the guard's call alone, with its work in front of it or in it.
bool is_guarded(std::string body) {
  static const std::regex work(R"(^\s*const auto \w+ = \[&\] \{)"),
      call(
          R"(^;?\s*return (shim::)?(in_place|in_place_or_after|launch_in_place|instantiate|launch_graph|at_node|before|around|after|allocate|allocate_in|release|release_in|unload)<)");
  if (std::regex_search(body, work)) body = behind_braces(body);
  return std::regex_search(body, call);
}

TEST(Guard, EveryHookIsACallOfIt) {
  const std::string sources = all_sources();
  size_t hooks = 0;
#define X(symbol, name, since, per_thread)                                                    \
  EXPECT_TRUE(is_guarded(body_of(sources, #symbol))) << #symbol << body_of(sources, #symbol); \
  ++hooks;
  KLAP_HOOKS(X)
#undef X
  size_t exported = 0;
  for (size_t at = 0; (at = sources.find("KLAP_EXPORT CUresult", at)) != std::string::npos; ++at) ++exported;
  EXPECT_EQ(hooks, exported) << "all that is exported stands in the table";
  EXPECT_GE(hooks, 35u);
}

TEST(Guard, ABodyThatDoesMoreIsNoCallOfIt) {
  EXPECT_TRUE(is_guarded("\n  return in_place<&Driver::f>(\"f\", [&] { return g(); }, a);\n"));
  EXPECT_FALSE(
      is_guarded("\n  if (g()) return 0;\n  return in_place<&Driver::f>(\"f\", [&] { return g(); }, a);\n"));
  EXPECT_TRUE(is_guarded("\n  return allocate<&Driver::f>(\"f\", a);\n"));
  EXPECT_FALSE(is_guarded("\n  return forward<&Driver::f>(a);\n"));
}

// The driver's own result reaches the program from every hook, also where klap_jit has no part in it.
TEST(Guard, LookUpsAreContained) {
  const std::string sources = all_sources();
  const size_t at = sources.find("void* klap_shim_lookup(void* handle");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(sources.find("contain(", at), std::string::npos);
}

}  // namespace
}  // namespace klap::shim_test
