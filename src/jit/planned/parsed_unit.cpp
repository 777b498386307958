#include "jit/planned/parsed_unit.h"

#include <algorithm>
#include <iterator>

#include "analysis/graph/module_constants.h"
#include "analysis/inline/asynchronous_copies.h"
#include "analysis/inline/copy_loops.h"
#include "analysis/inline/early_requests.h"
#include "analysis/inline/sunk_computations.h"
#include "analysis/launches/calls.h"
#include "analysis/launches/copy_calls.h"
#include "ptx/dialect.h"
#include "ptx/edit.h"
#include "transform/text/inliner.h"
#include "transform/text/lifted_computations.h"
#include "transform/text/moved_requests.h"
#include "transform/text/synchronous_copies.h"
#include "transform/text/unroller.h"

namespace klap::jit {

using analysis::LaunchNames;

namespace {

std::string text_of(const ptx::Module& module, const ptx::Edits& edits) {
  return module.source.substr(0, module.tokens[0].begin) +  // lines keep their numbers
         edits.apply({0, static_cast<uint32_t>(module.tokens.size()) - 1});
}

// The module's text with another target.
std::string with_target(const ptx::Module& module, const ptx::Target& target) {
  ptx::Edits edits(module);
  for (const ptx::Item& item : module.items) {
    if (item.kind != ptx::ItemKind::Target) continue;
    edits.replace({item.tokens.first + 1, item.tokens.first + 2}, to_string(target));
  }
  return text_of(module, edits);
}

// Returns all that `find` finds in those functions of a unit that may name one of these.
template <class Find>
auto found_in_launching(const ptx::Module& unit, const LaunchNames& names, Find find) {
  decltype(find(unit, unit.functions.front())) found;
  for (const ptx::Function& f : unit.functions) {
    if (f.is_definition && analysis::may_launch(unit, f, names))
      std::ranges::copy(find(unit, f), std::back_inserter(found));
  }
  return found;
}

}  // namespace

const ptx::Module* ParsedUnit::original() {
  if (original_ || unit_.ptx.empty()) return original_ ? &*original_ : nullptr;
  original_ = ptx::parse(unit_.ptx, unit_.name);
  const auto target = ptx::parse_target(original_->target);
  if (target && !ptx::runs_on(*target, sm_)) {
    made_for_ = original_->target;
    original_ = ptx::parse(with_target(*original_, {std::min(target->arch, sm_), '\0'}), unit_.name);
  }
  original_->disputed = std::move(disputed_);
  return &*original_;
}

const ptx::Module& ParsedUnit::plain() {
  const ptx::Module& unit = *original();
  if (unit_.is_device_runtime || unit.source.find("ldu") == std::string::npos) return unit;
  ptx::Edits edits(unit);
  for (const ptx::Function& f : unit.functions) {
    ptx::for_each_statement(f.body, [&](const ptx::Statement& s) {
      if (s.kind == ptx::StatementKind::Instruction && unit.is(s.head, "ldu"))
        edits.replace({s.head, s.head + 1}, "ld");
    });
  }
  if (edits.empty()) return unit;
  plain_ = ptx::parse(text_of(unit, edits), unit_.name);
  plain_->disputed = unit.disputed;
  return *plain_;
}

analysis::KernelNames ParsedUnit::launched(const ptx::Module& unit) const {
  if (launched_) return launched_();
  analysis::KernelNames own;
  analysis::add_launched(unit, own);
  return own;
}

const ptx::Module& ParsedUnit::synchronous() {
  const ptx::Module& unit = plain();
  if (unit_.is_device_runtime || unit.source.find("cp.async") == std::string::npos) return unit;
  const auto copies = analysis::find_asynchronous_copies(unit, launched(unit));
  if (copies.empty()) return unit;
  synchronous_ = transform::with_synchronous_copies(unit, copies);
  return *synchronous_;
}

const ptx::Module& ParsedUnit::lifted() {
  const ptx::Module& unit = synchronous();
  if (unit_.is_device_runtime || !unit_.launches) return unit;
  LaunchNames names = analysis::launch_names(unit);
  names.merge(analysis::copy_names(unit));
  const auto sunk = found_in_launching(unit, names, analysis::find_sunk_computations);
  if (sunk.empty()) return unit;
  lifted_ = transform::with_lifted_computations(unit, sunk);
  return *lifted_;
}

const ptx::Module& ParsedUnit::unrolled() {
  const ptx::Module& unit = lifted();
  if (unit_.is_device_runtime) return unit;
  std::optional<LaunchNames> names;  // few units have such loops
  std::vector<analysis::CopyLoop> loops;
  for (const ptx::Function& f : unit.functions) {
    if (!f.is_definition) continue;
    std::vector<analysis::CopyLoop> found = analysis::find_copy_loops(unit, f);
    if (found.empty()) continue;
    if (!names) names = analysis::launch_names(unit);
    if (analysis::may_launch(unit, f, *names)) std::ranges::move(found, std::back_inserter(loops));
  }
  if (loops.empty()) return unit;
  unrolled_ = transform::with_unrolled_copies(unit, loops);
  return *unrolled_;
}

const ptx::Module& ParsedUnit::inlined() {
  const ptx::Module& unit = unrolled();
  if (unit_.is_device_runtime || !analysis::may_inline(unit)) return unit;
  const auto kernels = analysis::kernels_to_inline(unit, launched(unit));
  if (kernels.empty()) return unit;
  inlined_ = transform::with_inlined_calls(unit, kernels);
  return *inlined_;
}

const ptx::Module& ParsedUnit::moved() {
  const ptx::Module& unit = inlined();
  if (unit_.is_device_runtime || !unit_.launches) return unit;
  const auto early = found_in_launching(unit, analysis::launch_names(unit), analysis::find_early_requests);
  if (early.empty()) return unit;
  moved_ = transform::with_moved_requests(unit, early);
  return *moved_;
}

const ptx::Module* ParsedUnit::module() {
  if (module_ == nullptr && original() != nullptr) module_ = &moved();
  return module_;
}

const ptx::SourceLines& ParsedUnit::source_lines() {
  if (!source_lines_) source_lines_.emplace(*original());
  return *source_lines_;
}

bool ParsedUnit::is_expanded(const ptx::Function& function) {
  if (!inlined_ || function.kind == ptx::FunctionKind::Entry) return false;
  if (!in_use_) in_use_ = analysis::functions_in_use(*module());
  return !in_use_->contains(function.name);
}

const analysis::KernelNames& LaunchedKernels::names() {
  if (names_) return *names_;
  names_.emplace();
  for (ParsedUnit* unit : units_) {
    if (unit->original() != nullptr) analysis::add_launched(*unit->original(), *names_);
  }
  return *names_;
}

ParsedUnit::Names disputed_in(const Program& program) {
  std::vector<std::string_view> texts;
  bool all_read = true;
  for (const Unit& unit : program.units) {
    if (unit.is_device_runtime) continue;
    texts.emplace_back(unit.ptx);
    all_read = all_read && !unit.ptx.empty();
  }
  return texts.size() < 2 ? ParsedUnit::Names{} : analysis::disputed_constants(texts, all_read);
}

}  // namespace klap::jit
