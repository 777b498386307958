// A strategy says how a parent's launches are replaced, and what the host launches instead.
//
// Everything in which strategies differ is a member function of this class, and each strategy has a file of
// its own in this folder. So planning, generation and the remarks ask a site's strategy, and none of them
// tests how the site is aggregated. strategy_of.h chooses the strategy of a site. A function with a body here
// states what holds for most strategies.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/facts/rejection.h"
#include "analysis/order/launch_order.h"
#include "analysis/values/uniformity.h"
#include "jit/data/variant.h"
#include "jit/planned/planned.h"
#include "ptx/tree.h"
#include "transform/text/generated.h"
#include "transform/text/lines.h"

namespace klap::jit {

// The templates that are compiled for one site.
struct SiteTemplates {
  std::shared_ptr<const ptx::Module> kernel;  // the kernel that runs the children
  std::shared_ptr<const ptx::Module> site;    // code that replaces the launch
  std::shared_ptr<const ptx::Module> launch;  // code with which the parent launches that kernel, or null
  std::shared_ptr<const ptx::Module> join;    // code that joins the parts of a child, or null
};

// A parent for which code is generated, with its sites and their templates.
struct ParentSites {
  const Plan& plan;
  std::span<const PlannedSite> sites;
  const std::vector<SiteTemplates>& templates;
};

class Strategy {
 public:
  Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;
  virtual ~Strategy() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;

  // ---- properties that other passes rely on ----

  // Children are launched where the program launches them. Otherwise they are deferred until the parent, or a
  // group of its blocks, has ended.
  [[nodiscard]] virtual bool is_immediate() const { return false; }
  // Each site has a queue of its own, whose size follows the parent's grid.
  [[nodiscard]] virtual bool has_queue_per_site() const { return false; }
  // The host launches a consumer that does nothing but run recorded children.
  [[nodiscard]] virtual bool has_plain_host_consumer() const { return false; }
  // Only the site's own consumer reads its records, so these may leave out what it knows.
  [[nodiscard]] virtual bool may_pack_records() const { return false; }
  // The sites' queues are run one after another, so they need an order that suits the program's.
  [[nodiscard]] virtual bool needs_queue_order() const { return false; }
  // Launches run in the order of their streams, so nothing about it has to be shown or said.
  [[nodiscard]] virtual bool keeps_all_orders() const { return false; }
  // A second variant can keep the order of launches that may overlap only under conditions.
  [[nodiscard]] virtual bool may_have_second_variant() const { return false; }

  // ---- planning ----

  // The strategy's own rejection to a site that all other checks have accepted.
  [[nodiscard]] virtual std::optional<analysis::Rejection> check(const ptx::Module& child_module,
                                                                 const PlannedSite& site) const;
  // Fills the site's shape as far as the site alone decides it. Returns what stands against the shape.
  [[nodiscard]] virtual std::optional<analysis::Rejection> make_shape(const ptx::Module& child_module,
                                                                      PlannedSite& site) const;
  // The order of launches, if the strategy's check has already decided it. Otherwise null.
  [[nodiscard]] virtual const analysis::OrderVerdict* known_order(const PlannedSite& site) const;
  // The layout of packed records. Only for strategies that may pack them.
  [[nodiscard]] virtual transform::RecordLayout packed_layout(const ptx::Module& child_module,
                                                              const PlannedSite& site) const;

  // ---- generation ----

  [[nodiscard]] virtual SiteTemplates templates(const PlannedSite& site, bool has_other_sites) const = 0;
  // Children record launches as well, so the unit of the consumer needs the site's template, too.
  [[nodiscard]] virtual bool children_launch() const { return false; }
  // The name of the kernel that runs the children. Empty if the parent's variant runs them itself.
  [[nodiscard]] virtual std::string consumer_name(const Plan& plan, const PlannedSite& site) const = 0;
  [[nodiscard]] virtual transform::Generated consumer(const Plan& plan, const PlannedSite& site,
                                                      const SiteTemplates& templates, const std::string& name,
                                                      transform::LineTables& lines) const;
  [[nodiscard]] virtual std::string parent_name(const Plan& plan, const PlannedSite& site) const;
  [[nodiscard]] virtual transform::Generated parent(const ParentSites& of, const std::string& name,
                                                    transform::LineTables& lines) const = 0;
  // How the runtime launches the parent's variant, which has that name.
  [[nodiscard]] virtual Variant variant(const Plan& plan, std::span<const PlannedSite> sites,
                                        const std::string& name) const = 0;

  // ---- texts for people ----

  // SiteRemark::granularity.
  [[nodiscard]] virtual std::string granularity(const PlannedSite& site) const;
  // The whole detail of the remark, if it has nothing in common with that of the other strategies.
  [[nodiscard]] virtual std::optional<std::string> own_detail(const PlannedSite& site) const;
  // Parts of the detail: "block 32x4x1", and then how the children are run.
  [[nodiscard]] virtual std::string block_text(const PlannedSite& site) const;
  [[nodiscard]] virtual std::string run_text(const PlannedSite& site) const;
  // How the children are run, in the few words of a remark's first line: the beginning of run_text().
  [[nodiscard]] virtual std::string brief_text(const PlannedSite& site) const;
  // The dynamic shared memory of the site's child; the most, if its launches differ.
  [[nodiscard]] virtual uint32_t shared_bytes(const PlannedSite& site) const;
  [[nodiscard]] virtual bool shared_differs(const PlannedSite& site) const;
  // The threads whose launches become one: an argument that is uniform over them can be passed once.
  [[nodiscard]] virtual analysis::Uniform aggregated_threads(const PlannedSite& site) const;
  // The extents of the parent's block, as far as the variant may rely on them.
  [[nodiscard]] virtual analysis::KnownExtents known_block(const PlannedSite& site) const;
  // Why the setting consumer_threads cannot be followed. Empty if the strategy allows other blocks.
  [[nodiscard]] virtual std::string fixed_block_text() const { return {}; }
  // A note for a site at which one thread of a block launches. Empty if that changes nothing.
  [[nodiscard]] virtual std::string one_thread_note() const { return {}; }
  [[nodiscard]] virtual std::vector<std::string> notes(const PlannedSite& site) const;
  // ChildQueue::counted.
  [[nodiscard]] virtual std::string counted_text(const PlannedSite& /*site*/) const { return {}; }
  // Lines about the plan of a site, for dumps.
  [[nodiscard]] virtual std::string plan_text(const PlannedSite& site) const = 0;
};

}  // namespace klap::jit
