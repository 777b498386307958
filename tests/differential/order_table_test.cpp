// The table order_cases.md: what becomes of each relation between two launches with each conflicting access,
// at the orderings that keep CUDA's promise. The cells are the cases of order_cells.h, which OrderCells runs.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "case.h"
#include "jit/module.h"
#include "support/file.h"
#include "tests/settings/given.h"

namespace klap::differential {
namespace {

constexpr std::array kOrderings = {jit::Ordering::Auto, jit::Ordering::Stream};

// "proven", "tolerated" or "kept", with what holds where the conditions of the first do not; "left: REASON".
std::string verdict_of(const jit::SiteRemark& remark) {
  if (!remark.rewritten) return "left: " + remark.reason;
  if (remark.detail.find("executed without order") != std::string::npos) return "executed, proven";
  if (remark.detail.find("executed in the order of its stream") != std::string::npos) return "executed";
  std::string verdict = "no order asked for", otherwise;
  for (const std::string& note : remark.notes) {
    for (const char* order : {"proven", "tolerated", "kept"}) {
      if (note.starts_with(fmt::format("order {}", order))) verdict = order;
    }
    if (note.starts_with("where that does not hold")) otherwise = ", else kept";
  }
  return verdict + otherwise;
}

using Verdicts = std::map<std::string, std::set<std::string>>;  // by parent

Verdicts verdicts_in(const std::string& file, const std::map<std::string, std::string>& settings,
                     jit::Ordering ordering) {
  jit::Request request;
  test::GivenValues values = {{"ordering", to_string(ordering)}};
  const auto threshold = settings.find("KLAP_THRESHOLD");
  if (threshold != settings.end()) values["threshold"] = threshold->second;
  request.setting = test::given(values);
  Verdicts verdicts;
  const std::string path = (std::filesystem::path(KLAP_CASE_PTX) / file).string();
  for (const jit::SiteRemark& remark : explain_module(jit::program_from_ptx(read_file(path), file), request))
    verdicts[remark.parent].insert(verdict_of(remark));
  return verdicts;
}

std::string table() {
  std::string text =
      "# Order of a block's launches: the cells\n\nRelations between the launches of a block's threads into "
      "its NULL stream against accesses in which their children conflict (`order_cells.h`, "
      "`cases/order_*.cu`). Columns: what becomes of the order at `ordering = \"auto\"`, the default, and "
      "\"stream\". *proven*: the children cannot conflict; *tolerated*: blocks of the parent have the same "
      "conflict; *kept*: one after another. *executed*: by the executor, in the order of streams, "
      "unless that is proven not to matter; *left*: the program's own launches; *else kept*: where the "
      "conditions for the first do not hold of a launch. "
      "Every case equals the CPU reference, which runs the "
      "launches in CUDA's order, natively and preloaded at all granularities, on the emulated GPU with weak "
      "memory under 20 seeds (`OrderCells`) and on a GPU. Made from the cases by `order_table_test.cpp`.\n";
  std::map<std::string, std::vector<const Case*>> files;
  for (const Case& c : all_cases()) {
    if (c.name.starts_with("order_")) files[c.file].push_back(&c);
  }
  for (auto& [file, cases] : files) {
    std::ranges::stable_sort(cases, {}, [](const Case* c) { return std::tie(c->relation, c->access); });
    text += fmt::format(
        "\n## `{}`\n\n| Relation | Access | auto | stream | Case |\n"
        "| --- | --- | --- | --- | --- |\n",
        std::filesystem::path(file).stem().string());
    std::vector<Verdicts> verdicts;
    for (const jit::Ordering ordering : kOrderings)
      verdicts.push_back(verdicts_in(file, cases.front()->settings, ordering));
    for (const Case* c : cases) {
      text += fmt::format("| {} | {} |", c->relation, c->access);
      for (Verdicts& of_ordering : verdicts)
        text += fmt::format(" {} |", fmt::join(of_ordering[c->name + "_parent"], "; "));
      text += fmt::format(" `{}` |\n", c->name);
    }
  }
  return text;
}

TEST(OrderTable, IsWhatTheCasesSay) {
  const std::string is = table();
  if (std::getenv("KLAP_REBASE") != nullptr) write_file(KLAP_ORDER_TABLE, is);
  EXPECT_EQ(read_file(KLAP_ORDER_TABLE), is) << "KLAP_REBASE=1 writes " << KLAP_ORDER_TABLE;
}

}  // namespace
}  // namespace klap::differential
