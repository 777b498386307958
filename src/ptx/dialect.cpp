#include "ptx/dialect.h"

#include <algorithm>
#include <charconv>

namespace klap::ptx {
namespace {

constexpr uint32_t kFirstWithIndependentThreads = 70;

// Reads a number at the front of `text` and drops it; nothing where there is none.
std::optional<uint32_t> take_number(std::string_view& text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

// True if every device that runs code for `narrow` also runs code for `wide`, with everything that this may
// use.
bool covers(const Target& narrow, const Target& wide) {
  switch (wide.suffix) {
    case 'a':
      return narrow == wide;
    case 'f':
      return narrow.suffix != '\0' && narrow.arch >= wide.arch && narrow.arch / 10 == wide.arch / 10;
    default:
      return narrow.arch >= wide.arch;
  }
}

// The candidates from wide to narrow: a merge may need the higher architecture with the other's suffix.
std::optional<Target> merged(const Target& a, const Target& b) {
  const uint32_t arch = std::max(a.arch, b.arch);
  for (const char suffix : {'\0', 'f', 'a'}) {
    const Target both{arch, suffix};
    if (covers(both, a) && covers(both, b)) return both;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Version> parse_version(std::string_view text) {
  const auto major = take_number(text);
  if (!major || !text.starts_with('.')) return std::nullopt;
  text.remove_prefix(1);
  const auto minor = take_number(text);
  if (!minor || !text.empty()) return std::nullopt;
  return Version{*major, *minor};
}

std::optional<Target> parse_target(std::string_view text) {
  if (!text.starts_with("sm_")) return std::nullopt;
  text.remove_prefix(3);
  const auto arch = take_number(text);
  if (!arch || (!text.empty() && text != "a" && text != "f")) return std::nullopt;
  return Target{*arch, text.empty() ? '\0' : text[0]};
}

std::string to_string(const Version& version) {
  return std::to_string(version.major) + "." + std::to_string(version.minor);
}

std::string to_string(const Target& target) {
  std::string text = "sm_" + std::to_string(target.arch);
  if (target.suffix != '\0') text += target.suffix;
  return text;
}

uint32_t target_directive(const Module& module) {
  for (const Item& item : module.items) {
    if (item.kind == ItemKind::Target) return item.tokens.first;
  }
  return 0;
}

Dialect dialect_of(const Module& module) {
  const auto version = parse_version(module.version);
  const auto target = parse_target(module.target);
  if (!version || !target) {
    const Position where = module.position(target_directive(module));
    throw Error(ErrorCode::Unsupported,
                "PTX of version '" + module.version + "' for target '" + module.target + "' is not known")
        .at(module.name, where.line, where.column);
  }
  return {*version, *target};
}

bool runs_on(const Target& target, uint32_t sm) {
  switch (target.suffix) {
    case 'a':
      return target.arch == sm;
    case 'f':
      return target.arch <= sm && target.arch / 10 == sm / 10;
    default:
      return target.arch <= sm;
  }
}

std::optional<Dialect> merged(const Dialect& a, const Dialect& b) {
  const auto target = merged(a.target, b.target);
  if (!target) return std::nullopt;
  return Dialect{std::max(a.version, b.version), *target};
}

bool runs_in_lockstep(const Target& target) { return target.arch < kFirstWithIndependentThreads; }

}  // namespace klap::ptx
