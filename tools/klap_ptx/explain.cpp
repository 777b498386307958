// klap-ptx explain tells for every launch site what the library would do and why, or why it would reject the
// site.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "klap_ptx/input.h"
#include "runtime/stats.h"

namespace klap::tool {

namespace {

// A table that matches nothing is most often a glob that was meant for part of a name.
void warn_of_idle_tables(const settings::Config& config, const std::vector<jit::SiteRemark>& remarks) {
  for (const settings::KernelTable& table : config.kernels) {
    const auto matches = [&](const jit::SiteRemark& remark) {
      return table.matches(remark.parent, &remark.child);
    };
    if (std::ranges::any_of(remarks, matches)) continue;
    const std::string child =
        table.child_glob.empty() ? "" : fmt::format(" a child that '{}' matches", table.child_glob);
    fmt::print(stderr, "{}: warning: {}:{}: [[kernel]] '{}' matches no kernel that launches{}\n",
               program_name(), config.config_file.string(), table.line, table.glob, child);
  }
}

}  // namespace

void explain(const ExplainOptions& options) {
  const settings::Config config = load_policy(options.policy);
  const jit::Request request = make_request(config, options.policy);
  const container::File file = open_device_code(options.file);
  std::vector<jit::SiteRemark> all;
  nlohmann::json sites = nlohmann::json::array();
  for_each_image(file, options.policy.sm, [&](const Image& image) {
    for (const jit::SiteRemark& remark : jit::explain_module(image.program, request)) {
      all.push_back(remark);
      nlohmann::json site = runtime::to_json(remark);
      site["image"] = image.where;
      sites.push_back(std::move(site));
      if (!options.json) print_remark(image.label, remark);
    }
  });
  warn_of_idle_tables(config, all);
  if (options.json) {
    print_json({{"file", options.file}, {"sm", options.policy.sm}, {"sites", std::move(sites)}});
  } else {
    print_summary(all);
  }
}

}  // namespace klap::tool
