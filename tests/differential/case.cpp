#include "case.h"

#include <algorithm>
#include <filesystem>

namespace klap::differential {

namespace {

struct Registered {
  std::string name, file, about;
  void (*fill)(Builder&);
};

// Filled in by the Registration objects, before main.
std::vector<Registered>& registered() {
  static std::vector<Registered> all;
  return all;
}

}  // namespace

Registration::Registration(const char* name, const char* file, const char* about, void (*fill)(Builder&)) {
  registered().push_back({name, std::filesystem::path(file).stem().string() + ".ptx", about, fill});
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = [] {
    std::ranges::sort(registered(), {}, &Registered::name);
    std::vector<Case> made;
    for (const Registered& r : registered()) {
      Case c;
      c.name = r.name;
      c.about = r.about;
      c.file = r.file;
      Builder builder(c);
      r.fill(builder);
      made.push_back(std::move(c));
    }
    return made;
  }();
  return cases;
}

const Case* find_case(const std::string& name) {
  const auto found = std::ranges::find(all_cases(), name, &Case::name);
  return found == all_cases().end() ? nullptr : &*found;
}

}  // namespace klap::differential
