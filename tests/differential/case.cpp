#include "case.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

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

namespace {

Case make(const Registered& r) {
  Case c;
  c.name = r.name;
  c.about = r.about;
  c.file = r.file;
  Builder builder(c);
  r.fill(builder);
  return c;
}

const std::vector<Registered>& sorted() {
  static const bool is_done = [] {
    std::ranges::sort(registered(), {}, &Registered::name);
    return true;
  }();
  (void)is_done;
  return registered();
}

}  // namespace

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> made;
    for (const Registered& r : sorted()) made.push_back(make(r));
    return made;
  }();
  return cases;
}

std::vector<std::string> case_names(std::string_view prefix, std::string_view file) {
  std::vector<std::string> names;
  for (const Registered& r : sorted()) {
    if (r.name.starts_with(prefix) && (file.empty() || r.file == file)) names.push_back(r.name);
  }
  return names;
}

std::vector<std::string> case_files(std::string_view prefix) {
  std::set<std::string> files;
  for (const Registered& r : sorted()) {
    if (r.name.starts_with(prefix)) files.insert(r.file);
  }
  return {files.begin(), files.end()};
}

const Case* find_case(const std::string& name) {
  static std::map<std::string, Case> made;
  if (const auto known = made.find(name); known != made.end()) return &known->second;
  const auto found = std::ranges::find(sorted(), name, &Registered::name);
  return found == sorted().end() ? nullptr : &made.emplace(name, make(*found)).first->second;
}

}  // namespace klap::differential
