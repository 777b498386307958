#include "transform/promotion/promoted_batch.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "analysis/promotion/batching.h"
#include "ptx-patterns/templates/promote/promote.h"
#include "ptx/tree.h"

namespace klap::transform {
namespace {

using ptx::Module;
using ptx::Statement;
using ptx::Variable;

constexpr char kSeveralLabel[] = "$klap_several";
constexpr char kDoneLabel[] = "$klap_links_done";

analysis::Batching batching_of(const PromotedParts& parts) {
  analysis::BatchingVerdict verdict = analysis::judge_batching(parts.kernel, parts.chain);
  if (!verdict.batching)
    throw Error(ErrorCode::Internal, "links that cannot be batched: " + verdict.rejection);
  return *std::move(verdict.batching);
}

std::string prefix_of(uint32_t link) { return fmt::format("klap_b{}_", link); }
std::string part_of(uint32_t link) { return fmt::format("%klap_part{}", link); }
std::string variable_of(const Variable& v, uint32_t link) { return fmt::format("{}$klap{}", v.name, link); }

std::string declaration(const Module& m, const Variable& v, uint32_t link) {
  uint32_t name = v.declaration.first;
  while (name + 1 < v.declaration.last && !m.is(name, v.name)) ++name;
  return fmt::format("\t{} {}{};\n", m.text({v.declaration.first, name}), variable_of(v, link),
                     name + 1 == v.declaration.last ? "" : m.text({name + 1, v.declaration.last}));
}

class BatchText {
 public:
  BatchText(const PromotedParts& parts, const PromotedShape& shape, const MakeLinkCopy& make_copy)
      : module_(parts.kernel.module), links_(shape.batch), batching_(batching_of(parts)) {
    for (uint32_t link = 0; link < links_; ++link) {
      LinkCopy copy = make_copy(prefix_of(link), part_of(link));
      store_values_.push_back("{\n" + copy.store_values + "\t}\n");
      if (link == 0) alone_ = link_pieces(parts, as_a_whole(copy.body));
      pieces_.push_back(link_pieces(parts, interleaved(std::move(copy.body), link)));
    }
  }

  [[nodiscard]] std::string declarations() const {
    std::string text =
        fmt::format("\t.reg .b32 %klap_links, %klap_part<{}>;\n\t.reg .pred %klap_more;\n", links_);
    for (const Variable* variable : batching_.shared) {
      for (uint32_t link = 1; link < links_; ++link) text += declaration(module_, *variable, link);
    }
    return text;
  }

  // The text for a single link, which has all of the block to itself. The values that several links keep in
  // registers take none of its own.
  [[nodiscard]] std::string alone(const std::string& combine) const {
    return fmt::format("\tsetp.ne.u32 %klap_more, %klap_links, 1;\n\t@%klap_more bra.uni {};\n",
                       kSeveralLabel) +
           alone_.front() + store_values_[0] + "\t" + combine + "\n" + alone_.back() +
           fmt::format("\tbra.uni {};\n", kDoneLabel);
  }

  [[nodiscard]] std::string several(const std::string& combine) const {
    std::string text = fmt::format("\t{}:\n", kSeveralLabel);
    for (size_t piece = 0; piece + 1 < pieces_[0].size(); ++piece) {
      for (const std::vector<std::string>& copy : pieces_) text += copy[piece];
    }
    for (const std::string& store : store_values_) text += store;
    return text + "\t" + combine + "\n" + rests();
  }

 private:
  [[nodiscard]] std::string rests() const {
    std::string text;
    for (uint32_t link = 0; link < links_; ++link) {
      if (link != 0) {
        text += fmt::format("\tsetp.le.u32 %klap_more, %klap_links, {};\n\t@%klap_more bra.uni {};\n", link,
                            kDoneLabel);
      }
      text += pieces_[link].back();
    }
    return text + fmt::format("\t{}:\n\tmov.pred %klap_more, 0;\n", kDoneLabel);
  }

  // The first link's body as a whole.
  [[nodiscard]] static LinkBody as_a_whole(LinkBody body) {
    body.labels = "$klap_alone_";
    body.cuts = {body.boundary};
    return body;
  }

  [[nodiscard]] LinkBody interleaved(LinkBody body, uint32_t link) const {
    body.declares = link != 0;  // the first one's are
    body.again = batching_.again;
    body.cuts = {batching_.passed.begin(), batching_.passed.end()};
    body.cuts.insert(body.boundary);
    if (link == 0) return body;
    for (const Statement* barrier : batching_.barriers) body.around[barrier] = {"", "", true};
    for (const Variable* variable : batching_.shared)
      body.variables[variable->name] = variable_of(*variable, link);
    return body;
  }

  const Module& module_;
  const uint32_t links_;
  const analysis::Batching batching_;
  std::vector<std::string> alone_;                // the first link's, in two pieces
  std::vector<std::vector<std::string>> pieces_;  // of each link; the last one is the rest
  std::vector<std::string> store_values_;
};

}  // namespace

std::string batched_body(const PromotedParts& parts, const PromotedShape& shape, const std::string& block,
                         const MakeLinkCopy& make_copy, const std::string& combine) {
  const BatchText batch(parts, shape, make_copy);
  std::string text = "{\n" + batch.declarations();
  text += fmt::format("\tld.shared.u32 %klap_links, [{}+{}];\n", block, offsetof(KlapLink, exists));
  for (uint32_t link = 0; link < shape.batch; ++link) {
    text += fmt::format("\tadd.u32 {}, {}, {};\n", part_of(link), block,
                        KLAP_PARTS_AT(shape.area_bytes, shape.slot_words()) + link * shape.part_bytes());
  }
  return text + batch.alone(combine) + batch.several(combine) + "\t}";
}

}  // namespace klap::transform
