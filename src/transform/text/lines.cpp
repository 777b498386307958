#include "transform/text/lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ptx/source_lines.h"

namespace klap::transform {
namespace {

using ptx::Item;
using ptx::Module;
using ptx::Statement;
using ptx::TokenKind;
using ptx::TokenRange;

constexpr std::string_view kNameSection = ".debug_str";

bool is_name_section(const Module& m, const Item& item) {
  return item.tokens.size() > 2 && m.is(item.tokens.first, ".section") &&
         m.is(item.tokens.first + 1, kNameSection);
}

// A section's bytes and where its labels stand in them.
struct Names {
  std::vector<uint8_t> bytes;
  std::map<std::string, size_t, std::less<>> labels;
};

// Nothing for a section that holds anything but labels and bytes.
std::optional<Names> read_names(const Module& m, const Item& item) {
  Names names;
  for (uint32_t t = item.tokens.first + 3; t + 1 < item.tokens.last; ++t) {
    if (m.tokens[t].kind == TokenKind::Identifier && m.is(t + 1, ":")) {
      names.labels.emplace(m.text(t), names.bytes.size());
      ++t;
    } else if (m.tokens[t].kind == TokenKind::Number) {
      const auto value = ptx::integer_value(m.text(t));
      if (!value || *value > UINT8_MAX) return std::nullopt;
      names.bytes.push_back(static_cast<uint8_t>(*value));
    } else if (!m.is(t, ".b8") && !m.is(t, ",")) {
      return std::nullopt;
    }
  }
  return names;
}

const size_t* find_label(const Names& names, std::string_view label) {
  const auto found = names.labels.find(label);
  return found == names.labels.end() ? nullptr : &found->second;
}

// The zero-terminated text at a place of a section, as the operands of `.b8`.
std::string text_at(const std::vector<uint8_t>& bytes, size_t at) {
  const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  std::vector<uint8_t> text(begin, std::find(begin, bytes.end(), uint8_t{0}));
  text.push_back(0);
  return fmt::format("{}", fmt::join(text, ","));
}

std::string section_text(const std::string& contents) {
  return contents.empty() ? "" : fmt::format(".section {}\n{{\n{}}}\n", kNameSection, contents);
}

}  // namespace

// The files and names that one module declares.
struct LineTables::Source {
  explicit Source(const Module& m) {
    for (const Item& item : m.items) {
      if (m.is(item.tokens.first, ".file") && item.tokens.size() > 2) {
        const auto number = ptx::integer_value(m.text(item.tokens.first + 1));
        const TokenRange rest = {item.tokens.first + 2, item.tokens.last};
        if (number) {
          files[static_cast<uint32_t>(*number)] = {std::string(m.text(rest.first)), std::string(m.text(rest)),
                                                   false, false};
        }
      } else if (is_name_section(m, item) && !names) {
        names = read_names(m, item);
      }
    }
  }
  std::map<uint32_t, File> files;
  std::optional<Names> names;
};

LineTables::LineTables(const Module& unit) : unit_(unit) {
  const Source& own = source(unit);
  files_ = own.files;
  for (auto& [number, file] : files_) file.own = true;
  if (!own.names) return;
  for (const auto& [label, at] : own.names->labels)
    names_[label] = {text_at(own.names->bytes, at), true, false};
}
LineTables::~LineTables() = default;
LineTables::LineTables(LineTables&&) noexcept = default;

const LineTables::Source& LineTables::source(const Module& module) {
  auto& entry = sources_[&module];
  if (!entry) entry = std::make_unique<Source>(module);
  return *entry;
}

std::optional<uint32_t> LineTables::file(const Module& module, std::string_view number) {
  const auto value = ptx::integer_value(number);
  const auto& declared = source(module).files;
  const auto found = value ? declared.find(static_cast<uint32_t>(*value)) : declared.end();
  if (found == declared.end()) {
    lose(fmt::format("lines of {}'s file {} are omitted: no .file directive declares it", module.name,
                     number));
    return std::nullopt;
  }
  auto mine = files_.find(found->first);
  if (&module != &unit_) {
    mine = std::ranges::find_if(files_, [&](const auto& f) { return f.second.path == found->second.path; });
    if (mine == files_.end()) {
      const uint32_t next = files_.empty() ? 1 : files_.rbegin()->first + 1;
      mine = files_.emplace(next, found->second).first;
    }
  }
  mine->second.used = true;
  return mine->first;
}

// The label of the text at `label` + `offset`. A displaced one gets a label of its own.
std::optional<std::string> LineTables::name(const Module& module, std::string_view label, uint64_t offset) {
  const auto& declared = source(module).names;
  const size_t* const at = declared ? find_label(*declared, label) : nullptr;
  if (at == nullptr || *at + offset >= declared->bytes.size()) {
    lose(fmt::format("names of inlined functions of {} are omitted: {} is not in a {} section of plain bytes",
                     module.name, label, kNameSection));
    return std::nullopt;
  }
  if (&module == &unit_ && offset == 0) {
    names_.find(label)->second.used = true;
    return std::string(label);
  }
  std::string bytes = text_at(declared->bytes, *at + offset);
  const auto same = std::ranges::find_if(names_, [&](const auto& n) { return n.second.bytes == bytes; });
  if (same != names_.end()) {
    same->second.used = true;
    return same->first;
  }
  std::string fresh;
  for (size_t i = 0; fresh.empty() || names_.contains(fresh); ++i) fresh = fmt::format("$L__klap_name{}", i);
  names_[fresh] = {std::move(bytes), false, true};
  return fresh;
}

void LineTables::lose(std::string what) {
  if (std::ranges::find(losses_, what) == losses_.end()) losses_.push_back(std::move(what));
}

std::string LineTables::directive(const Module& source, const Statement& loc) {
  const auto parsed = ptx::parse_line_directive(source, loc.tokens);
  if (!parsed) {
    lose(fmt::format("a .loc directive of {} has an unknown form", source.name));
    return {};
  }
  const auto number = file(source, parsed->at.file);
  if (!number) return {};
  std::string text = fmt::format(".loc\t{} {} {}", *number, parsed->at.line, parsed->at.column);
  if (parsed->function.empty() || !parsed->inlined_at) return text;
  const auto function = name(source, parsed->function, parsed->offset);
  const auto outer = file(source, parsed->inlined_at->file);
  if (!function || !outer) return text;
  return text + fmt::format(", function_name {}, inlined_at {} {} {}", *function, *outer,
                            parsed->inlined_at->line, parsed->inlined_at->column);
}

std::string LineTables::head(const Module& source, const ptx::Function& function) {
  for (const Statement& s : function.body.body) {
    const bool is_loc = s.kind == ptx::StatementKind::Directive && source.is(s.head, ".loc");
    if (is_loc) return directive(source, s);
  }
  return {};
}

void LineTables::keep(const Module& source, const Statement& body, ptx::Edits& edits) {
  ptx::for_each_statement(body, [&](const Statement& s) {
    if (s.kind != ptx::StatementKind::Directive || !source.is(s.head, ".loc")) return;
    edits.replace(s.tokens, directive(source, s));
  });
}

void LineTables::add_new(ptx::Edits& edits) const {
  std::string files, names;
  for (const auto& [number, file] : files_) {
    if (!file.own) files += fmt::format("\n.file\t{} {}", number, file.text);
  }
  for (const auto& [label, name] : names_) {
    if (!name.own) names += fmt::format("{}:\n.b8 {}\n", label, name.bytes);
  }
  const Item* last = nullptr;
  const Item* section = nullptr;
  for (const Item& item : unit_.items) {
    last = &item;
    if (is_name_section(unit_, item) && section == nullptr) section = &item;
  }
  if (last == nullptr || (files.empty() && names.empty())) return;
  // ptxas knows the labels of one section only.
  if (section != nullptr && !names.empty()) {
    edits.insert_before(section->tokens.last - 1, names);
    names.clear();
  }
  edits.insert_after(last->tokens.last - 1, files + "\n" + section_text(names));
}

std::string LineTables::used() const {
  std::string files, names;
  // All of them: the machine code's table goes by position, so that no number may be missing.
  const bool any = std::ranges::any_of(files_, [](const auto& file) { return file.second.used; });
  for (const auto& [number, file] : files_) {
    if (any) files += fmt::format(".file\t{} {}\n", number, file.text);
  }
  for (const auto& [label, name] : names_) {
    if (name.used) names += fmt::format("{}:\n.b8 {}\n", label, name.bytes);
  }
  return files + section_text(names);
}

}  // namespace klap::transform
