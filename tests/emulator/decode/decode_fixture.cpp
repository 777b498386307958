#include "decode_fixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace klap::emulator {

Linked::Linked(const std::vector<std::string>& units) {
  std::vector<const ptx::Module*> pointers;
  for (const std::string& text : units) {
    const std::string name(1, static_cast<char>('a' + modules_.size()));
    pointers.push_back(&modules_.emplace_back(ptx::parse(std::string(kHeader) + text, name + ".ptx")));
  }
  image_ = link_image(pointers, memory_);
}

const Function& Linked::function(std::string_view name) const {
  for (const auto& f : image_->functions) {
    if (f->name == name) return *f;
  }
  throw Error(ErrorCode::Internal, fmt::format("no function {}", name));
}

const Variable& Linked::variable(std::string_view name) const {
  for (const Variable& v : image_->variables) {
    if (v.name == name) return v;
  }
  throw Error(ErrorCode::Internal, fmt::format("no variable {}", name));
}

std::string kernel(std::string_view statements) {
  return fmt::format(
      ".visible .global .align 8 .b8 gv[64];\n.visible .shared .align 8 .b8 sv[32];\n"
      ".visible .entry k(.param .u64 pa, .param .u32 pb) {{\n"
      ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 "
      "%fd<9>; "
      ".reg .b128 %q<4>; .reg .v4 .f32 %v<3>; .local .align 8 .b8 lv[24];\n{}\n}}\n",
      statements);
}

std::vector<std::string> listing(const Image& image, const Function& function) {
  std::vector<std::string> out;
  std::istringstream text(print(image, function));
  for (std::string line; std::getline(text, line);) {
    const size_t place = line.find(": line ");
    if (place == std::string::npos) continue;
    out.push_back(line.substr(line.find(' ', place + 7) + 1));
  }
  return out;
}

std::vector<std::string> listing(std::string_view statements) {
  const Linked linked({kernel(statements)});
  const Function& f = linked.function("k");
  if (!f.unsupported.empty()) return {f.unsupported};
  std::vector<std::string> out = listing(linked.image(), f);
  if (!out.empty() && out.back() == "Exit }") out.pop_back();
  return out;
}

std::string link_failure(const std::vector<std::string>& units, ErrorCode code) {
  try {
    const Linked linked(units);
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), std::string(to_string(code)));
    return error.what();
  }
  return {};
}

}  // namespace klap::emulator
