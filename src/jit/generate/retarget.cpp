#include "jit/generate/retarget.h"

#include <fmt/format.h>

#include <map>
#include <span>

#include "container/elf64.h"
#include "jit/generate/build.h"

namespace klap::jit {
namespace {

using CodeByFunction = std::map<std::string, std::string, std::less<>>;

CodeByFunction code_of(const std::string& cubin) {
  static constexpr std::string_view kCode = ".text.";
  CodeByFunction out;
  const container::Elf64 elf(std::as_bytes(std::span(cubin.data(), cubin.size())), "linked image");
  for (const container::ElfSection& section : elf.sections()) {
    const std::string_view name = elf.name(section);
    if (!name.starts_with(kCode)) continue;
    const auto bytes = elf.content(section);
    out.emplace(name.substr(kCode.size()),
                std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  return out;
}

class Comparison {
 public:
  Comparison(const Program& program, const Request& request, Plan& plan)
      : program_(program), request_(request), plan_(plan) {
    request_.dump = {};  // these links are a check, no stage
  }

  // Why `function` of a retargeted unit is not shown to be the program's; empty when it is.
  std::string difference(size_t unit, const ptx::Function& function) {
    const std::string& problem = assemble(unit);
    if (!problem.empty()) return problem;
    if (!same_code(unit, function.name)) return differs(unit, function.name);
    // The program's own code calls these functions, even if the variant inlines them.
    const ptx::Module& module = *plan_.units[unit]->original();
    const ptx::Function& own = *module.find_function(function.name);
    for (const ptx::Function* callee : analysis::call_closure(module, own).functions) {
      if (!same_code(unit, callee->name)) return differs(unit, callee->name);
    }
    return {};
  }

 private:
  // Links the program twice: with all units as machine code, and with one of them assembled from its PTX.
  // Returns the problem, or an empty text.
  const std::string& assemble(size_t unit) {
    const auto done = problems_.find(unit);
    if (done != problems_.end()) return done->second;
    std::string& problem = problems_[unit];
    try {
      if (native_.empty()) native_ = code_of(link_originals(program_, request_, plan_, std::nullopt));
      anew_[unit] = code_of(link_originals(program_, request_, plan_, unit));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::Toolchain) throw;
      problem = fmt::format("for sm_{} the PTX for {} is refused: {}", request_.sm,
                            plan_.units[unit]->made_for(), error.what());
    }
    return problem;
  }

  // A function that both links dropped was inlined wherever it is called.
  [[nodiscard]] bool same_code(size_t unit, const std::string& function) {
    const auto native = native_.find(function);
    const auto anew = anew_[unit].find(function);
    if (native == native_.end() || anew == anew_[unit].end()) {
      return native == native_.end() && anew == anew_[unit].end();
    }
    return native->second == anew->second;
  }

  [[nodiscard]] std::string differs(size_t unit, const std::string& function) const {
    return fmt::format(
        "{} assembled from the PTX for {} is not the machine code that the program has for sm_{}", function,
        plan_.units[unit]->made_for(), request_.sm);
  }

  const Program& program_;
  Request request_;
  Plan& plan_;
  CodeByFunction native_;
  std::map<size_t, CodeByFunction> anew_;
  std::map<size_t, std::string> problems_;
};

}  // namespace

void reject_unproven_targets(const Program& program, const Request& request, Plan& plan) {
  Comparison comparison(program, request, plan);
  const auto difference = [&](size_t unit, const ptx::Function& function) {
    const bool compare = !plan.units[unit]->made_for().empty() && !program.units[unit].cubin.empty();
    return compare ? comparison.difference(unit, function) : std::string();
  };
  std::vector<PlannedSite> kept;
  for (const auto& sites : by_parent(plan.sites)) {
    std::string why = difference(sites.front().parent_unit, sites.front().parent->function);
    for (const PlannedSite& site : sites) {
      if (why.empty()) why = difference(site.child_unit, *site.child);
      if (site.recursive_group == nullptr) continue;
      for (const analysis::GroupKernel& kernel : site.recursive_group->kernels) {
        if (why.empty()) why = difference(site.child_unit, kernel.facts->function);
      }
    }
    if (why.empty()) {
      kept.insert(kept.end(), sites.begin(), sites.end());
    } else {
      reject(plan, sites, analysis::Reason::TargetTooNew, why);
    }
  }
  plan.sites = std::move(kept);
}

}  // namespace klap::jit
