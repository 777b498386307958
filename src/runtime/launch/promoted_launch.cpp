#include "runtime/launch/promoted_launch.h"

#include <algorithm>
#include <array>
#include <span>

#include "runtime/launch/launch_params.h"
#include "runtime/launch/thread_streams.h"

namespace klap::runtime {

namespace {

Outcome enqueue_chain(Launch launch, ParentKernel& parent, const PreparedVariant& prepared,
                      CUdeviceptr chain) {
  const bool launches = parent.variant().promoted->launches();
  std::array<CUdeviceptr, 2> added = {chain, prepared.chain_blocks};
  ExtendedParams params;
  if (const MaybeReason reason = params.extend(parent.variant(), launch.params, launch.extra,
                                               std::span(added).first(launches ? 2 : 1)))
    return leave(*reason);
  if (!launches) launch.grid[0] = prepared.chain_blocks;
  return launch_alone(launch, parent, prepared.parent, params.params(), params.extra());
}

}  // namespace

bool is_launch_of(const jit::PromotedChain& chain, const Launch& launch) {
  constexpr std::array<unsigned, 3> kOneBlock{1, 1, 1};
  return std::ranges::equal(launch.grid, kOneBlock) && std::ranges::equal(launch.block, chain.block) &&
         launch.shared_bytes == chain.shared_bytes;
}

Outcome launch_chain(const Launch& launch, ParentKernel& parent, LaunchContext& context) {
  const jit::PromotedChain& chain = *parent.variant().promoted;
  if (!is_launch_of(chain, launch)) return leave(reasons::kNotTheChainsForm);
  const auto prepared = parent.prepare(context);
  if (prepared->unusable) return leave(*prepared->unusable);
  if (const MaybeReason reason =
          context.make_chain_room(parent.chain(), chain.slot_bytes, parent.pool_bytes())) {
    parent.warn_once(std::string(reason->name) + ", the original runs");
    return leave(*reason);
  }
  const Outcome outcome = enqueue_chain(launch, parent, *prepared, context.chain(parent.chain()));
  const bool is_enqueued = !outcome.left && outcome.result == CUDA_SUCCESS;
  if (is_enqueued && chain.double_buffered) context.chain_takes_turns(parent.chain());
  if (!outcome.left && is_ending_thread_stream(launch.stream)) context.record_use();
  return outcome;
}

}  // namespace klap::runtime
