#include "jit/compile/templates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "jit/compile/toolchain.h"
#include "support/embedded_file.h"

namespace klap::jit {

extern const EmbeddedFile kTemplateFiles[];

namespace {

// The oldest target that NVRTC 13 knows: what is compiled for it may be spliced into a unit of any target.
constexpr char kTemplateTarget[] = "--gpu-architecture=compute_75";

using Headers = std::vector<std::pair<std::string, std::string>>;

// All templates by their names: any of them may include any other.
const Headers& headers() {
  static const auto& all = *new Headers([] {
    Headers files;
    for (const EmbeddedFile* file = kTemplateFiles; file->name != nullptr; ++file)
      files.emplace_back(file->name, file->text);
    return files;
  }());
  return all;
}

// The template of that name, its path below ptx-patterns/templates.
std::shared_ptr<const ptx::Module> compiled(const std::string& name, std::vector<std::string> options) {
  // Leaked on purpose: a program may still load code while its static objects are being destroyed.
  static auto& mutex = *new std::mutex;
  static auto& done = *new std::map<std::string, std::shared_ptr<const ptx::Module>>;
  std::string key = name;
  for (const std::string& option : options) key += " " + option;
  const std::lock_guard lock(mutex);
  auto& entry = done[key];
  if (!entry) {
    options.insert(options.end(), {kTemplateTarget, "-rdc=true", "-std=c++17"});
    const auto file = std::ranges::find(headers(), name, &Headers::value_type::first);
    entry = std::make_shared<const ptx::Module>(
        ptx::parse(compile_to_ptx(file->second, name, options, headers()), name));
  }
  return entry;
}

std::vector<std::string> layout_options(const transform::RecordLayout& layout) {
  std::vector<std::string> options = {fmt::format("-DKLAP_ARGS_OFFSET={}", layout.arguments_offset),
                                      fmt::format("-DKLAP_RECORD_BYTES={}", layout.record_bytes)};
  constexpr std::array kAxes = {'X', 'Y', 'Z'};
  for (size_t axis = 0; axis < kAxes.size(); ++axis) {
    const auto& extent = layout.grid.at(axis);
    if (extent) options.push_back(fmt::format("-DKLAP_GRID_{}={}u", kAxes.at(axis), *extent));
  }
  if (layout.passes_once()) options.emplace_back("-DKLAP_ONCE");
  return options;
}

std::vector<std::string> shape_options(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = layout_options(shape.layout);
  constexpr std::array kAxes = {'X', 'Y', 'Z'};
  for (size_t axis = 0; axis < kAxes.size(); ++axis) {
    const auto extent = shape.blocks_differ() ? shape.sizes->block.at(axis) : shape.block.at(axis);
    if (extent) options.push_back(fmt::format("-DKLAP_CHILD_{}={}", kAxes.at(axis), *extent));
  }
  if (!shape.blocks_differ()) return options;
  options.emplace_back("-DKLAP_BLOCKS_DIFFER");
  options.push_back(fmt::format("-DKLAP_MOST_THREADS={}", shape.most_child_threads()));
  return options;
}

void add_room(std::vector<std::string>& options, const transform::ConsumerShape& shape) {
  if (shape.min_blocks_per_sm != 0)
    options.push_back(fmt::format("-DKLAP_MIN_BLOCKS={}", shape.min_blocks_per_sm));
}

// The grid as the only group needs no constant: its code is what it would be if there were no groups.
void add_group(std::vector<std::string>& options, uint32_t group_blocks) {
  if (group_blocks != 0) options.push_back(fmt::format("-DKLAP_GROUP_BLOCKS={}u", group_blocks));
}

// Options of flat.h.
void add_bound(std::vector<std::string>& options, const std::optional<analysis::FlatBound>& bound) {
  if (!bound) return;
  const bool is_long = bound->bytes == 8;
  const bool is_signed = is_long ? bound->compares_signed : bound->is_signed;
  options.push_back(
      fmt::format("-DKLAP_BOUND={}{}", is_signed ? "" : "unsigned ", is_long ? "long long" : "int"));
  options.push_back(
      fmt::format("-DKLAP_BOUND_COMPARED={}long long", bound->compares_signed ? "" : "unsigned "));
  if (bound->inclusive) options.emplace_back("-DKLAP_BOUND_INCLUSIVE");
}

// An operation as part_totals.h needs it: its type, and the bits of a value that adds nothing.
struct TotalForm {
  std::string_view type, nothing;
};
const TotalForm& form_of_total(std::string_view operation) {
  // A NaN takes no part in an extremum.
  static const std::map<std::string_view, TotalForm> kForms = {
      {"add.i32", {"unsigned int", "0ull"}},
      {"add.i64", {"unsigned long long", "0ull"}},
      {"add.f32", {"float", "0ull"}},
      {"add.f64", {"double", "0ull"}},
      {"xor.b32", {"unsigned int", "0ull"}},
      {"xor.b64", {"unsigned long long", "0ull"}},
      {"and.b32", {"unsigned int", "~0ull"}},
      {"and.b64", {"unsigned long long", "~0ull"}},
      {"or.b32", {"unsigned int", "0ull"}},
      {"or.b64", {"unsigned long long", "0ull"}},
      {"min.u32", {"unsigned int", "0xffffffffull"}},
      {"max.u32", {"unsigned int", "0ull"}},
      {"min.s32", {"int", "0x7fffffffull"}},
      {"max.s32", {"int", "0x80000000ull"}},
      {"min.u64", {"unsigned long long", "~0ull"}},
      {"max.u64", {"unsigned long long", "0ull"}},
      {"min.s64", {"long long", "0x7fffffffffffffffull"}},
      {"max.s64", {"long long", "0x8000000000000000ull"}},
      {"min.f32", {"float", "0x7fffffffull"}},
      {"max.f32", {"float", "0x7fffffffull"}},
      {"min.f64", {"double", "0x7fffffffffffffffull"}},
      {"max.f64", {"double", "0x7fffffffffffffffull"}},
  };
  return kForms.at(operation);
}
void add_totals(std::vector<std::string>& options, const transform::ConsumerShape& shape) {
  if (!shape.range || !shape.range->joined) return;
  std::string totals;
  for (size_t i = 0; const analysis::JoinedParts::Sum& sum : shape.range->joined->sums) {
    std::string name = sum.operation;
    std::ranges::replace(name, '.', '_');
    const auto& [type, nothing] = form_of_total(sum.operation);
    totals += fmt::format("KLAP_TOTAL({},{},{},{})", i++, type, name, nothing);
  }
  options.push_back("-DKLAP_TOTALS=" + totals);
  options.push_back(fmt::format("-DKLAP_TOTALS_AT={}u", shape.layout.totals_at));
}

void add_flat(std::vector<std::string>& options, const transform::ConsumerShape& shape) {
  if (shape.flat)
    options.push_back(fmt::format("-DKLAP_FLAT={}u", shape.blocks_differ() ? 0 : shape.child_threads()));
}

// Options of split_iterations.h. Pointers are numbered in the order of the spans.
void add_split_iterations(std::vector<std::string>& options, const transform::ConsumerShape& shape) {
  const analysis::IterationSplit* const split = shape.split();
  if (split == nullptr) return;
  std::string spans, pointers;
  std::optional<uint32_t> parameter;
  int pointer = -1;
  for (const analysis::IterationSpan& span : split->spans) {
    if (parameter != span.parameter) ++pointer;
    parameter = span.parameter;
    spans += fmt::format("KLAP_SPAN({},{},{},{},{})", pointer, span.least, span.step, span.bytes,
                         static_cast<int>(span.use));
  }
  for (size_t i = 0; i < split->pointers.size(); ++i) pointers += fmt::format("KLAP_POINTER({})", i);
  constexpr uint32_t kLargestBlock = 1024;
  options.emplace_back("-DKLAP_SPLIT_ITERATIONS");
  if (shape.split_all_iterations) options.emplace_back("-DKLAP_SPLIT_ALL_ITERATIONS");
  if (split->one_row)
    options.push_back(fmt::format("-DKLAP_MOST_BLOCKS={}u", kLargestBlock / shape.child_threads()));
  options.push_back("-DKLAP_POINTERS=" + pointers);
  options.push_back("-DKLAP_SPANS=" + spans);
}

// Options of exits.h.
void add_exits(std::vector<std::string>& options, const transform::ConsumerShape& shape) {
  if (shape.may_exit_early(analysis::MayExit::Warps)) options.emplace_back("-DKLAP_WARPS_EXIT");
}

// All kernels with their numbers and blocks.
std::vector<std::string> worklist_options(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = layout_options(shape.layout);
  std::string kernels;
  for (size_t i = 0; i < shape.bodies.size(); ++i) {
    constexpr std::array kOwn = {"own.x", "own.y", "own.z"};
    std::array<std::string, 3> extents;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      const uint32_t extent = shape.bodies[i].block.at(axis);
      extents.at(axis) = extent == transform::kInheritedExtent ? kOwn.at(axis) : std::to_string(extent);
    }
    kernels += fmt::format("KLAP_KERNEL({},{})", i, fmt::join(extents, ","));
  }
  options.push_back("-DKLAP_KERNELS=" + kernels);
  options.push_back(fmt::format("-DKLAP_THREADS={}", shape.threads()));
  if (shape.grid_is_1d) options.emplace_back("-DKLAP_GRID_1D");
  add_exits(options, shape);
  return options;
}

// The number of the executor's own kernel.
void add_copies(std::vector<std::string>& options, const transform::ConsumerShape& shape) {
  if (shape.copies) options.push_back(fmt::format("-DKLAP_COPIES={}", shape.bodies.size() - 1));
}

// The kernels whose blocks begin in order.
void add_block_orders(std::vector<std::string>& options, const transform::ConsumerShape& shape) {
  std::string orders;
  for (size_t i = 0; i < shape.bodies.size(); ++i) {
    const analysis::BlockOrder order = shape.bodies[i].order;
    if (order != analysis::BlockOrder::Any)
      orders += fmt::format("KLAP_BLOCK_ORDER({},{})", i, order == analysis::BlockOrder::Columns);
  }
  if (!orders.empty()) options.push_back("-DKLAP_BLOCK_ORDERS=" + orders);
}

// All kernels with their numbers and blocks, and whether they launch. An extent that is not constant is that
// of the record.
std::vector<std::string> executor_options(const transform::ConsumerShape& shape) {
  constexpr std::array kOfRecord = {"launched.x", "launched.y", "launched.z"};
  std::vector<std::string> options = layout_options(shape.layout);
  std::string kernels;
  for (size_t i = 0; i < shape.bodies.size(); ++i) {
    std::array<std::string, 3> extents;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      const uint32_t extent = shape.bodies[i].block.at(axis);
      extents.at(axis) = extent == transform::kInheritedExtent ? kOfRecord.at(axis) : std::to_string(extent);
    }
    kernels += fmt::format("KLAP_KERNEL({},{},{})", i, fmt::join(extents, ","), shape.bodies[i].launches);
  }
  options.push_back("-DKLAP_KERNELS=" + kernels);
  options.push_back(fmt::format("-DKLAP_THREADS={}", shape.threads()));
  if (shape.grid_is_1d) options.emplace_back("-DKLAP_GRID_1D");
  add_block_orders(options, shape);
  add_exits(options, shape);
  add_copies(options, shape);
  if (shape.has_halves) options.emplace_back("-DKLAP_HALVES");
  return options;
}

void add_parts(std::vector<std::string>& options, const transform::ConsumerShape& shape) {
  if (!shape.range) return;
  options.push_back(fmt::format("-DKLAP_PART_ELEMENTS={}u", shape.range->elements));
  options.push_back(fmt::format("-DKLAP_UNCUT_PARTS={}u", shape.range->uncut_parts()));
  if (shape.range->merges) options.emplace_back("-DKLAP_MERGE_PARTS");
}

// Options of all consumers that run one kernel from a queue.
std::vector<std::string> one_child_options(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = shape_options(shape);
  if (shape.grid_is_1d) options.emplace_back("-DKLAP_GRID_1D");
  add_exits(options, shape);
  return options;
}

// Options of such a consumer that the host launches.
std::vector<std::string> host_consumer_options(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = one_child_options(shape);
  if (shape.awaits_parent) options.emplace_back("-DKLAP_AWAIT_PARENT");
  if (shape.double_buffered) options.emplace_back("-DKLAP_DOUBLE_BUFFERED");
  if (shape.fused) options.emplace_back("-DKLAP_FUSED");
  add_parts(options, shape);
  return options;
}

// The child's block is not among them.
std::vector<std::string> warp_options(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = layout_options(shape.layout);
  options.push_back(fmt::format("-DKLAP_LANES={}", shape.lanes));
  return options;
}

}  // namespace

std::shared_ptr<const ptx::Module> record_template(
    const transform::ConsumerShape& shape, uint32_t group_blocks,
    const std::optional<analysis::Thresholding>& thresholding) {
  std::vector<std::string> options = layout_options(shape.layout);
  add_group(options, group_blocks);
  add_flat(options, shape);
  add_bound(options, thresholding ? thresholding->bound : shape.flat ? shape.flat->bound : std::nullopt);
  if (thresholding) {
    options.push_back(fmt::format("-DKLAP_SERIAL={}u", thresholding->most_threads));
    if (thresholding->by_warps()) options.emplace_back("-DKLAP_SERIAL_BY_WARPS");
    options.push_back(fmt::format("-DKLAP_SERIAL_BLOCK={}u", shape.child_threads()));
  }
  add_split_iterations(options, shape);
  add_parts(options, shape);
  add_totals(options, shape);
  return compiled("aggregate/record.cu", options);
}

std::shared_ptr<const ptx::Module> join_parts_template(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = {fmt::format("-DKLAP_PART_THREADS={}", shape.range->threads)};
  add_totals(options, shape);
  return compiled("aggregate/join_parts.cu", options);
}

std::shared_ptr<const ptx::Module> record_sizes_template(const transform::ConsumerShape& shape,
                                                         uint32_t group_blocks, bool by_warps) {
  std::vector<std::string> options = layout_options(shape.layout);
  add_group(options, group_blocks);
  add_flat(options, shape);
  if (shape.flat) add_bound(options, shape.flat->bound);
  options.push_back(fmt::format("-DKLAP_MOST_THREADS={}", shape.most_child_threads()));
  options.push_back(fmt::format("-DKLAP_SHARED_ROOM={}", shape.most_shared_bytes()));
  if (shape.blocks_differ() && !shape.flat)
    options.emplace_back(by_warps ? "-DKLAP_IN_WARPS" : "-DKLAP_KEEP_THREADS");
  if (shape.sizes && shape.sizes->shared_differs()) options.emplace_back("-DKLAP_KEEP_SHARED");
  return compiled("aggregate/record_sizes.cu", options);
}

std::shared_ptr<const ptx::Module> worklist_record_template(const transform::ConsumerShape& shape,
                                                            uint32_t group_blocks, bool children_launch) {
  std::vector<std::string> options = layout_options(shape.layout);
  add_group(options, group_blocks);
  if (children_launch) options.emplace_back("-DKLAP_RECURSIVE");
  return compiled("worklist/worklist_record.cu", options);
}

std::shared_ptr<const ptx::Module> loop_record_template(const transform::ConsumerShape& shape,
                                                        uint32_t group_blocks) {
  std::vector<std::string> options = layout_options(shape.layout);
  add_group(options, group_blocks);
  std::string kernels;
  for (size_t i = 0; i < shape.bodies.size(); ++i) {
    const transform::ConsumerBody& body = shape.bodies[i];
    kernels += fmt::format("KLAP_KERNEL({},{},{},{},{},{})", i, body.block[0], body.block[1], body.block[2],
                           body.shared_bytes, body.kernel->parameter_bytes);
  }
  options.push_back("-DKLAP_KERNELS=" + kernels);
  return compiled("loop_launches/loop_record.cu", options);
}

std::shared_ptr<const ptx::Module> warp_consumer_template(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = warp_options(shape);
  if (shape.grid_is_1d) options.emplace_back("-DKLAP_GRID_1D");
  return compiled("warp/warp.cu", options);
}

std::shared_ptr<const ptx::Module> worklist_consumer_template(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = worklist_options(shape);
  options.push_back(fmt::format("-DKLAP_TAKES={}", shape.takes));
  if (shape.apart) options.emplace_back("-DKLAP_APART");
  if (shape.has_inherited_extents()) options.emplace_back("-DKLAP_INHERITED_BLOCK");
  add_room(options, shape);
  return compiled("worklist/worklist.cu", options);
}

std::shared_ptr<const ptx::Module> executor_record_template(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = layout_options(shape.layout);
  add_copies(options, shape);
  return compiled("executor/executor_record.cu", options);
}

std::shared_ptr<const ptx::Module> executor_template(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = executor_options(shape);
  add_room(options, shape);
  return compiled("executor/executor.cu", options);
}

std::shared_ptr<const ptx::Module> ordered_consumer_template(const transform::ConsumerShape& shape) {
  return compiled("loop_launches/ordered.cu", worklist_options(shape));
}

std::shared_ptr<const ptx::Module> loop_consumer_template(const transform::ConsumerShape& shape) {
  return compiled("loop_launches/loop.cu", worklist_options(shape));
}

std::shared_ptr<const ptx::Module> exact_consumer_template(const transform::ConsumerShape& shape) {
  return compiled("aggregate/exact.cu", one_child_options(shape));
}

std::shared_ptr<const ptx::Module> flat_consumer_template(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = host_consumer_options(shape);
  options.push_back(fmt::format("-DKLAP_THREADS={}", shape.flat_threads));
  if (shape.in_one_row()) options.emplace_back("-DKLAP_ONE_ROW");
  return compiled("aggregate/consumer_flat.cu", options);
}

std::shared_ptr<const ptx::Module> packed_consumer_template(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = host_consumer_options(shape);
  options.push_back(fmt::format("-DKLAP_PACK={}", shape.pack));
  add_room(options, shape);
  if (shape.sync_scope == analysis::SyncScope::Warp) options.emplace_back("-DKLAP_SYNC_WARP");
  if (shape.sync_scope == analysis::SyncScope::Block) options.emplace_back("-DKLAP_SYNC_BLOCK");
  return compiled("aggregate/consumer.cu", options);
}

std::shared_ptr<const ptx::Module> fused_template() { return compiled("aggregate/fused.cu", {}); }

std::shared_ptr<const ptx::Module> launch_consumer_template(const transform::ConsumerShape& shape,
                                                            uint32_t group_blocks, bool has_other_sites) {
  std::vector<std::string> options = shape_options(shape);
  add_group(options, group_blocks);
  if (has_other_sites) options.emplace_back("-DKLAP_IN_ORDER");
  if (shape.sizes && shape.sizes->shared_differs()) {
    options.emplace_back("-DKLAP_SHARED_DIFFERS");
  } else {
    options.push_back(fmt::format("-DKLAP_CHILD_SHARED_BYTES={}", shape.shared_bytes));
  }
  return compiled("aggregate/launch_consumer.cu", options);
}

std::shared_ptr<const ptx::Module> launch_queue_consumer_template(const transform::ConsumerShape& shape,
                                                                  uint32_t group_blocks) {
  std::vector<std::string> options = {fmt::format("-DKLAP_THREADS={}", shape.threads()),
                                      fmt::format("-DKLAP_SHARED_BYTES={}", shape.shared_bytes)};
  add_group(options, group_blocks);
  return compiled("worklist/launch_consumer.cu", options);
}

std::shared_ptr<const ptx::Module> warp_launch_template(const transform::ConsumerShape& shape,
                                                        const transform::WarpLaunchShape& sharing) {
  std::vector<std::string> options = warp_options(shape);
  if (sharing.match_block) options.emplace_back("-DKLAP_MATCH_BLOCK");
  if (sharing.match_bytes) {
    options.emplace_back("-DKLAP_MATCH_BYTES");
    options.push_back(fmt::format("-DKLAP_SHARED_ROOM={}u", shape.shared_room));
  }
  if (sharing.match_stream) options.emplace_back("-DKLAP_MATCH_STREAM");
  if (sharing.last_error) options.emplace_back("-DKLAP_LAST_ERROR");
  return compiled("warp/warp_launch.cu", options);
}

std::shared_ptr<const ptx::Module> device_memory_template(bool has_runtime, bool in_chunks,
                                                          bool lanes_apart) {
  std::vector<std::string> options;
  if (has_runtime) options.emplace_back("-DKLAP_RUNTIME");
  if (in_chunks) options.emplace_back("-DKLAP_CHUNKS");
  if (lanes_apart) options.emplace_back("-DKLAP_LANES_APART");
  return compiled("common/device_memory.cu", options);
}

std::shared_ptr<const ptx::Module> frames_template() { return compiled("suspension/frames.cu", {}); }

namespace {

std::string word_list(const std::vector<uint32_t>& words) {
  std::string text;
  for (const uint32_t word : words) text += fmt::format("KLAP_WORD({})", word);
  return text;
}

const char* unsigned_type(uint32_t bytes) {
  return bytes == 1   ? "unsigned char"
         : bytes == 2 ? "unsigned short"
         : bytes == 4 ? "unsigned int"
                      : "unsigned long long";
}

// Options of promote.cu, promote_link.cu and promote_launch.cu.
std::vector<std::string> promotion_options(const transform::PromotedShape& shape) {
  std::vector<std::string> options = {fmt::format("-DKLAP_AREA_BYTES={}", shape.area_bytes),
                                      fmt::format("-DKLAP_SLOT_WORDS={}", shape.slot_words()),
                                      fmt::format("-DKLAP_THREADS={}", shape.threads),
                                      "-DKLAP_WORDS=" + word_list(shape.words)};
  std::string steps;
  for (const transform::ArgumentStep& step : shape.steps) {
    steps += fmt::format("KLAP_STEP({},{},{},{}ull)", step.offset, unsigned_type(step.bytes),
                         step.multiplies ? "mul" : "add", step.by);
  }
  options.push_back("-DKLAP_STEPS=" + steps);
  if (shape.condition == analysis::LinkCondition::Counted) options.emplace_back("-DKLAP_COUNTED");
  if (shape.condition == analysis::LinkCondition::Available) {
    options.emplace_back("-DKLAP_FAST");
    options.push_back("-DKLAP_FAST_WORDS=" + word_list(shape.fast_words));
  }
  const bool overlaps = shape.mode == transform::PromotionMode::Overlapped;
  if (overlaps) options.emplace_back(shape.combines ? "-DKLAP_PASSES" : "-DKLAP_OVERLAPS");
  if (shape.mode == transform::PromotionMode::LookBack) options.emplace_back("-DKLAP_LOOK_BACK");
  if (shape.batch > 1) options.push_back(fmt::format("-DKLAP_BATCH={}u", shape.batch));
  if (shape.double_buffered) options.emplace_back("-DKLAP_DOUBLE_BUFFERED");
  if (shape.launches) {
    options.emplace_back("-DKLAP_LAUNCHES");
    options.push_back(fmt::format("-DKLAP_SHARED_BYTES={}", shape.shared_bytes));
  }
  if (!shape.combines) return options;
  std::string carries;
  for (const transform::ArgumentCarry& carry : shape.carries)
    carries += fmt::format("KLAP_CARRY({},{},{})", carry.offset, carry.word, carry.operation);
  options.push_back("-DKLAP_CARRIES=" + carries);
  return options;
}

}  // namespace

std::shared_ptr<const ptx::Module> promote_template(const transform::PromotedShape& shape) {
  return compiled("promote/promote.cu", promotion_options(shape));
}

std::shared_ptr<const ptx::Module> promote_link_template(const transform::PromotedShape& shape) {
  return compiled("promote/promote_link.cu", promotion_options(shape));
}

std::shared_ptr<const ptx::Module> promote_launch_template(const transform::PromotedShape& shape) {
  return compiled("promote/promote_launch.cu", promotion_options(shape));
}

}  // namespace klap::jit
