#include "transform/text/unroller.h"

#include <fmt/format.h>

#include "analysis/graph/dataflow.h"
#include "ptx/edit.h"
#include "transform/text/made_text.h"

namespace klap::transform {

namespace {

using analysis::CopyLoop;
using ptx::Module;
using ptx::Statement;

std::string address(const CopyLoop::Place& place, uint32_t element) {
  return fmt::format("[{}+{}]", place.base, place.offset + place.step * element);
}

// The loop's elements one after another, each in registers of its own, whose names begin with `prefix`.
std::string unrolled(const Module& m, const CopyLoop& loop, const std::string& prefix) {
  const size_t width = analysis::components(m, loop.load->operands[0]).size();
  const std::string load(m.text(loop.load->modifiers)), store(m.text(loop.store->modifiers));
  std::string text = fmt::format(".reg .b{} {}<{}>;\n", loop.register_bits, prefix, width * loop.times);
  for (uint32_t element = 0; element < loop.times; ++element) {
    std::string registers;
    for (size_t i = 0; i < width; ++i)
      registers += fmt::format("{}{}{}", i == 0 ? "" : ", ", prefix, element * width + i);
    if (width > 1) registers = "{" + registers + "}";
    text += fmt::format("\tld{} {}, {};\n\tst{} {}, {};\n", load, registers, address(loop.from, element),
                        store, address(loop.to, element), registers);
  }
  return text;
}

}  // namespace

Module with_unrolled_copies(const Module& module, const std::vector<CopyLoop>& loops) {
  ptx::Edits edits(module);
  MadeText made;
  const auto replace = [&](ptx::TokenRange tokens, const Statement& stands_for, const std::string& text) {
    const uint32_t end = module.tokens[tokens.last - 1].end;
    edits.replace(tokens, made.mark(module.tokens[stands_for.tokens.first].begin, false, "") + text +
                              made.mark(end, true, ""));
  };
  for (size_t i = 0; i < loops.size(); ++i) {
    const CopyLoop& loop = loops[i];
    for (const Statement* begin : loop.beginnings) replace(begin->tokens, *begin, "");
    replace({loop.label->tokens.first, loop.branch->tokens.last}, *loop.load,
            unrolled(module, loop, fmt::format("%klap_u{}_", i)));
  }
  return made.edited(module, edits);
}

}  // namespace klap::transform
