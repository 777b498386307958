#include "transform/suspension/split_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "analysis/launches/calls.h"
#include "analysis/suspension/second_half.h"
#include "analysis/suspension/stops_again.h"
#include "analysis/suspension/suspension.h"
#include "ptx/edit.h"
#include "support/generated_name.h"
#include "transform/suspension/frame_code.h"
#include "transform/text/parts.h"

namespace klap::transform {

namespace {

using analysis::SuspendsAt;
using analysis::Suspension;
using analysis::SuspensionPoint;
using ptx::Function;
using ptx::Module;

// The threads of a block share these words: whether children may run, whether some thread stops, how many
// have ended, and whether there was no frame.
constexpr char kPending[] = "[__klap_suspension]", kStops[] = "[__klap_suspension+4]",
               kEnded[] = "[__klap_suspension+8]", kRefused[] = "[__klap_suspension+12]";
constexpr unsigned kWordsBytes = 16;
// cudaErrorSyncDepthExceeded: the result of a wait for which there is no frame.
constexpr unsigned kNoRoom = 68;
// The block's frame, and counters of barriers with results.
constexpr auto& kControl = analysis::kSuspensionControl;
constexpr unsigned kCounters = 8, kCounterTurns = 3, kControlBytes = kCounters + 4 * kCounterTurns;
constexpr char kFrameParameter[] = "__klap_frame";

std::string barrier() { return "barrier.cta.sync 0; "; }

// The names of the device runtime's functions begin so in the unit's version.
std::string runtime_prefix(const Module& unit) {
  return unit.source.find("__cudaCDP2") != std::string::npos ? "__cudaCDP2" : "cuda";
}

// Goes to the label of the point where the thread stands.
std::string go_to_point(const Suspension& suspension, const char* label) {
  std::string text;
  for (size_t i = 0; i < suspension.points.size(); ++i) {
    if (suspension.points[i].never_stops) continue;
    text += fmt::format("setp.eq.u32 %klap_w_p, %klap_w_point, {}; @%klap_w_p bra $klap_w_{}_{}; ", i + 1,
                        label, i);
  }
  return text + "trap; ";
}

// One kernel and its second half.
class Splitter {
 public:
  Splitter(const analysis::FlowFacts& kernel, const Suspension& suspension)
      : m_(kernel.module),
        kernel_(kernel.function),
        suspension_(suspension),
        stops_again_(analysis::stops_again(kernel, suspension)),
        frame_(suspension),
        runtime_(runtime_prefix(kernel.module)) {}

  // The kernel, and the one that goes on where its threads stand.
  std::string text() const {
    return resumed_header() + "; " + std::string(m_.text(kernel_.header)) + body(false) + "\n" +
           resumed_header() + body(true);
  }
  [[nodiscard]] std::string resumed_name() const {
    return generated_name(kernel_.name, analysis::kSecondHalf);
  }
  [[nodiscard]] uint64_t bytes_per_thread() const { return frame_.bytes_per_thread(); }

 private:
  std::string resumed_header() const {
    std::string text = linkage_text(kernel_) + ".entry " + resumed_name() + "(";
    for (const ptx::Parameter& each : kernel_.parameters) text += std::string(m_.text(each.tokens)) + ", ";
    text += fmt::format(".param .u64 {}) ", kFrameParameter);
    return text + std::string(m_.text(kernel_.attributes)) + " ";
  }

  std::string body(bool is_resumed) const {
    ptx::Edits edits(m_);
    const ptx::TokenRange tokens = kernel_.body.tokens;
    // New code stands in front of all that there is, and what it needs must be declared there.
    std::string declared;
    for (const ptx::Statement& each : kernel_.body.body) {
      if (each.kind != ptx::StatementKind::Directive || !is_declaration(each)) continue;
      declared += std::string(m_.text(each.tokens)) + " ";
      edits.replace(each.tokens, "");
    }
    edits.insert_before(first_code(), declared + FrameCode::registers() + launch_registers() +
                                          (is_resumed ? resuming() : beginning()));
    for (size_t i = 0; i < suspension_.points.size(); ++i) edit_point(i, is_resumed, edits);
    for (const ptx::Statement* const launching : suspension_.launching)
      edits.insert_before(launching->tokens.first,
                          fmt::format("st.relaxed.cta.shared.u32 {}, 1; ", kPending));
    for (const ptx::Statement* const complete : suspension_.complete)
      edits.insert_before(complete->tokens.first, fmt::format("mov.u32 {}, 1; ", analysis::kAllComplete));
    replace_places(edits);
    if (is_resumed) {
      for (const ptx::Statement* const computed : suspension_.computed) edits.replace(computed->tokens, "");
    }
    if (is_resumed) drop_debug_labels(m_, kernel_.body, edits);
    replace_exits(edits);
    edits.insert_before(tokens.last - 1, "bra.uni $klap_w_end; " + ending(is_resumed) + stopping(is_resumed) +
                                             (is_resumed ? restoring() : ""));
    return edits.apply(tokens);
  }

  bool is_declaration(const ptx::Statement& directive) const {
    return m_.is(directive.head, ".reg") || m_.is(directive.head, ".local") ||
           m_.is(directive.head, ".shared");
  }

  uint32_t first_code() const {
    for (const ptx::Statement& each : kernel_.body.body)
      if (each.kind != ptx::StatementKind::Directive) return each.tokens.first;
    return kernel_.body.tokens.last - 1;
  }

  // The block's index and its grid's extents, which a grid of one block does not have.
  void replace_places(ptx::Edits& edits) const {
    const ptx::TokenRange tokens = kernel_.body.tokens;
    for (uint32_t t = tokens.first; t + 1 < tokens.last; ++t) {
      const std::string_view name = m_.text(t);
      if (name != "%ctaid" && name != "%nctaid") continue;
      edits.replace({t, t + 2}, fmt::format("%klap_w_{}_{}", name.substr(1), m_.text(t + 1).substr(1)));
    }
  }

  // The block begins with that frame.
  static std::string clear_control(std::string_view frame) {
    return fmt::format(
        "setp.ne.u32 %klap_w_p, %klap_w_tid, 0; @%klap_w_p bra $klap_w_cleared; st.shared.u64 [{}], {}; "
        "st.shared.u32 {}, 0; st.shared.u32 {}, 0; st.shared.u32 {}, 0; st.shared.u32 [{}+{}], 0; "
        "st.shared.u32 [{}+{}], 0; st.shared.u32 [{}+{}], 0; $klap_w_cleared: mov.u32 %klap_w_turn, {}; ",
        kControl, frame, kPending, kStops, kEnded, kControl, kCounters, kControl, kCounters + 4, kControl,
        kCounters + 8, kCounters);
  }

  std::string beginning() const {
    std::string text = FrameCode::threads() + clear_control("0") + barrier();
    for (const char* const name : {"ctaid", "nctaid"}) {
      for (const char axis : {'x', 'y', 'z'})
        text += fmt::format("mov.u32 %klap_w_{0}_{1}, %{0}.{1}; ", name, axis);
    }
    if (frame_.has_dynamic()) text += "mov.u32 %klap_w_dynamic, %dynamic_smem_size; ";
    return text;
  }

  // The threads that have not ended go to where they stand, once each has what it needs.
  std::string resuming() const {
    std::string text =
        FrameCode::threads() +
        fmt::format("ld.param.u64 %klap_w_frame, [{}]; cvta.to.global.u64 %klap_w_frame, %klap_w_frame; ",
                    kFrameParameter) +
        clear_control("%klap_w_frame") + block_place(false) + computed() + frame_.layout() +
        FrameCode::addresses() +
        "mul.wide.u32 %klap_w_c, %klap_w_tid, 4; add.s64 %klap_w_c, %klap_w_c, %klap_w_frame; " +
        fmt::format("ld.global.u32 %klap_w_point, [%klap_w_c+{}]; ", kFrameHeaderBytes) +
        frame_.shared(false) + barrier() +
        "setp.eq.u32 %klap_w_p, %klap_w_point, 0; @%klap_w_p bra $klap_w_restored; ";
    return text + go_to_point(suspension_, "restore");
  }

  // Computes again what is as it was before the kernel stopped.
  std::string computed() const {
    ptx::Edits edits(m_);
    replace_places(edits);
    std::string text;
    for (const ptx::Statement* const each : suspension_.computed) text += edits.apply(each->tokens) + " ";
    return text;
  }

  std::string block_place(bool to_frame) const {
    std::string text;
    unsigned offset = 0;
    const std::string size = fmt::format("[%klap_w_frame+{}]", kFrameDynamicBytes);
    if (frame_.has_dynamic())
      text += to_frame ? fmt::format("st.global.u32 {}, %klap_w_dynamic; ", size)
                       : fmt::format("ld.global.u32 %klap_w_dynamic, {}; ", size);
    for (const char* const name : {"ctaid", "nctaid"}) {
      for (const char axis : {'x', 'y', 'z'}) {
        const std::string reg = fmt::format("%klap_w_{}_{}", name, axis),
                          at = fmt::format("[%klap_w_frame+{}]", offset);
        text += to_frame ? fmt::format("st.global.u32 {}, {}; ", at, reg)
                         : fmt::format("ld.global.u32 {}, {}; ", reg, at);
        offset += 4;
      }
    }
    return text;
  }

  // The block keeps the frame for when it stops again.
  std::string restoring() const {
    std::string text;
    for (size_t i = 0; i < suspension_.points.size(); ++i)
      if (!suspension_.points[i].never_stops)
        text += fmt::format("$klap_w_restore_{}: {} bra.uni $klap_w_restored; ", i, frame_.values(i, false));
    text += "$klap_w_restored: " + barrier() +
            "setp.eq.u32 %klap_w_p, %klap_w_point, 0; @%klap_w_p bra $klap_w_end; ";
    return text + go_to_point(suspension_, "at");
  }

  // Goes on where nothing has been launched.
  static std::string look_for_launches(size_t number) {
    return fmt::format(
        "ld.relaxed.cta.shared.u32 %klap_w_pending, {}; setp.eq.u32 %klap_w_idle, %klap_w_pending, 0; "
        "@%klap_w_idle bra $klap_w_at_{}; ",
        kPending, number);
  }

  void edit_point(size_t number, bool is_resumed, ptx::Edits& edits) const {
    const SuspensionPoint& point = suspension_.points[number];
    const std::string stop = fmt::format("mov.u32 %klap_w_point, {}; bra.uni ", number + 1);
    const std::string label = fmt::format("$klap_w_at_{}: ", number);
    if (point.at == SuspendsAt::Wait) {
      const bool may_fail = point.tells_result && may_go_on(is_resumed);
      edits.insert_before(point.statement->tokens.first,
                          (point.is_certain ? "" : look_for_launches(number)) +
                              (may_fail ? stop_or_fail(number) : stop + "$klap_w_suspend; ") + label);
      leave_out_wait(number, may_fail, edits);
      return;
    }
    if (!point.never_stops) edits.insert_before(point.statement->tokens.first, label);
    edits.replace(point.instruction->tokens, barrier_at(number, is_resumed));
  }

  // Where there is no frame, the thread comes to the barrier once more.
  [[nodiscard]] std::string barrier_at(size_t number, bool is_resumed) const {
    const SuspensionPoint& point = suspension_.points[number];
    const bool has_result = point.at == SuspendsAt::BarrierWithResult;
    const std::string come = has_result ? counting(*point.instruction) : meeting(),
                      go = has_result ? result(*point.instruction) : "";
    if (point.never_stops || (is_resumed && !stops_again_)) return come + go;
    const std::string stop =
        fmt::format("@!%klap_w_stop bra $klap_w_met_{}; mov.u32 %klap_w_point, {}; ", number, number + 1);
    const std::string leave = "bra.uni $klap_w_leave; ", met = fmt::format("$klap_w_met_{}: ", number);
    if (!may_go_on(is_resumed)) return come + stop + leave + met + go;
    return fmt::format("$klap_w_again_{}: ", number) + come + stop +
           try_frame(fmt::format("{}", number), fmt::format("$klap_w_refused_{}", number)) + leave +
           fmt::format("$klap_w_refused_{}: ", number) + (has_result ? counted(*point.instruction, -1) : "") +
           fmt::format("bra.uni $klap_w_again_{}; ", number) + met + go;
  }

  // Waits always succeed, but those for which there is no frame.
  void leave_out_wait(size_t number, bool may_fail, ptx::Edits& edits) const {
    const SuspensionPoint& point = suspension_.points[number];
    if (point.statement == point.instruction) return;
    const analysis::CallScope scope = analysis::read_call_scope(m_, *point.statement, *point.instruction);
    if (!scope.problem.empty()) return;
    std::string text = scope.result.empty() ? "" : fmt::format("mov.b32 {}, 0;", scope.result);
    if (may_fail)
      text += fmt::format(
          " bra.uni $klap_w_behind_{0}; $klap_w_refused_{0}: mov.b32 {1}, {2}; $klap_w_behind_{0}:", number,
          scope.result, kNoRoom);
    edits.replace(point.statement->tokens, text);
  }

  // True if the kernel has waits that return an error where there is no frame, so that the block goes on. The
  // second half has the frame of the first one.
  [[nodiscard]] bool may_go_on(bool is_resumed) const {
    return !is_resumed && std::ranges::any_of(suspension_.points, &SuspensionPoint::tells_result);
  }

  // The thread stops at a wait if there is a frame. Otherwise it goes on behind the wait.
  [[nodiscard]] std::string stop_or_fail(size_t number) const {
    return fmt::format("mov.u32 %klap_w_point, {}; st.relaxed.cta.shared.u32 {}, 1; ", number + 1, kStops) +
           meeting() + try_frame(fmt::format("{}", number), fmt::format("$klap_w_refused_{}", number)) +
           "bra.uni $klap_w_leave; ";
  }

  // All threads of the block have met, and one of them stops. The first thread takes a frame. If there is
  // none, nobody stops, and each thread goes to that label of its own. This is written at each place, since
  // a place in common would look like a loop with all launches in it. Its registers are used for nothing that
  // a launch may have to do with.
  [[nodiscard]] std::string try_frame(const std::string& place, const std::string& refused) const {
    return frame_.layout() +
           fmt::format(
               "setp.ne.u32 %klap_w_not_first, %klap_w_tid, 0; @%klap_w_not_first bra $klap_w_tried_{}; ",
               place) +
           take_frame("%klap_w_taken") +
           fmt::format(
               "setp.eq.s64 %klap_w_none, %klap_w_taken, 0; selp.u32 %klap_w_no_room, 1, 0, %klap_w_none; "
               "st.shared.u32 {0}, %klap_w_no_room; st.relaxed.cta.shared.u32 {1}, 0; "
               "cvta.to.global.u64 %klap_w_taken, %klap_w_taken; st.shared.u64 [{2}], %klap_w_taken; "
               "$klap_w_tried_{3}: {4}ld.shared.u32 %klap_w_no_room, {0}; "
               "setp.ne.u32 %klap_w_refused, %klap_w_no_room, 0; @%klap_w_refused bra {5}; ",
               kRefused, kStops, kControl, place, barrier(), refused);
  }

  static std::string take_frame(std::string_view to) {
    return fmt::format(
        "{{ .param .b64 param0; st.param.b64 [param0+0], %klap_w_bytes; .param .b64 retval0; "
        "call.uni (retval0), {}, (param0); ld.param.b64 {}, [retval0+0]; }} ",
        analysis::kTakeFrame, to);
  }

  // A barrier with a result, among the threads that have not ended. They count in one of three counters, the
  // next one each time. When a meeting is over, nobody reads the last one any more, and nobody counts in it
  // before the next meeting is over: so it is cleared then.
  std::string counting(const ptx::Statement& barrier) const {
    return fmt::format("mov.u32 %klap_w_a, {}; add.u32 %klap_w_a, %klap_w_a, %klap_w_turn; ", kControl) +
           counted(barrier, 1) + meeting("ld.shared.u32 %klap_w_count, [%klap_w_a]; ");
  }
  [[nodiscard]] std::string counted(const ptx::Statement& barrier, int by) const {
    return fmt::format("selp.u32 %klap_w_b, {}, 0, {}; red.shared.add.u32 [%klap_w_a], %klap_w_b; ", by,
                       predicate(barrier));
  }
  std::string predicate(const ptx::Statement& barrier) const {
    const std::string text = m_.compact(barrier.operands[2]);
    return text.starts_with("!") ? text.substr(1) : text;
  }

  std::string result(const ptx::Statement& barrier) const {
    const std::string to = m_.compact(barrier.operands[0]);
    // The counter of the last turn: the one before, in a ring.
    std::string text = fmt::format(
        "setp.eq.u32 %klap_w_p, %klap_w_turn, {0}; selp.u32 %klap_w_b, {2}, -4, %klap_w_p; add.u32 "
        "%klap_w_a, %klap_w_a, "
        "%klap_w_b; st.shared.u32 [%klap_w_a], 0; setp.eq.u32 %klap_w_p, %klap_w_turn, {1}; "
        "selp.u32 %klap_w_b, -{2}, 4, %klap_w_p; add.u32 %klap_w_turn, %klap_w_turn, %klap_w_b; "
        "sub.u32 %klap_w_b, %klap_w_threads, %klap_w_ended; ",
        kCounters, kCounters + 4 * (kCounterTurns - 1), 4 * (kCounterTurns - 1));
    if (is_negated(barrier)) text += "sub.u32 %klap_w_count, %klap_w_b, %klap_w_count; ";
    if (m_.has_modifier(barrier, ".popc")) return text + fmt::format("mov.b32 {}, %klap_w_count; ", to);
    return text + (m_.has_modifier(barrier, ".and")
                       ? fmt::format("setp.eq.u32 {}, %klap_w_count, %klap_w_b; ", to)
                       : fmt::format("setp.ne.u32 {}, %klap_w_count, 0; ", to));
  }
  bool is_negated(const ptx::Statement& barrier) const {
    return m_.compact(barrier.operands[2]).starts_with("!");
  }

  // All threads of the block meet. The predicate says whether some thread stops, and %klap_w_ended how many
  // have ended. Nobody changes these between the two barriers, so all read the same.
  static std::string meeting(const char* reading = "") {
    return barrier() +
           fmt::format("ld.shared.u32 %klap_w_stops, {}; ld.shared.u32 %klap_w_ended, {}; ", kStops, kEnded) +
           reading + barrier() + "setp.ne.u32 %klap_w_stop, %klap_w_stops, 0; ";
  }

  // Threads that have ended go on to take part in meetings, until all have. So no thread leaves before the
  // others, which not every engine could bear.
  [[nodiscard]] std::string ending(bool is_resumed) const {
    return fmt::format("$klap_w_end: mov.u32 %klap_w_point, 0; red.shared.add.u32 {}, 1; $klap_w_wait: ",
                       kEnded) +
           meeting() + leaving_ended(is_resumed) +
           "setp.lt.u32 %klap_w_others, %klap_w_ended, %klap_w_threads; "
           "@%klap_w_others bra $klap_w_wait; " +
           (is_resumed ? give_frame() : "") + "ret; ";
  }

  [[nodiscard]] std::string leaving_ended(bool is_resumed) const {
    if (is_resumed && !stops_again_) return "";
    if (!may_go_on(is_resumed)) return "@%klap_w_stop bra $klap_w_leave; ";
    return "@!%klap_w_stop bra $klap_w_stays; " + try_frame("end", "$klap_w_wait") +
           "bra.uni $klap_w_leave; $klap_w_stays: ";
  }

  // The first thread gives back the block's frame.
  static std::string give_frame() {
    return fmt::format(
        "setp.ne.u32 %klap_w_p, %klap_w_tid, 0; @%klap_w_p bra $klap_w_given; "
        "ld.shared.u64 %klap_w_frame, [{}]; cvta.global.u64 %klap_w_frame, %klap_w_frame; "
        "{{ .param .b64 param0; st.param.b64 [param0+0], %klap_w_frame; call.uni {}, (param0); }} "
        "$klap_w_given: ",
        kControl, analysis::kGiveFrame);
  }

  void replace_exits(ptx::Edits& edits) const {
    ptx::for_each_statement(kernel_.body, [&](const ptx::Statement& s) {
      if (s.kind != ptx::StatementKind::Instruction || !(m_.is(s.head, "ret") || m_.is(s.head, "exit")))
        return;
      edits.replace({s.head, s.tokens.last}, "bra $klap_w_end;");
    });
  }

  // A thread that waits meets the others at their barrier, so that none of them goes on. If the program does
  // not look at the wait's result, it would take an error for success. So the kernel rather fails.
  [[nodiscard]] std::string suspending(bool is_resumed) const {
    const bool others_go_on = may_go_on(is_resumed);
    const bool is_used = !others_go_on || std::ranges::any_of(suspension_.points, [](const auto& point) {
      return point.at == SuspendsAt::Wait && !point.tells_result;
    });
    if (!is_used) return "";
    return fmt::format("$klap_w_suspend: st.relaxed.cta.shared.u32 {}, 1; ", kStops) + meeting() +
           (others_go_on ? try_frame("suspend", "$klap_w_failed") : "");
  }

  // All threads of the block come here.
  [[nodiscard]] std::string stopping(bool is_resumed) const {
    std::string text = suspending(is_resumed) + "$klap_w_leave: " + frame_.layout() +
                       "setp.ne.u32 %klap_w_p, %klap_w_tid, 0; @%klap_w_p bra $klap_w_made; " +
                       make_frame(is_resumed) + "$klap_w_made: " + (may_go_on(is_resumed) ? "" : barrier());
    text += fmt::format("ld.shared.u64 %klap_w_frame, [{}]; ", kControl) + FrameCode::addresses() +
            frame_.shared(true) +
            "mul.wide.u32 %klap_w_c, %klap_w_tid, 4; add.s64 %klap_w_c, %klap_w_c, %klap_w_frame; " +
            fmt::format("st.global.u32 [%klap_w_c+{}], %klap_w_point; ", kFrameHeaderBytes) +
            "setp.eq.u32 %klap_w_p, %klap_w_point, 0; @%klap_w_p bra $klap_w_saved; " + check_error() +
            go_to_point(suspension_, "save");
    for (size_t i = 0; i < suspension_.points.size(); ++i)
      if (!suspension_.points[i].never_stops)
        text += fmt::format("$klap_w_save_{}: {} bra.uni $klap_w_saved; ", i, frame_.values(i, true));
    return text + "$klap_w_saved: " + barrier() +
           "setp.ne.u32 %klap_w_p, %klap_w_tid, 0; @%klap_w_p bra $klap_w_left; " + launch();
  }

  // An error that the program may ask for later must not be lost, so the kernel rather fails.
  std::string check_error() const {
    if (!suspension_.asks_for_errors) return "";
    return fmt::format(
        "{{ .param .b32 retval0; call.uni (retval0), {}, (); ld.param.b32 %klap_w_last, [retval0+0]; }} "
        "setp.ne.u32 %klap_w_fails, %klap_w_last, 0; @%klap_w_fails bra $klap_w_failed; ",
        (runtime_ + "PeekAtLastError"));
  }

  // One that the block has from when it stopped before, or else a new one.
  [[nodiscard]] std::string make_frame(bool is_resumed) const {
    std::string text;
    if (may_go_on(is_resumed))  // try_frame() has taken it
      return fmt::format("ld.shared.u64 %klap_w_frame, [{}]; ", kControl) + block_place(true);
    if (is_resumed)
      text = fmt::format(
          "ld.shared.u64 %klap_w_frame, [{}]; setp.ne.s64 %klap_w_p, %klap_w_frame, 0; "
          "@%klap_w_p bra $klap_w_has_frame; ",
          kControl);
    return text + take_frame("%klap_w_frame") +
           fmt::format(
               "setp.ne.s64 %klap_w_p, %klap_w_frame, 0; @%klap_w_p bra $klap_w_has_new; trap; "
               "$klap_w_has_new: cvta.to.global.u64 %klap_w_frame, %klap_w_frame; "
               "st.shared.u64 [{}], %klap_w_frame; $klap_w_has_frame: ",
               kControl) +
           block_place(true);
  }

  // Each has one value, as the analyses of launches want it.
  std::string launch_registers() const {
    return fmt::format(
        ".reg .b64 %klap_w_callee, %klap_w_buffer, %klap_w_value, %klap_w_wide<{0}>; "
        ".reg .b32 %klap_w_error, %klap_w_ntid_x, %klap_w_ntid_y, %klap_w_ntid_z, "
        "%klap_w_word<{0}>; .reg .pred %klap_w_null; .reg .b32 %klap_w_stops, %klap_w_pending, %klap_w_last; "
        ".reg .pred %klap_w_stop, %klap_w_idle, %klap_w_others, %klap_w_fails; .reg .b64 %klap_w_taken; .reg "
        ".b32 %klap_w_no_room; "
        ".reg .pred %klap_w_not_first, %klap_w_none, %klap_w_refused; ",
        kernel_.parameter_bytes + 1);
  }

  // In the form of nvcc's launches, which the analyses know.
  std::string launch() const {
    std::string text = fmt::format(
        "cvta.global.u64 %klap_w_value, %klap_w_frame; mov.u64 %klap_w_callee, {}; ", resumed_name());
    for (const char axis : {'x', 'y', 'z'})
      text += fmt::format("mov.u32 %klap_w_ntid_{0}, %ntid.{0}; ", axis);
    text +=
        "{ .param .b64 param0; st.param.b64 [param0+0], %klap_w_callee; .param .align 4 .b8 param1[12]; "
        "st.param.b32 [param1+0], 1; st.param.b32 [param1+4], 1; st.param.b32 [param1+8], 1; "
        ".param .align 4 .b8 param2[12]; st.param.b32 [param2+0], %klap_w_ntid_x; "
        "st.param.b32 [param2+4], %klap_w_ntid_y; st.param.b32 [param2+8], %klap_w_ntid_z; "
        ".param .b32 param3; st.param.b32 [param3+0], ";
    text += frame_.has_dynamic() ? "%klap_w_dynamic" : "0";
    text +=
        "; .param .b64 retval0; "
        "call.uni (retval0), " +
        (runtime_ + "GetParameterBufferV2") +
        ", (param0, param1, param2, param3); "
        "ld.param.b64 %klap_w_buffer, [retval0+0]; } "
        "setp.eq.s64 %klap_w_null, %klap_w_buffer, 0; @%klap_w_null bra $klap_w_failed; ";
    text += arguments();
    return text +
           "{ .param .b64 param0; st.param.b64 [param0+0], %klap_w_buffer; .param .b64 param1; "
           "st.param.b64 [param1+0], 3; .param .b32 retval0; "
           "call.uni (retval0), " +
           (runtime_ + "LaunchDeviceV2") +
           ", (param0, param1); ld.param.b32 %klap_w_error, "
           "[retval0+0]; } "
           "setp.ne.u32 %klap_w_p, %klap_w_error, 0; @%klap_w_p bra $klap_w_failed; $klap_w_left: ret; "
           "$klap_w_failed: trap; ";
  }

  // The kernel's own arguments and its frame, into the buffer.
  std::string arguments() const {
    std::string text;
    size_t number = 0;
    for (const ptx::Parameter& each : kernel_.parameters) {
      const uint32_t unit = ptx::type_bytes(each.type);
      const uint32_t align = std::max(each.align, unit);
      for (uint32_t offset = 0; offset < each.bytes;) {
        uint32_t step = std::min(align, 8u);
        while (offset % step != 0 || offset + step > each.bytes) step /= 2;
        text += fmt::format("ld.param.u{0} {1}, [{2}+{3}]; st.u{0} [%klap_w_buffer+{4}], {1}; ", 8 * step,
                            fmt::format("%klap_w_{}{}", step == 8 ? "wide" : "word", number++), each.name,
                            offset, each.offset + offset);
        offset += step;
      }
    }
    return text +
           fmt::format("st.u64 [%klap_w_buffer+{}], %klap_w_value; ", round_up(kernel_.parameter_bytes, 8));
  }

  const Module& m_;
  const Function& kernel_;
  const Suspension& suspension_;
  const bool stops_again_;
  const FrameCode frame_;
  const std::string runtime_;
};

}  // namespace

SplitKernel split_kernel(const analysis::FlowFacts& kernel, const Suspension& suspension) {
  const Splitter splitter(kernel, suspension);
  return {splitter.text(), splitter.resumed_name(), splitter.bytes_per_thread()};
}

// Functions that the new code calls, where the unit declares none, and what its blocks share.
std::string split_declarations(const Module& unit) {
  static const std::pair<const char*, const char*> kOfRuntime[] = {
      {"GetParameterBufferV2",
       "(.param .b64 a, .param .align 4 .b8 b[12], .param .align 4 .b8 c[12], .param .b32 d)"},
      {"LaunchDeviceV2", "(.param .b64 a, .param .b64 b)"},
      {"PeekAtLastError", "()"}};
  const std::string prefix = runtime_prefix(unit);
  std::string text =
      fmt::format(".extern .func (.param .b64 r) {} (.param .b64 a); .extern .func {} (.param .b64 a); ",
                  analysis::kTakeFrame, analysis::kGiveFrame);
  for (const auto& [name, parameters] : kOfRuntime) {
    const std::string function = prefix + name;
    const char* const result = std::string_view(name).starts_with("Get") ? ".b64" : ".b32";
    if (unit.find_function(function) == nullptr)
      text += fmt::format(".extern .func (.param {} r) {} {}; ", result, function, parameters);
  }
  return text + fmt::format(".shared .align 4 .b8 {}[{}]; .shared .align 8 .b8 {}[{}]; ",
                            analysis::kSuspensionWords, kWordsBytes, kControl, kControlBytes);
}

}  // namespace klap::transform
