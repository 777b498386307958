#include "jit/plan/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "jit/strategy/promotion_plan.h"
#include "jit/strategy/strategy_of.h"
#include "ptx/argument_words.h"
#include "support/demangle.h"
#include "support/json.h"
#include "support/signature.h"

namespace klap::jit {
namespace {

using analysis::FunctionFacts;
using analysis::Site;

const char* to_string(ptx::Linkage linkage) {
  switch (linkage) {
    case ptx::Linkage::Internal:
      return "internal";
    case ptx::Linkage::Visible:
      return "visible";
    case ptx::Linkage::Weak:
      return "weak";
    case ptx::Linkage::Extern:
      return "extern";
    case ptx::Linkage::Common:
      return "common";
  }
  return "";
}

std::string three(const std::array<std::string, 3>& operands) {
  return fmt::format("{}, {}, {}", operands[0], operands[1], operands[2]);
}

// "NULL", "tail launch" for a single literal stream; what it can be otherwise.
std::string stream_text(const Site& site) {
  if (site.streams.size() != 1) return site.streams.empty() ? site.stream : analysis::print(site.streams);
  switch (site.streams[0].kind) {
    case analysis::StreamClass::Null:
      return "NULL";
    case analysis::StreamClass::PerThread:
      return "per-thread";
    case analysis::StreamClass::FireAndForget:
      return "fire-and-forget";
    case analysis::StreamClass::TailLaunch:
      return "tail launch";
    default:
      return site.streams[0].text;
  }
}

// "immediate 5", "argument 2 of parent (int)", "register %rd3".
std::string source_text(const FunctionFacts& facts, const std::string& operand) {
  if (const auto value = facts.data.constant(operand)) return fmt::format("immediate {}", *value);
  const auto& writers = facts.data.definitions(operand);
  if (writers.size() == 1) {
    const ptx::Statement& s = *facts.flow.instructions()[writers[0]].statement;
    if (facts.module.is(s.head, "ld") && facts.module.has_modifier(s, ".param") && s.operands.size() == 2) {
      const auto address = analysis::parse_address(facts.module, s.operands[1]);
      for (size_t i = 0; address && i < facts.function.parameters.size(); ++i) {
        const ptx::Parameter& p = facts.function.parameters[i];
        if (p.name == address->base) return ptx::argument_words(facts.function, p.offset, p.bytes);
      }
    }
  }
  return "register " + operand;
}

// How many statements of each kind a body has.
struct Counts {
  size_t instructions = 0, labels = 0, directives = 0, scopes = 0;
};
Counts count(const ptx::Statement& body) {
  Counts counts;
  ptx::for_each_statement(body, [&](const ptx::Statement& s) {
    switch (s.kind) {
      case ptx::StatementKind::Instruction:
        ++counts.instructions;
        return;
      case ptx::StatementKind::Label:
        ++counts.labels;
        return;
      case ptx::StatementKind::Directive:
        ++counts.directives;
        return;
      case ptx::StatementKind::Block:
        ++counts.scopes;
        return;
    }
  });
  return counts;
}

std::string describe(const ptx::Module& m, const ptx::Function& f) {
  std::string text = fmt::format("line {}: {} {} {}{}\n", m.line(f.tokens.first), to_string(f.linkage),
                                 f.kind == ptx::FunctionKind::Entry ? "kernel" : "function",
                                 both_names(f.name), f.is_definition ? "" : ", declared only");
  for (const ptx::Parameter& p : f.parameters) {
    text +=
        fmt::format("  parameter {} at {}, {} bytes, aligned to {}\n", p.name, p.offset, p.bytes, p.align);
  }
  if (!f.attributes.empty()) text += fmt::format("  {}\n", m.compact(f.attributes));
  if (!f.is_definition) return text;
  const Counts counts = count(f.body);
  return text + fmt::format("  {} instructions, {} labels, {} directives, {} scopes\n", counts.instructions,
                            counts.labels, counts.directives, counts.scopes);
}

// "rewritten: granularity grid, launched by the host, flattened", or why it is left.
std::string verdict_text(const SiteRemark& remark) {
  if (!remark.rewritten)
    return fmt::format("left: {}", remark.detail.empty() ? remark.reason : remark.detail);
  if (remark.granularity == kPromotion) return fmt::format("rewritten: promoted, {}", remark.brief);
  return fmt::format("rewritten: granularity {}, launched by the {}{}{}", remark.granularity, remark.launcher,
                     remark.brief.empty() ? "" : ", ", remark.brief);
}

std::string facts_text(const SiteRemark& remark) {
  std::vector<std::string> texts;
  for (const auto& [key, value] : facts_of(remark)) {
    const bool is_word = !value.empty() && value.find_first_of(" \"") == std::string::npos;
    texts.push_back(is_word ? fmt::format("{}={}", key, value)
                            : fmt::format("{}={}", key, Json(value).text()));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

}  // namespace

SiteInfo site_info(const FunctionFacts& facts, const Site& site) {
  SiteInfo info;
  info.parent = facts.function.name;
  info.child = site.callee;
  info.idiom = analysis::form_name(site);
  info.line = site.position.line;
  info.column = site.position.column;
  info.grid = three(site.grid);
  info.block = three(site.block);
  info.shared_bytes = site.shared;
  info.stream = stream_text(site);
  const uint32_t at =
      site.get_call == nullptr ? analysis::ControlFlow::npos : facts.flow.index_of(site.get_call);
  info.in_loop = at != analysis::ControlFlow::npos && facts.flow.in_loop(at);
  for (const analysis::Argument& argument : site.arguments) {
    info.arguments.push_back({argument.offset, argument.bytes, source_text(facts, argument.source)});
  }
  return info;
}

std::string describe(const SiteInfo& site) {
  const std::string child = site.child.empty() ? "a kernel held in a register" : both_names(site.child);
  std::string text = fmt::format("launch at line {}:{}{}: {} from {}\n", site.line, site.column,
                                 site.in_loop ? ", in a loop" : "", child, both_names(site.parent));
  text += fmt::format("  idiom   {}\n  grid    {}\n  block   {}\n  shared  {}\n  stream  {}\n", site.idiom,
                      site.grid, site.block, site.shared_bytes, site.stream);
  for (const ArgumentInfo& argument : site.arguments) {
    text += fmt::format("  argument at {}, {} bytes: {}\n", argument.offset, argument.bytes, argument.source);
  }
  return text;
}

std::string place_of(const SiteRemark& remark, const std::string& ptx_file) {
  const ptx::SourcePlace& source = remark.source;
  return source.is_known() ? fmt::format("{}:{}:{}", source.file, source.line, source.column)
                           : fmt::format("{}:{}:{}", ptx_file, remark.line, remark.column);
}

std::vector<Fact> facts_of(const SiteRemark& remark) {
  std::vector<Fact> facts;
  if (remark.rewritten) {
    facts = {{"granularity", remark.granularity}, {"launcher", remark.launcher}};
    if (remark.group_blocks != 0) facts.push_back({"group_blocks", fmt::format("{}", remark.group_blocks)});
  } else {
    facts.push_back({"reason", remark.reason});
  }
  facts.insert(facts.end(), remark.facts.begin(), remark.facts.end());
  facts.push_back({"parent", remark.parent});
  if (!remark.child.empty()) facts.push_back({"child", remark.child});
  facts.push_back({"unit", remark.unit});
  facts.push_back({"ptx", fmt::format("{}:{}", remark.line, remark.column)});
  return facts;
}

std::string describe(const SiteRemark& remark, const std::string& ptx_file, Verbosity verbosity) {
  // For code that cannot be read, all that is known is that it launches.
  if (remark.parent.empty())
    return fmt::format("{}: remark: its launches are left: {} [-Rklap={}]\n", ptx_file, remark.detail,
                       remark.reason);
  const std::string place = place_of(remark, ptx_file);
  const std::string child = remark.child.empty() ? "an unknown kernel" : signature_of(remark.child);
  std::string text = fmt::format("{}: remark: launch of {} from {} {} [-Rklap={}]\n", place, child,
                                 signature_of(remark.parent), verdict_text(remark),
                                 remark.rewritten ? remark.granularity : remark.reason);
  for (const std::string& note : remark.notes) text += fmt::format("{}: note: {}\n", place, note);
  if (verbosity == Verbosity::Facts) text += fmt::format("{}: note: {}\n", place, facts_text(remark));
  return text;
}

std::string describe(const PlannedSite& site) {
  return fmt::format("{}, unit {}: launches {}, unit {}\n", both_names(site.parent->function.name),
                     site.parent_unit, both_names(site.child->name), site.child_unit) +
         strategy_of(site).plan_text(site);
}

std::string describe(const ptx::Module& module) {
  std::string text = fmt::format("version {}, target {}{}, {} tokens\n", module.version, module.target,
                                 module.debug ? ", debug" : "", module.tokens.size());
  for (const ptx::Item& item : module.items) {
    if (item.kind == ptx::ItemKind::Function) {
      text += describe(module, module.functions[item.index]);
    } else if (item.kind == ptx::ItemKind::Variable) {
      const ptx::Variable& v = module.variables[item.index];
      text += fmt::format("line {}: {} variable {}\n", module.line(item.tokens.first), to_string(v.linkage),
                          module.compact(v.declaration));
    } else if (item.kind == ptx::ItemKind::Other) {
      const ptx::TokenRange head = {item.tokens.first, std::min(item.tokens.first + 3, item.tokens.last)};
      text += fmt::format("line {}: {}\n", module.line(item.tokens.first), module.compact(head));
    }
  }
  return text;
}

}  // namespace klap::jit
