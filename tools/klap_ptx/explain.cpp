// klap-ptx explain tells for every launch site what the library would do and why, or why it would reject the
// site.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "analysis/facts/rejection.h"
#include "klap_ptx/command_line.h"
#include "klap_ptx/input.h"
#include "klap_ptx/kernel_names.h"
#include "klap_ptx/progress.h"
#include "runtime/remark_json.h"
#include "support/error.h"

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
    std::set<std::string> names;
    for (const jit::SiteRemark& remark : remarks)
      if (is_site(remark)) names.insert(child.empty() ? remark.parent : remark.child);
    print_warning(fmt::format("{}:{}: [[kernel]] '{}' matches no kernel that launches{} (fix: {})",
                              config.config_file.string(), table.line, table.glob, child,
                              names_near(child.empty() ? table.glob : table.child_glob, names)));
  }
}

std::string target_of(const container::FatbinEntry& entry) {
  std::string target = fmt::format("{}_{}", entry.is_ptx() ? "compute" : "sm", entry.arch);
  if (entry.arch_suffix() != 0) target += entry.arch_suffix();
  return target;
}

// Returns remarks on units that launch kernels, but hold no code that a device of the target could run. The
// pipeline leaves them out, as the driver does.
std::vector<jit::SiteRemark> units_of_other_targets(const Image& image, uint32_t sm) {
  std::vector<jit::SiteRemark> remarks;
  for (size_t i = 0; i < image.source->units.size(); ++i) {
    const container::Fatbin& fatbin = image.source->units[i];
    const jit::Unit& unit = image.program.units[i];
    if (unit.is_device_runtime || unit.launches || container::best_cubin(fatbin, sm) != nullptr ||
        container::best_ptx(fatbin, sm) != nullptr || !container::mentions_device_launch(fatbin))
      continue;
    std::set<std::string> targets;
    for (const container::FatbinEntry& entry : fatbin.entries) targets.insert(target_of(entry));
    jit::SiteRemark remark;
    remark.unit = unit.name;
    remark.reason = to_string(analysis::Reason::ChildNotFound);
    remark.detail = fmt::format(
        "the unit launches kernels but holds nothing for sm_{}, only code for {}; name its target with --sm",
        sm, fmt::join(targets, ", "));
    remarks.push_back(std::move(remark));
  }
  return remarks;
}

class Explanation {
 public:
  explicit Explanation(const ExplainOptions& options) : options_(options) {}

  int run() {
    const settings::Config config = load_policy(options_.policy);
    judge(config);
    warn_of_idle_tables(config, all_);
    const bool is_judged = all_.empty() || std::ranges::any_of(all_, &is_site);
    if (!options_.only.empty() && is_judged) require_match();
    if (options_.json) {
      print_json({{"file", options_.file}, {"sm", options_.policy.sm}, {"sites", sites_}});
    } else if (is_judged) {
      for (size_t i = 0; i < selected_.size(); ++i) print_remark(labels_[i], selected_[i], options_.verbose);
      print_summary(selected_, all_);
    }
    if (!is_judged) throw_unjudged();
    return options_.check && count_sites(selected_).is_any_left() ? kSiteLeft : 0;
  }

 private:
  void judge(const settings::Config& config) {
    const jit::Request request = make_request(config, options_.policy);
    const container::File file = open_device_code(options_.file);
    Progress progress("reading");
    for_each_image(file, options_.policy.sm, [&](const Image& image) {
      progress.at(image.label);
      if (image.kind == container::ImageKind::Ptx) require_functions(image);
      for (const jit::SiteRemark& remark : jit::explain_module(image.program, request)) add(image, remark);
      for (const jit::SiteRemark& remark : units_of_other_targets(image, options_.policy.sm))
        add(image, remark);
    });
  }

  void add(const Image& image, const jit::SiteRemark& remark) {
    if (!is_site(remark) && first_unread_.empty()) first_unread_ = unit_label(image.label, remark);
    all_.push_back(remark);
    if (!is_selected(remark)) return;
    selected_.push_back(remark);
    labels_.push_back(image.label);
    nlohmann::json site = runtime::to_json(remark);
    site["image"] = image.where;
    sites_.push_back(std::move(site));
  }

  [[nodiscard]] bool is_selected(const jit::SiteRemark& remark) const {
    if (!options_.reason.empty() && remark.reason != options_.reason) return false;
    return options_.only.empty() || name_contains(remark.parent, options_.only) ||
           name_contains(remark.child, options_.only);
  }

  void require_match() const {
    std::set<std::string> names;
    for (const jit::SiteRemark& remark : all_)
      for (const std::string& name : {remark.parent, remark.child})
        if (!name.empty()) names.insert(name);
    if (names.empty())
      throw Error(ErrorCode::Unsupported, "no kernel here launches kernels").at(options_.file);
    const auto matches = [&](const std::string& name) { return name_contains(name, options_.only); };
    if (std::ranges::any_of(names, matches)) return;
    throw Error(ErrorCode::Unsupported,
                fmt::format("no kernel that launches or is launched has '{}' in its name", options_.only))
        .at(options_.file)
        .fix(names_near(options_.only, names));
  }

  // All that is known of such units is that they launch.
  [[noreturn]] void throw_unjudged() const {
    const size_t others = all_.size() - 1;
    const std::string more =
        others == 0 ? "" : fmt::format(" ({} more unit{} like it)", others, others == 1 ? " is" : "s are");
    throw Error(ErrorCode::Unsupported,
                fmt::format("nothing could be judged: {}{}", all_.front().detail, more))
        .at(first_unread_);
  }

  const ExplainOptions& options_;
  std::vector<jit::SiteRemark> all_, selected_;
  std::vector<std::string> labels_;  // of the images of those that are selected
  std::string first_unread_;
  nlohmann::json sites_ = nlohmann::json::array();
};

}  // namespace

int explain(const ExplainOptions& options) { return Explanation(options).run(); }

}  // namespace klap::tool
