#include "jit/templates.h"

#include <fmt/format.h>

#include <map>
#include <mutex>

#include "jit/toolchain.h"

namespace klap::jit {

extern const char kQueueHeader[];
extern const char kSequenceHeader[];
extern const char kRecordTemplate[];
extern const char kConsumerTemplate[];
extern const char kExactTemplate[];
extern const char kLeaveTemplate[];

namespace {

// The oldest target that NVRTC 13 knows: what is compiled for it may be spliced into a unit of any target.
constexpr char kTemplateTarget[] = "--gpu-architecture=compute_75";

std::shared_ptr<const ptx::Module> compiled(const char* source, const std::string& name,
                                            std::vector<std::string> options) {
  // Leaked on purpose: a program may still load code while its static objects are being destroyed.
  static auto& mutex = *new std::mutex;
  static auto& done = *new std::map<std::string, std::shared_ptr<const ptx::Module>>;
  std::string key = name;
  for (const std::string& option : options) key += " " + option;
  const std::lock_guard lock(mutex);
  auto& entry = done[key];
  if (!entry) {
    options.insert(options.end(), {kTemplateTarget, "-rdc=true", "-std=c++17"});
    entry = std::make_shared<const ptx::Module>(ptx::parse(
        compile_to_ptx(source, name, options, {{"queue.h", kQueueHeader}, {"sequence.h", kSequenceHeader}}),
        name));
  }
  return entry;
}

std::vector<std::string> layout_options(const transform::RecordLayout& layout) {
  return {fmt::format("-DKLAP_ARGS_OFFSET={}", layout.arguments_offset),
          fmt::format("-DKLAP_RECORD_BYTES={}", layout.record_bytes)};
}

std::vector<std::string> shape_options(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = layout_options(shape.layout);
  options.push_back(fmt::format("-DKLAP_CHILD_X={}", shape.block[0]));
  options.push_back(fmt::format("-DKLAP_CHILD_Y={}", shape.block[1]));
  options.push_back(fmt::format("-DKLAP_CHILD_Z={}", shape.block[2]));
  return options;
}

}  // namespace

std::shared_ptr<const ptx::Module> record_template(const transform::RecordLayout& layout) {
  return compiled(kRecordTemplate, "record.cu", layout_options(layout));
}

std::shared_ptr<const ptx::Module> consumer_template(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = shape_options(shape);
  if (shape.grid_is_1d) options.emplace_back("-DKLAP_GRID_1D");
  if (shape.exact) return compiled(kExactTemplate, "exact.cu", options);
  options.push_back(fmt::format("-DKLAP_PACK={}", shape.pack));
  if (shape.together == analysis::Together::Warps) options.emplace_back("-DKLAP_WARPS_TOGETHER");
  if (shape.together == analysis::Together::Blocks) options.emplace_back("-DKLAP_BLOCKS_TOGETHER");
  return compiled(kConsumerTemplate, "consumer.cu", options);
}

std::shared_ptr<const ptx::Module> leave_template(const transform::ConsumerShape& shape) {
  std::vector<std::string> options = shape_options(shape);
  options.push_back(fmt::format("-DKLAP_CHILD_SHARED_BYTES={}", shape.shared_bytes));
  return compiled(kLeaveTemplate, "leave_grid.cu", options);
}

std::string template_texts() {
  return std::string(kQueueHeader) + kSequenceHeader + kRecordTemplate + kConsumerTemplate + kExactTemplate +
         kLeaveTemplate;
}

}  // namespace klap::jit
