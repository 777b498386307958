#include "golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

#include "support/file.h"

namespace klap::test {

const std::string& Golden::section(const std::string& name) const {
  for (const auto& [key, text] : sections) {
    if (key == name) return text;
  }
  throw std::runtime_error(path.string() + ": no section " + name);
}

bool Golden::is_relaxed() const { return head.find("\n# ordering: relaxed") != std::string::npos; }

std::map<std::string, std::string, std::less<>> Golden::optimisations() const {
  const std::string key = "\n# optimise: ";
  std::map<std::string, std::string, std::less<>> out;
  const size_t at = head.find(key);
  if (at == std::string::npos) return out;
  const size_t from = at + key.size();
  std::istringstream values(head.substr(from, head.find('\n', from) - from));
  for (std::string value; std::getline(values, value, ',');) {
    const size_t middle = value.find('=');
    out.emplace(value.substr(0, middle), value.substr(middle + 1));
  }
  return out;
}

Golden read_golden(const std::filesystem::path& path) {
  Golden golden;
  golden.path = path;
  std::istringstream lines(read_file(path));
  std::string* into = &golden.head;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("--- ")) {
      golden.sections.emplace_back(line.substr(4), "");
      into = &golden.sections.back().second;
    } else {
      *into += line + "\n";
    }
  }
  return golden;
}

std::vector<std::filesystem::path> golden_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(KLAP_GOLDEN_DIR)) {
    if (entry.path().extension() == ".golden") files.push_back(entry.path());
  }
  if (files.empty()) throw std::runtime_error("no golden files in " KLAP_GOLDEN_DIR);
  std::sort(files.begin(), files.end());
  return files;
}

void expect_section(const Golden& golden, const std::string& section, const std::string& actual) {
  if (std::getenv("KLAP_REBASE") == nullptr) {
    EXPECT_EQ(golden.section(section), actual) << golden.path << " (KLAP_REBASE=1 rewrites it)";
    return;
  }
  std::string text = golden.head;
  for (const auto& [name, body] : golden.sections)
    text += "--- " + name + "\n" + (name == section ? actual : body);
  write_file(golden.path, text);
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

}  // namespace klap::test
