// The config file: TOML text into a Config, with every problem at its line and column.
//
// The only file that sees toml++, which is slow to compile. It is used header-only: a preloaded library
// should not pull another shared library into other people's processes. toml++ keeps the keys of a table
// sorted by name, so problems are collected first and then put into the order of the file.
#undef TOML_HEADER_ONLY
#define TOML_HEADER_ONLY 1
#undef TOML_SHARED_LIB
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>

#include "settings/config.h"
#include "settings/spelling.h"
#include "settings/table.h"
#include "support/error.h"

namespace klap::settings {

namespace {

std::string hint_for(std::string_view word, const std::vector<std::string_view>& valid) {
  std::string hint = fmt::format("use one of: {}", fmt::join(valid, ", "));
  if (const auto near = nearest(word, valid)) hint = fmt::format("did you mean '{}'? {}", *near, hint);
  return hint;
}

// A variable as the key of the same setting: KLAP_GRANULARITY as granularity.
std::string as_key(std::string_view word) {
  constexpr std::string_view kPrefix = "KLAP_";
  std::string key(word.substr(word.starts_with(kPrefix) ? kPrefix.size() : 0));
  std::ranges::transform(key, key.begin(), [](unsigned char c) { return std::tolower(c); });
  return key;
}

// The likeliest slip of all, granularity = none, is reported by toml++ as a misspelt number.
Error syntax_error(std::string_view description) {
  Error error(ErrorCode::Config, fmt::format("not valid TOML: {}", description));
  for (const char* const sign : {"value type", "floating-point", "boolean"}) {
    if (description.find(sign) != std::string_view::npos) return error.fix("text is written in quotes");
  }
  if (description.find("control characters") != std::string_view::npos)
    return error.fix("text ends with a quote, on its line");
  if (description.find("root table") != std::string_view::npos)
    return error.fix("the file has lines such as [defaults] and granularity = \"grid\"");
  return error;
}

bool may_be_number(SettingType type) {
  return type == SettingType::Size || type == SettingType::Count || type == SettingType::Share ||
         type == SettingType::Threads || type == SettingType::Blocks || type == SettingType::Threshold;
}

class FileReader {
 public:
  FileReader(Config& config, const std::string& name) : config_(config), name_(name) {}

  void read(std::string_view text) {
    try {
      read_root(toml::parse(text, name_));
    } catch (const toml::parse_error& error) {
      report(syntax_error(error.description()), error.source());
    }
    std::ranges::stable_sort(problems_, {}, [](const Error& e) { return std::pair(e.line(), e.column()); });
    for (const Error& problem : problems_) config_.problems.emplace_back(problem.what());
  }

 private:
  void report(Error problem, const toml::source_region& place) {
    problem.at(name_, static_cast<int>(place.begin.line), static_cast<int>(place.begin.column));
    problems_.push_back(std::move(problem));
  }

  void read_root(const toml::table& root) {
    for (const auto& [key, node] : root) {
      if (key == "defaults") {
        read_defaults(node);
      } else if (key == "kernel") {
        read_kernels(node);
      } else {
        const bool table = node.is_table() || node.is_array_of_tables();
        report(Error(ErrorCode::Config, fmt::format("unknown {} '{}'", table ? "table" : "key", key.str()))
                   .fix(find_key(Section::Defaults, key.str()) != nullptr
                            ? "write it below [defaults], or below [[kernel]] and a name"
                            : hint_for(key.str(), {"defaults", "kernel"})),
               key.source());
      }
    }
  }

  void read_defaults(const toml::node& node) {
    if (!node.is_table()) {
      report(Error(ErrorCode::Config, "'defaults' is not a table").fix("write [defaults]"), node.source());
      return;
    }
    for (const auto& [key, value] : *node.as_table()) {
      keep(config_.defaults, Section::Defaults, key, value);
    }
  }

  void read_kernels(const toml::node& node) {
    const toml::array* const tables = node.as_array();
    if (tables == nullptr || !tables->is_homogeneous<toml::table>()) {
      report(Error(ErrorCode::Config, "'kernel' is not a list of tables").fix("write [[kernel]]"),
             node.source());
      return;
    }
    for (const toml::node& table : *tables) read_kernel(*table.as_table());
  }

  void read_kernel(const toml::table& table) {
    KernelTable kernel;
    kernel.line = static_cast<int>(table.source().begin.line);
    for (const auto& [key, value] : table) keep(kernel.values, Section::Kernel, key, value);
    if (!table.contains("name")) {
      report(Error(ErrorCode::Config, "[[kernel]] without a name").fix("add name = \"GLOB\""),
             table.source());
    }
    const auto name = kernel.values.extract("name");
    if (name.empty()) return;
    kernel.glob = name.mapped().text;
    const auto child = kernel.values.extract("child");
    if (!child.empty()) kernel.child_glob = child.mapped().text;
    if (!kernel.child_glob.empty()) refuse_keys_of_all_launches(kernel, table);
    const auto same = std::ranges::find_if(config_.kernels, [&](const KernelTable& known) {
      return known.glob == kernel.glob && known.child_glob == kernel.child_glob;
    });
    if (same == config_.kernels.end()) {
      config_.kernels.push_back(std::move(kernel));
      return;
    }
    report(Error(ErrorCode::Config, fmt::format("a second [[kernel]] named '{}'", kernel.glob))
               .fix(fmt::format("put its keys into the one at line {}", same->line)),
           table.source());
  }

  // A table for some launches of a kernel cannot say what there is only one of.
  void refuse_keys_of_all_launches(KernelTable& kernel, const toml::table& table) {
    for (const char* const key : {"buffer", "pool_bytes"}) {
      if (kernel.values.extract(key).empty()) continue;
      report(Error(ErrorCode::Config,
                   fmt::format("'{}' is for all launches of a kernel, not for those of one child", key))
                 .fix("put it into a table without child"),
             table.source());
    }
  }

  // Stores the value of a known key under the table's own name for it, if it is valid.
  void keep(Values& values, Section section, const toml::key& key, const toml::node& value) {
    const auto text = read_value(section, key, value);
    if (!text) return;
    const std::string place = fmt::format("{}:{}", name_, value.source().begin.line);
    const Setting& setting = *find_key(section, key.str());
    keep_value(values, setting.key, setting, {*text, Value::From::File, place});
  }

  // The value of a known key as text, if it is valid. Numbers may be written without quotes.
  std::optional<std::string> read_value(Section section, const toml::key& key, const toml::node& value) {
    const Setting* const setting = find_key(section, key.str());
    if (setting == nullptr) {
      report(Error(ErrorCode::Config, fmt::format("unknown key '{}' in {}", key.str(), to_string(section)))
                 .fix(find_optimisation(key.str()) != nullptr
                          ? fmt::format("write optimise = \"{}=...\"", key.str())
                          : hint_for(as_key(key.str()), keys(section))),
             key.source());
      return std::nullopt;
    }
    const bool is_number = may_be_number(setting->type);
    auto text = value.value_exact<std::string>();
    const auto number = value.value_exact<int64_t>();
    if (is_number && number) text = std::to_string(*number);
    if (!text) {
      report(Error(ErrorCode::Config,
                   fmt::format("'{}' must be a {}", key.str(), is_number ? "number or a string" : "string"))
                 .fix(fmt::format("use {}, in quotes", describe_values(*setting))),
             value.source());
      return std::nullopt;
    }
    if (const auto problem = check_value(*setting, key.str(), *text)) {
      report(*problem, value.source());
      return std::nullopt;
    }
    return text;
  }

  Config& config_;
  const std::string& name_;
  std::vector<Error> problems_;
};

}  // namespace

void apply_config_text(Config& config, std::string_view text, const std::string& name) {
  FileReader(config, name).read(text);
}

}  // namespace klap::settings
