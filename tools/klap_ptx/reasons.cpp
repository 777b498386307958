// klap-ptx reasons: the two documented lists of why a launch is left as it is, as text, as the Markdown
// tables of REASONS.md, or as JSON.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "analysis/facts/rejection.h"
#include "klap_ptx/input.h"
#include "runtime/launch_reasons.h"

namespace klap::tool {

namespace {

struct Row {
  std::string name, meaning;
};

struct List {
  const char* key;    // in JSON
  const char* title;  // for people
  std::vector<Row> rows;
};

std::array<List, 2> lists() {
  std::vector<Row> sites, launches;
#define KLAP_REASON(name, text, meaning) sites.push_back({text, meaning});
#include "analysis/facts/reasons.def"
#undef KLAP_REASON
  for (const runtime::LaunchReason& reason : runtime::launch_reasons()) {
    launches.push_back({reason.name, reason.meaning});
  }
  return {List{"sites", "Launch sites, decided when a module is loaded", std::move(sites)},
          List{"launches", "Launches of a rewritten parent, decided one by one", std::move(launches)}};
}

nlohmann::json as_json(const std::vector<Row>& rows) {
  nlohmann::json array = nlohmann::json::array();
  for (const Row& row : rows) array.push_back({{"reason", row.name}, {"meaning", row.meaning}});
  return array;
}

void print(const List& list, bool markdown) {
  if (markdown) fmt::print("| {} | Meaning |\n| --- | --- |\n", list.title);
  if (!markdown) fmt::print("{}:\n", list.title);
  for (const Row& row : list.rows) {
    if (markdown) fmt::print("| `{}` | {} |\n", row.name, row.meaning);
    if (!markdown) fmt::print("  {:38} {}\n", row.name, row.meaning);
  }
}

}  // namespace

std::vector<std::string_view> site_reasons() {
  return {
#define KLAP_REASON(name, text, meaning) text,
#include "analysis/facts/reasons.def"
#undef KLAP_REASON
  };
}

void reasons(const ReasonsOptions& options) {
  const auto all = lists();
  if (options.json) {
    print_json({{all[0].key, as_json(all[0].rows)}, {all[1].key, as_json(all[1].rows)}});
    return;
  }
  print(all[0], options.markdown);
  fmt::print("\n");
  print(all[1], options.markdown);
}

}  // namespace klap::tool
