// The launch sites of a kernel whose launches are recorded in one queue: sites in and beside a loop, and
// sites whose order is kept.
//
// If no launch has an order, the sites are as in recursion (work_queue.h) and only the consumer differs.
// Otherwise each record knows the one before it. That is the record of its thread, which a register keeps
// from one launch to the next, at whichever site. Or it is the record of its block, which a word of shared
// memory keeps (templates/loop_launches/loop_record.cu). The program's own two calls stay here as well, each
// behind a branch. At the first call there is a third way: neither a record nor the program's call, but no
// buffer. The program then goes on as after a launch that the device runtime refuses.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/legality/loop_launches.h"
#include "ptx/tree.h"
#include "transform/aggregate/consumer_shape.h"
#include "transform/text/generated.h"
#include "transform/text/lines.h"
#include "transform/text/splice.h"

namespace klap::transform {

// The shape for templates/loop_launches/loop.cu and kernels of that module.
ConsumerShape loop_consumer_shape(const ptx::Module& module, const analysis::LoopLaunches& loop_launches,
                                  bool grid_is_1d);

class LoopSites {
 public:
  // `record` is templates/loop_launches/loop_record.cu; `queue` a register with the queue's address;
  // `in_groups`: whether groups of the parent's blocks launch apart.
  LoopSites(const analysis::FunctionFacts& parent, const analysis::LoopLaunches& loop_launches,
            const ptx::Module& record, std::string queue, bool in_groups, LineTables& lines)
      : parent_(parent),
        loop_launches_(loop_launches),
        record_(record),
        queue_(std::move(queue)),
        in_groups_(in_groups),
        lines_(lines) {}

  [[nodiscard]] Surroundings in_parent() const;
  // This text must stand at the parent's entry. A thread is at one of its sites at a time: they share what
  // they need.
  [[nodiscard]] std::string entry() const;
  // Declarations of functions that in_parent() calls and the parent's module may not declare.
  [[nodiscard]] std::vector<std::string> declarations() const;

 private:
  [[nodiscard]] Around first_call(size_t number) const;
  [[nodiscard]] Around launch_call(size_t number) const;
  [[nodiscard]] static Around query(const analysis::ErrorQuery& query);
  [[nodiscard]] std::string note_refusal(size_t number) const;
  [[nodiscard]] bool keeps_block_order() const;
  // True if launches of the scope are refused when the queue is full, without asking the device runtime.
  [[nodiscard]] bool refuses(analysis::OrderScope scope) const;
  // The scope that both of a site's template functions are told.
  [[nodiscard]] std::string scope(size_t number) const;

  const analysis::FunctionFacts& parent_;
  const analysis::LoopLaunches& loop_launches_;
  const ptx::Module& record_;
  const std::string queue_;
  const bool in_groups_;
  LineTables& lines_;
};

}  // namespace klap::transform
