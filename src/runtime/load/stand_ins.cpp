#include "runtime/load/stand_ins.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "container/image.h"
#include "jit/plan/newer_version.h"
#include "ptx/tree.h"
#include "runtime/calling_context.h"
#include "runtime/driver.h"
#include "runtime/load/first_image.h"
#include "runtime/process.h"
#include "support/error.h"
#include "support/hash.h"
#include "support/log.h"
#include "transform/runtime_calls/stand_in.h"

namespace klap::runtime {
namespace {

bool mentions_wait(std::string_view ptx) {
  return ptx.find("cudaDeviceSynchronize") != std::string_view::npos;
}

// The PTX of a fatbin that a linker would compile and that may wait; empty if there is none.
std::string waiting_ptx(const container::Fatbin& fatbin, uint32_t sm) {
  if (container::best_cubin(fatbin, sm) != nullptr) return "";
  const container::FatbinEntry* const entry = container::best_ptx(fatbin, sm);
  std::string ptx = entry != nullptr ? entry->payload() : "";
  return mentions_wait(ptx) ? ptx : "";
}

// Splits an input into pieces.
class Pieces {
 public:
  Pieces(const AddedCode& code, const std::string& options, uint32_t sm)
      : code_(code), options_(options), sm_(sm) {}

  std::vector<LinkPiece> take() {
    if (code_.kind == CodeKind::Ptx) {
      add_ptx(code_.bytes, code_.name);
    } else {
      for_each_image(
          code_.bytes, code_.name,
          [&](const container::FileImage& image, const std::string& name) { add_image(image, name); });
    }
    return std::move(pieces_);
  }

 private:
  void add_image(const container::FileImage& image, const std::string& name) {
    if (image.kind == container::ImageKind::Ptx) return add_ptx(image.text, name);
    if (image.kind == container::ImageKind::Cubin)
      return pieces_.push_back({LinkPiece::Kind::Cubin, name, image.text}), void();
    for (const container::Fatbin& fatbin : image.units) add_fatbin(fatbin, name);
  }

  void add_fatbin(const container::Fatbin& fatbin, const std::string& name) {
    if (fatbin.bytes.empty()) return;
    if (const std::string ptx = waiting_ptx(fatbin, sm_); !ptx.empty()) return add_ptx(ptx, name);
    const auto* const begin = reinterpret_cast<const char*>(fatbin.bytes.data());
    pieces_.push_back({LinkPiece::Kind::Fatbin, name, std::string(begin, fatbin.bytes.size())});
  }

  void add_ptx(const std::string& ptx, const std::string& name) {
    if (!mentions_wait(ptx)) return pieces_.push_back({LinkPiece::Kind::Ptx, name, ptx}), void();
    const jit::NewerVersion newer = jit::in_newer_version(jit::program_from_ptx(ptx, name), sm_);
    if (!newer.program)
      throw Error(ErrorCode::Unsupported,
                  "code that waits for its children cannot be rewritten: " + newer.problem);
    const std::string hash = Hasher().add(options_).add(code_.options).add(code_.bytes).add(ptx).hex();
    pieces_.push_back({LinkPiece::Kind::Ptx, name,
                       transform::without_code(ptx::parse(ptx, name), std::string(kStandInMark) + hash)});
  }

  const AddedCode& code_;
  const std::string& options_;
  const uint32_t sm_;
  std::vector<LinkPiece> pieces_;
};

// The user wants no launch rewritten.
bool is_off() {
  const auto granularity = config().setting_for("granularity", "", "");
  return granularity && granularity->text == "none";
}

// The compute capability of a link's target: "90", "65626" (90a for the driver) or "-arch=sm_90a".
uint32_t capability_for(const std::string& target) {
  if (target.empty()) return driver() != nullptr ? target_capability(false) : 0;
  constexpr uint32_t kOfKind = 0x10000;  // what the driver adds for 90a and 100f
  const size_t begin = std::min(target.find_first_of("0123456789"), target.size());
  uint32_t number = 0;
  std::from_chars(target.data() + begin, target.data() + target.size(), number);
  return number % kOfKind;
}

}  // namespace

bool may_wait(const AddedCode& code, uint32_t sm) {
  if (code.kind == CodeKind::Ptx) return mentions_wait(code.bytes);
  if (code.kind != CodeKind::Binary) return false;
  bool may = false;
  for_each_image(code.bytes, code.name, [&](const container::FileImage& image, const std::string&) {
    may = may || (image.kind == container::ImageKind::Ptx && mentions_wait(image.text)) ||
          std::ranges::any_of(image.units, [sm](const container::Fatbin& fatbin) {
            return !waiting_ptx(fatbin, sm).empty();
          });
  });
  return may;
}

std::vector<LinkPiece> with_stand_ins(const AddedCode& code, const std::string& options, uint32_t sm) {
  return Pieces(code, options, sm).take();
}

bool holds_stand_in(std::string_view machine_code) {
  return container::has_symbol_like(machine_code, kStandInMark);
}

std::optional<int> add_stand_in(const CalledLinker& linker, const AddedCode& code) {
  const auto options = ProgramLinks::instance().options_of(linker.link);
  if (!options || is_off()) return std::nullopt;
  const uint32_t sm = capability_for(options->target);
  if (!may_wait(code, sm) || !linker.refuses(options->target)) return std::nullopt;
  first_image_loaded();
  std::vector<LinkPiece> pieces;
  in_own_thread([&] { pieces = with_stand_ins(code, options->ptxas, sm); });
  for (const LinkPiece& piece : pieces)
    if (const int result = linker.add(piece); result != 0) return result;
  ProgramLinks::instance().add(linker.link, code);
  log().info("{}: {} waits for its children, and the linker refuses it: it is rewritten when it is loaded",
             linker.entry_point, code.name);
  return 0;
}

}  // namespace klap::runtime
