#include "transform/suspension/frame_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "ptx/tree.h"

namespace klap::transform {

namespace {

using analysis::SavedRegister;
using analysis::SavedVariable;

constexpr uint64_t kSharedAlign = 8;

uint64_t rounded(uint64_t bytes) { return (bytes + kSharedAlign - 1) / kSharedAlign * kSharedAlign; }

// The widest access by which all of a variable can be copied.
uint64_t step_of(const SavedVariable& variable, uint64_t most) {
  uint64_t step = most;
  while (step > 1 && (variable.align % step != 0 || variable.bytes % step != 0)) step /= 2;
  return step;
}

// A loop in which %klap_w_a goes from `from` to `end` in steps of `by`.
std::string loop(const std::string& label, std::string_view from, std::string_view end, std::string_view by,
                 const std::string& body) {
  return fmt::format(
      "mov.u32 %klap_w_a, {1}; $klap_w_{0}: setp.ge.u32 %klap_w_p, %klap_w_a, {2}; @%klap_w_p bra "
      "$klap_w_{0}_end; {3} add.u32 %klap_w_a, %klap_w_a, {4}; bra.uni $klap_w_{0}; $klap_w_{0}_end: ",
      label, from, end, body, by);
}

// Copies `step` bytes between the variable, at %klap_w_e, and the frame, at %klap_w_f.
std::string copy_piece(const SavedVariable& variable, uint64_t step, bool to_frame) {
  const char* const space = variable.variable.is_shared ? "shared" : "local";
  const unsigned bits = static_cast<unsigned>(8 * step);
  const char* const value = step == 8 ? "%klap_w_d" : "%klap_w_b";
  const auto access = [&](const char* how, const char* memory, const char* first, const char* second) {
    return fmt::format("{}.{}.b{} {}, {}; ", how, memory, bits, first, second);
  };
  return to_frame ? access("ld", space, value, "[%klap_w_e]") + access("st", "global", "[%klap_w_f]", value)
                  : access("ld", "global", value, "[%klap_w_f]") + access("st", space, "[%klap_w_e]", value);
}

// The address in the variable of its piece `%klap_w_a`, into %klap_w_e.
std::string own_address(const SavedVariable& variable, uint64_t step) {
  return fmt::format(
      "mov.u64 %klap_w_e, {}; mul.wide.u32 %klap_w_c, %klap_w_a, {}; add.s64 %klap_w_e, %klap_w_e, "
      "%klap_w_c; ",
      variable.variable.name, step);
}

// The variable's address as a value of the register's width, into %klap_w_d or %klap_w_b.
std::string base_of(const SavedRegister& saved, bool is_wide) {
  std::string text = fmt::format("mov.u64 %klap_w_d, {}; ", saved.variable->name);
  if (saved.is_generic)
    text += fmt::format("cvta.{}.u64 %klap_w_d, %klap_w_d; ", saved.variable->is_shared ? "shared" : "local");
  return text + (is_wide ? "" : "cvt.u32.u64 %klap_w_b, %klap_w_d; ");
}

constexpr char kNextRow[] = "add.s64 %klap_w_at, %klap_w_at, %klap_w_row; ";

std::string address_value(const SavedRegister& saved, bool to_frame) {
  const bool is_wide = ptx::type_bytes(saved.type) == 8;
  const char* const value = is_wide ? "%klap_w_d" : "%klap_w_b";
  const char* const type = is_wide ? "64" : "32";
  std::string text = base_of(saved, is_wide);
  if (to_frame)
    return text +
           fmt::format("sub.s{1} {0}, {2}, {0}; st.global.b{1} [%klap_w_at], {0}; ", value, type, saved.name);
  const char* const loaded = is_wide ? "%klap_w_kept_wide" : "%klap_w_kept";
  return text + fmt::format("ld.global.b{1} {3}, [%klap_w_at]; add.s{1} {2}, {3}, {0}; ", value, type,
                            saved.name, loaded);
}

std::string plain_value(const SavedRegister& saved, bool to_frame) {
  if (saved.type == ".pred") {
    return to_frame
               ? fmt::format("selp.u32 %klap_w_b, 1, 0, {}; st.global.u32 [%klap_w_at], %klap_w_b; ",
                             saved.name)
               : fmt::format("ld.global.u32 %klap_w_kept, [%klap_w_at]; setp.ne.u32 {}, %klap_w_kept, 0; ",
                             saved.name);
  }
  const uint32_t bits = 8 * ptx::type_bytes(saved.type);
  return to_frame ? fmt::format("st.global.b{} [%klap_w_at], {}; ", bits, saved.name)
                  : fmt::format("ld.global.b{} {}, [%klap_w_at]; ", bits, saved.name);
}

}  // namespace

FrameCode::FrameCode(const analysis::Suspension& suspension) : of_(suspension) {
  for (const analysis::SuspensionPoint& point : of_.points)
    rows_ = std::max<uint64_t>(rows_, point.registers.size());
  for (const SavedVariable& variable : of_.variables) {
    if (!variable.variable.is_shared) {
      rows_ += variable.bytes / step_of(variable, kRowBytes);
    } else if (variable.bytes == 0) {
      has_dynamic_ = true;
    } else {
      static_bytes_ += rounded(variable.bytes);
    }
  }
}

std::string FrameCode::registers() {
  return fmt::format(".reg .pred {}; .reg .b32 {}; ", analysis::kEndsTogether, analysis::kAllComplete) +
         ".reg .b32 %klap_w_a, %klap_w_b, %klap_w_extent, %klap_w_part, %klap_w_tid, %klap_w_threads, "
         "%klap_w_point, %klap_w_dynamic, "
         "%klap_w_ended, %klap_w_turn, %klap_w_count, %klap_w_kept, "
         "%klap_w_ctaid_x, %klap_w_ctaid_y, %klap_w_ctaid_z, %klap_w_nctaid_x, %klap_w_nctaid_y, "
         "%klap_w_nctaid_z; "
         ".reg .b64 %klap_w_c, %klap_w_d, %klap_w_e, %klap_w_f, %klap_w_frame, %klap_w_shared, %klap_w_at, "
         "%klap_w_row, "
         "%klap_w_bytes, %klap_w_kept_wide; .reg .pred %klap_w_p; ";
}

std::string FrameCode::threads() {
  return "mov.u32 %klap_w_tid, %tid.z; mov.u32 %klap_w_extent, %ntid.y; mov.u32 %klap_w_part, %tid.y; "
         "mad.lo.u32 %klap_w_tid, %klap_w_tid, %klap_w_extent, %klap_w_part; mov.u32 %klap_w_threads, "
         "%ntid.x; "
         "mov.u32 %klap_w_part, %tid.x; mad.lo.u32 %klap_w_tid, %klap_w_tid, %klap_w_threads, %klap_w_part; "
         "mul.lo.u32 %klap_w_threads, %klap_w_threads, %klap_w_extent; mov.u32 %klap_w_extent, %ntid.z; "
         "mul.lo.u32 %klap_w_threads, %klap_w_threads, %klap_w_extent; ";
}

std::string FrameCode::layout() const {
  std::string text = fmt::format(
      "mul.wide.u32 %klap_w_shared, %klap_w_threads, 4; add.s64 %klap_w_shared, %klap_w_shared, {}; "
      "and.b64 %klap_w_shared, %klap_w_shared, -16; add.s64 %klap_w_at, %klap_w_shared, {}; ",
      kFrameHeaderBytes + 15, static_bytes_ + 15);
  if (has_dynamic_)
    text +=
        "cvt.u64.u32 %klap_w_c, %klap_w_dynamic; "
        "add.s64 %klap_w_at, %klap_w_at, %klap_w_c; ";
  return text + fmt::format(
                    "and.b64 %klap_w_at, %klap_w_at, -16; mul.wide.u32 %klap_w_row, %klap_w_threads, {}; "
                    "mul.lo.s64 %klap_w_bytes, %klap_w_row, {}; "
                    "add.s64 %klap_w_bytes, %klap_w_bytes, %klap_w_at; ",
                    kRowBytes, rows_);
}

std::string FrameCode::addresses() {
  return fmt::format(
      "add.s64 %klap_w_shared, %klap_w_shared, %klap_w_frame; add.s64 %klap_w_at, %klap_w_at, %klap_w_frame; "
      "mul.wide.u32 %klap_w_c, %klap_w_tid, {}; add.s64 %klap_w_at, %klap_w_at, %klap_w_c; ",
      kRowBytes);
}

std::string FrameCode::shared(bool to_frame) const {
  std::string text;
  uint64_t offset = 0;
  const char* const way = to_frame ? "out" : "in";
  const auto copy = [&](const SavedVariable& variable, uint64_t step, const std::string& pieces,
                        const std::string& label) {
    const std::string body =
        own_address(variable, step) +
        fmt::format("add.s64 %klap_w_f, %klap_w_shared, %klap_w_c; add.s64 %klap_w_f, %klap_w_f, {}; ",
                    offset) +
        copy_piece(variable, step, to_frame);
    text += loop(label, "%klap_w_tid", pieces, "%klap_w_threads", body);
  };
  for (size_t i = 0; i < of_.variables.size(); ++i) {
    const SavedVariable& variable = of_.variables[i];
    if (!variable.variable.is_shared || variable.bytes == 0) continue;
    const uint64_t step = step_of(variable, 4);
    copy(variable, step, fmt::format("{}", variable.bytes / step), fmt::format("{}_{}", way, i));
    offset += rounded(variable.bytes);
  }
  // All dynamic arrays are the same memory, and the launch's size need not be a multiple of any.
  const auto dynamic = std::ranges::find_if(
      of_.variables, [](const SavedVariable& each) { return each.variable.is_shared && each.bytes == 0; });
  if (dynamic != of_.variables.end()) copy(*dynamic, 1, "%klap_w_dynamic", fmt::format("{}_dynamic", way));
  return text;
}

std::string FrameCode::local(const SavedVariable& variable, bool to_frame, const std::string& label) const {
  const uint64_t step = step_of(variable, kRowBytes);
  const std::string body = own_address(variable, step) + "mov.u64 %klap_w_f, %klap_w_at; " +
                           copy_piece(variable, step, to_frame) + kNextRow;
  return loop(label, "0", fmt::format("{}", variable.bytes / step), "1", body);
}

std::string FrameCode::values(size_t number, bool to_frame) const {
  std::string text;
  for (const SavedRegister& saved : of_.points[number].registers)
    text += (saved.variable != nullptr ? address_value(saved, to_frame) : plain_value(saved, to_frame)) +
            kNextRow;
  for (size_t i = 0; i < of_.variables.size(); ++i) {
    if (!of_.variables[i].variable.is_shared)
      text += local(of_.variables[i], to_frame, fmt::format("{}_{}_{}", to_frame ? "put" : "get", number, i));
  }
  return text;
}

}  // namespace klap::transform
