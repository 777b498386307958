#include "analysis/promotion/promotion.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/effects/coherence.h"
#include "analysis/facts/granularity.h"
#include "analysis/facts/launch_shape.h"
#include "analysis/legality/child_checks.h"
#include "analysis/legality/parent_checks.h"
#include "analysis/promotion/look_back.h"
#include "analysis/promotion/overlap.h"
#include "analysis/promotion/promotion_arguments.h"
#include "analysis/promotion/promotion_condition.h"
#include "analysis/synchronisation/early_exit.h"
#include "analysis/synchronisation/single_thread.h"
#include "analysis/values/values.h"

namespace klap::analysis {
namespace {

using Found = std::optional<Rejection>;

Rejection no_chain(std::string detail) { return {Reason::ChainForm, std::move(detail)}; }

class ChainJudge {
 public:
  ChainJudge(const FunctionFacts& kernel, bool assume_noalias) : k_(kernel), noalias_(assume_noalias) {}

  ChainVerdict run() {
    for (const auto check : {&ChainJudge::check_sites, &ChainJudge::check_launch, &ChainJudge::check_threads,
                             &ChainJudge::check_body, &ChainJudge::check_exits}) {
      if (Found rejection = (this->*check)()) return {nullptr, std::move(rejection)};
    }
    auto facts = std::make_shared<ChainFacts>();
    facts->site = site_;
    facts->block = block_;
    facts->shared_bytes = constant_shared_bytes(*site_, k_).value();
    facts->arguments = classify_arguments(k_, *site_);
    if (Found rejection = check_parameters(k_, facts->arguments)) return {nullptr, std::move(rejection)};
    facts->next_slice = slice_of_available(k_, facts->arguments);
    ChainCondition condition = find_condition(k_, *site_, facts->arguments);
    facts->condition = condition.kind;
    facts->tests = std::move(condition.tests);
    facts->counters = std::move(condition.counters);
    facts->test_slice = std::move(condition.slice);
    facts->condition_text = std::move(condition.text);
    Overlap overlap = find_overlap(k_, *site_, facts->arguments, noalias_);
    facts->boundary = overlap.boundary;
    facts->moved = std::move(overlap.moved);
    facts->boundary_text = std::move(overlap.text);
    facts->boundary_is_annotated = overlap.annotated;
    find_look_back(k_, *facts);
    return {std::move(facts), std::nullopt};
  }

 private:
  [[nodiscard]] static std::string place(const Site& site) { return ptx::place(site.position); }

  Found check_sites() {
    const auto self = std::ranges::find(k_.sites, k_.function.name, &Site::callee);
    if (self == k_.sites.end()) return no_chain("it does not launch itself");
    for (const Site& site : k_.sites) {
      if (&site != &*self)
        return Rejection{
            Reason::SeveralSites,
            fmt::format("it launches itself ({}) and launches elsewhere ({})", place(*self), place(site))};
    }
    site_ = &*self;
    return std::nullopt;
  }

  // The site without its stream's order. The links of a chain are as far apart as natively: no launch is
  // deferred, and other threads launch nothing. So the order that a stream gives says nothing here, and the
  // site is checked as one without.
  [[nodiscard]] Site without_order() const {
    Site site = *site_;
    site.streams = {{StreamClass::FireAndForget, "the fire-and-forget stream"}};
    return site;
  }

  [[nodiscard]] static Aggregation aggregation() {
    Aggregation out;
    out.is_recursive = true;
    return out;
  }

  Found check_launch() {
    if (!site_->understood()) return Rejection{Reason::NotUnderstood, site_->problem};
    if (stream_kind(*site_) == StreamKind::Other || stream_kind(*site_) == StreamKind::Tail)
      return Rejection{Reason::StreamUnsupported, "the stream is " + print(site_->streams)};
    if (Found rejection = check_parent(k_, without_order(), aggregation())) return rejection;
    if (site_->idiom->form == LaunchForm::Documented)
      return no_chain("it asks for a buffer before it knows the grid");
    const SiteValues values = site_values(k_.values(), *site_);
    for (size_t axis = 0; axis < 3; ++axis) {
      auto extent = k_.data.constant(site_->grid.at(axis));
      if (!extent) extent = values.grid.at(axis).value.constant();
      if (extent != 1)
        return no_chain(fmt::format("its grid is not one block: {} in dimension {}",
                                    extent ? std::to_string(*extent) : site_->grid.at(axis), "xyz"[axis]));
    }
    block_ = constant_block(*site_, k_).value();
    return std::nullopt;
  }

  Found check_threads() {
    if (is_launched_by_one_thread(k_, *site_, {block_[0], block_[1], block_[2]})) return std::nullopt;
    return no_chain("several threads of the block may launch");
  }

  Found check_body() {
    if (Found rejection = check_child(k_.module, k_.function, k_, without_order(), aggregation()))
      return rejection;
    if (const auto load = noncoherent_load_below(k_.module, k_.function))
      return no_chain(fmt::format("{}, called by it, reads past the coherent caches ({})",
                                  load->function->name, k_.module.place(load->token)));
    return std::nullopt;
  }

  // The threads of a resident block go on to its next link together. So no thread may exit before the others
  // have met for the last time.
  Found check_exits() {
    const Finding finding = early_exit(k_, block_[0] % 32 == 0, MayExit::Nobody);
    if (finding.answer == Answer::No) return std::nullopt;
    const Effects& effects = k_.calls().closure(k_.function);
    const bool barrier = effects.has(EffectKind::BlockBarrier) || effects.has(EffectKind::PartialBarrier);
    return Rejection{barrier ? Reason::ChildBarrier : Reason::ChildWarpSync, finding.detail};
  }

  const FunctionFacts& k_;
  const bool noalias_;
  const Site* site_ = nullptr;
  std::array<uint32_t, 3> block_{};
};

}  // namespace

ChainVerdict judge_promotion(const FunctionFacts& kernel, bool assume_noalias) {
  return ChainJudge(kernel, assume_noalias).run();
}

}  // namespace klap::analysis
