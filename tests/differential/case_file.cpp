#include "case_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "support/error.h"
#include "support/file.h"

namespace klap::differential {

namespace {

using nlohmann::json;

// ---- memory as text ----

uint64_t number_at(const Bytes& bytes, size_t at, uint32_t element) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, element);
  return value;
}

std::string memory_text(const Bytes& bytes, uint32_t element) {
  std::string text;
  for (size_t at = 0; at + element <= bytes.size();) {
    const uint64_t value = number_at(bytes, at, element);
    size_t end = at + element;
    while (end + element <= bytes.size() && number_at(bytes, end, element) == value) end += element;
    const size_t count = (end - at) / element;
    text += fmt::format("{}{}", text.empty() ? "" : " ", value);
    if (count > 1) text += fmt::format("*{}", count);
    at = end;
  }
  return text;
}

Bytes memory_from(const std::string& text, uint32_t element) {
  Bytes bytes;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string item = text.substr(at, end - at);
    const size_t star = item.find('*');
    const uint64_t value = std::stoull(item.substr(0, star));
    const uint64_t count = star == std::string::npos ? 1 : std::stoull(item.substr(star + 1));
    for (uint64_t i = 0; i < count; ++i) {
      const auto* first = reinterpret_cast<const std::byte*>(&value);
      bytes.insert(bytes.end(), first, first + element);
    }
    at = end + 1;
  }
  return bytes;
}

// ---- steps ----

constexpr const char* kKinds[] = {"launch", "fill", "copy", "write", "synchronise"};

json argument_json(const Argument& a) {
  if (a.kind == Argument::Kind::Address) return {{"address_of", a.buffer}, {"plus", a.offset}};
  return {{"bytes", memory_text(a.bytes, 1)}};
}

Argument argument_from(const json& j) {
  if (j.contains("address_of")) return Builder::address(j.at("address_of"), j.at("plus"));
  return {Argument::Kind::Value, memory_from(j.at("bytes"), 1), 0, 0};
}

json step_json(const Step& s, const Case& c) {
  json out = {{"do", kKinds[static_cast<size_t>(s.kind)]}, {"stream", s.stream}};
  switch (s.kind) {
    case Step::Kind::Launch: {
      json arguments = json::array();
      for (const Argument& a : s.launch.arguments) arguments.push_back(argument_json(a));
      out.update({{"kernel", s.launch.kernel},
                  {"grid", s.launch.grid},
                  {"block", s.launch.block},
                  {"shared", s.launch.shared},
                  {"arguments", std::move(arguments)},
                  {"error", s.launch_error}});
      break;
    }
    case Step::Kind::Fill:
      out.update({{"buffer", s.buffer}, {"value", s.value}});
      break;
    case Step::Kind::Copy:
      out.update({{"buffer", s.buffer}, {"from", s.from}});
      break;
    case Step::Kind::Write:
      out.update({{"buffer", s.buffer}, {"contents", memory_text(s.bytes, c.buffers.at(s.buffer).element)}});
      break;
    case Step::Kind::Synchronise:
      out["stream_only"] = s.stream_only;
      break;
  }
  return out;
}

Step step_from(const json& j, const Case& c) {
  Step s;
  const std::string kind = j.at("do");
  const auto* const found = std::find(std::begin(kKinds), std::end(kKinds), kind);
  if (found == std::end(kKinds)) throw Error(ErrorCode::Parse, "a step that does \"" + kind + "\"");
  s.kind = static_cast<Step::Kind>(found - std::begin(kKinds));
  s.stream = j.at("stream");
  s.buffer = j.value("buffer", 0U);
  s.from = j.value("from", 0U);
  s.value = j.value("value", uint8_t{0});
  s.stream_only = j.value("stream_only", false);
  s.launch_error = j.value("error", 0);
  if (s.buffer >= c.buffers.size() && s.kind != Step::Kind::Launch && s.kind != Step::Kind::Synchronise) {
    throw Error(ErrorCode::Parse, fmt::format("a step with buffer {}", s.buffer));
  }
  if (s.kind == Step::Kind::Write) s.bytes = memory_from(j.at("contents"), c.buffers[s.buffer].element);
  if (s.kind == Step::Kind::Launch) {
    s.launch = {j.at("kernel"), j.at("grid"), j.at("block"), j.at("shared"), {}};
    for (const json& a : j.at("arguments")) s.launch.arguments.push_back(argument_from(a));
  }
  return s;
}

json case_json(const Case& c, const std::string& ptx_file) {
  json buffers = json::array(), steps = json::array(), sites = json::array();
  for (const Buffer& b : c.buffers) {
    buffers.push_back({{"name", b.name},
                       {"variable", b.variable},
                       {"element_bytes", b.element},
                       {"initial", memory_text(b.initial, b.element)},
                       {"expected", memory_text(b.expected, b.element)}});
  }
  for (const Step& s : c.steps) steps.push_back(step_json(s, c));
  for (const Site& s : c.sites) {
    sites.push_back({{"parent", s.parent},
                     {"left", s.left},
                     {"left_on_device", s.left_on_device},
                     {"left_on_host", s.left_on_host},
                     {"by_warp", s.by_warp},
                     {"left_by_group", s.left_by_group}});
  }
  return {{"name", c.name},
          {"about", c.about},
          {"ptx", ptx_file},
          {"buffers", std::move(buffers)},
          {"steps", std::move(steps)},
          {"sites", std::move(sites)}};
}

Case case_from(const json& j, const std::filesystem::path& folder) {
  Case c;
  c.name = j.at("name");
  c.about = j.at("about");
  c.ptx = read_file(folder / std::string(j.at("ptx")));
  for (const json& b : j.at("buffers")) {
    const uint32_t element = b.at("element_bytes");
    if (element == 0 || element > 8)
      throw Error(ErrorCode::Parse, fmt::format("elements of {} bytes", element));
    c.buffers.push_back({b.at("name"), b.at("variable"), memory_from(b.at("initial"), element),
                         memory_from(b.at("expected"), element), element});
  }
  for (const json& s : j.at("steps")) c.steps.push_back(step_from(s, c));
  for (const json& s : j.at("sites"))
    c.sites.push_back({s.at("parent"), s.at("left"), s.at("left_on_device"), s.at("left_on_host"),
                       s.value("by_warp", ""), s.value("left_by_group", "")});
  return c;
}

}  // namespace

void write_case(const Case& c, const std::filesystem::path& file) {
  std::filesystem::path ptx = file;
  ptx.replace_extension(".ptx");
  if (file.has_parent_path()) make_folder(file.parent_path());
  write_file(ptx, c.ptx);
  write_file(file, case_json(c, ptx.filename().string()).dump(1) + "\n");
}

Case read_case(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  try {
    return case_from(json::parse(text), file.parent_path());
  } catch (const json::exception& e) {
    throw Error(ErrorCode::Parse, e.what()).at(file.string());
  } catch (const std::logic_error& e) {  // of std::stoull
    throw Error(ErrorCode::Parse, std::string("a number is none: ") + e.what()).at(file.string());
  }
}

}  // namespace klap::differential
