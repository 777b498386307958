#include "transform/promoted_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "ptx-patterns/templates/promote.h"
#include "ptx/tree.h"
#include "transform/parts.h"

namespace klap::transform {
namespace {

constexpr char kBlock[] = "%klap_block";  // address of the block's state
constexpr char kKeptVariable[] = "klap_kept_of_links";
constexpr char kBeginLabel[] = "$klap_begin";
constexpr char kAllBegunLabel[] = "$klap_all_begun";
constexpr char kRestLabel[] = "$klap_rest";
constexpr char kAllDoneLabel[] = "$klap_all_done";

analysis::Batching batching_of(const PromotedParts& parts) {
  analysis::BatchingVerdict verdict = analysis::judge_batching(parts.kernel, parts.chain);
  if (!verdict.batching)
    throw Error(ErrorCode::Internal, "links that cannot be batched: " + verdict.objection);
  return *std::move(verdict.batching);
}

}  // namespace

BatchText::BatchText(const PromotedParts& parts, const PromotedShape& shape, std::string prefix,
                     std::string link)
    : shape_(shape), link_(std::move(link)), batching_(batching_of(parts)) {
  for (const analysis::VirtualRegister& reg : batching_.kept) {
    const uint32_t bytes = reg.is_predicate() ? 4 : ptx::type_bytes(reg.type);
    const uint32_t at = round_up(kept_bytes_, bytes);
    kept_.push_back({part_operand(parts, std::string(reg.name), prefix), at, bytes, reg.is_predicate()});
    kept_bytes_ = at + bytes;
  }
  kept_bytes_ = std::max(8u, round_up(kept_bytes_, 8));
}

std::string BatchText::begin() const {
  return fmt::format(
             "\t.reg .b32 {0}, %klap_turn, %klap_links;\n\t.reg .b64 %klap_kept;\n\t.reg .pred %klap_more;\n"
             "\t.local .align 8 .b8 {1}[{2}];\n\tmov.b32 {0}, {3};\n"
             "\tld.shared.u32 %klap_links, [{0}+{4}];\n",
             kBlock, kKeptVariable, shape_.batch * kept_bytes_, link_, offsetof(KlapLink, exists)) +
         first_link() + fmt::format("\t{}:\n", kBeginLabel);
}

std::string BatchText::at_boundary(const std::string& store_values, const std::string& combine) const {
  return "{\n" + store_values + "\t}\n" + keep() + next_link(kAllBegunLabel, kBeginLabel) +
         fmt::format("\t{}:\n\tmov.b32 {}, {};\n\t{}\n", kAllBegunLabel, link_, kBlock, combine) +
         first_link() + fmt::format("\t{}:\n", kRestLabel) + restore();
}

std::string BatchText::at_end() const {
  return next_link(kAllDoneLabel, kRestLabel) +
         fmt::format("\t{}:\n\tmov.b32 {}, {};\n", kAllDoneLabel, link_, kBlock);
}

std::string BatchText::first_link() const {
  return fmt::format("\tmov.u32 %klap_turn, 0;\n\tmov.u64 %klap_kept, {};\n\tadd.u32 {}, {}, {};\n",
                     kKeptVariable, link_, kBlock, KLAP_PARTS_AT(shape_.area_bytes, shape_.slot_words()));
}

// To `next` with the block's next link, or where there is none, to `none`. The threads come together between
// two links: these use the same shared memory.
std::string BatchText::next_link(std::string_view none, std::string_view next) const {
  return fmt::format(
      "\tadd.u32 %klap_turn, %klap_turn, 1;\n\tsetp.lt.u32 %klap_more, %klap_turn, %klap_links;\n"
      "\t@!%klap_more bra {0};\n\tbar.sync 0;\n\tadd.u32 {2}, {2}, {3};\n"
      "\tadd.u64 %klap_kept, %klap_kept, {4};\n\tbra {1};\n",
      none, next, link_, KLAP_PART_BYTES(shape_.area_bytes), kept_bytes_);
}

std::string BatchText::keep() const {
  std::string text = "\t{\n\t.reg .b32 %klap_word;\n";
  for (const Kept& reg : kept_) {
    if (reg.is_predicate) text += fmt::format("\tselp.b32 %klap_word, 1, 0, {};\n", reg.name);
    text += fmt::format("\tst.local.b{} [%klap_kept+{}], {};\n", 8 * reg.bytes, reg.at,
                        reg.is_predicate ? "%klap_word" : reg.name);
  }
  return text + "\t}\n";
}

std::string BatchText::restore() const {
  std::string text = "\t{\n\t.reg .b32 %klap_word;\n";
  for (const Kept& reg : kept_) {
    text += fmt::format("\tld.local.b{} {}, [%klap_kept+{}];\n", 8 * reg.bytes,
                        reg.is_predicate ? "%klap_word" : reg.name, reg.at);
    if (reg.is_predicate) text += fmt::format("\tsetp.ne.b32 {}, %klap_word, 0;\n", reg.name);
  }
  return text + "\t}\n";
}

}  // namespace klap::transform
