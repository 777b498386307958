#include "klap_ptx/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "analysis/facts/rejection.h"
#include "jit/plan/describe.h"
#include "klap_ptx/colour.h"
#include "ptx/tree.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::tool {

namespace {

jit::Program make_program(const container::FileImage& image, const std::string& label, uint32_t sm) {
  switch (image.kind) {
    case container::ImageKind::Ptx:
      return jit::program_from_ptx(image.text, label);
    case container::ImageKind::Cubin:
      return jit::program_from_machine_code(image.text, label);
    default:
      return jit::program_from_fatbins(image.units, sm);
  }
}

// Whether brackets are open at the end of PTX, as they are where a file was cut.
bool is_open_at_end(std::string_view ptx) {
  std::ptrdiff_t open = 0;
  bool is_comment = false;
  for (size_t i = 0; i < ptx.size(); ++i) {
    is_comment = ptx[i] != '\n' && (is_comment || ptx.substr(i, 2) == "//");
    if (is_comment) continue;
    if (ptx[i] == '{' || ptx[i] == '(') ++open;
    if (ptx[i] == '}' || ptx[i] == ')') --open;
  }
  return open > 0;
}

// Whether PTX ends in the middle of a line, and that is the line.
bool is_cut_in_line(std::string_view ptx, int line) {
  return !ptx.ends_with('\n') && line == 1 + std::ranges::count(ptx, '\n');
}

// Makes an error of PTX that was cut say so, in one line.
void name_truncation(Error& error, const container::FileImage& image) {
  if (error.code() != ErrorCode::Parse) return;
  const char* why = nullptr;
  if (is_open_at_end(image.text)) {
    why = "the file is truncated, or a bracket is never closed: ";
  } else if (is_cut_in_line(image.text, error.line())) {
    why = "the file may be truncated: ";
  }
  if (why == nullptr) return;
  error = Error(error.code(), why + error.reason()).at(error.file(), error.line(), error.column());
}

// Makes an error of the pipeline, which knows units but not files, name the image.
void name_image(Error& error, const std::string& label) {
  if (error.file().starts_with(label)) return;
  error.at(error.file().empty() ? label : label + ": " + error.file());
}

// Compilers note absolute names, which are long.
std::string from_current_folder(const std::string& file) {
  std::error_code error;
  const std::filesystem::path current = std::filesystem::current_path(error);
  const std::filesystem::path from_here = std::filesystem::path(file).lexically_relative(current);
  const bool is_below = !error && !from_here.empty() && *from_here.begin() != "..";
  return is_below ? from_here.string() : file;
}

}  // namespace

container::File open_device_code(const std::string& path) {
  try {
    container::File file = container::open_file(path);
    if (file.images.empty()) {
      throw Error(ErrorCode::Unsupported, "no CUDA device code in this file")
          .fix("the program's device code may be in one of its shared objects");
    }
    return file;
  } catch (Error& error) {
    name_image(error, path);
    throw;
  }
}

void for_each_image(const container::File& file, uint32_t sm, const std::function<void(const Image&)>& use) {
  for (const container::FileImage& found : file.images) {
    std::string label = file.path.string();
    if (file.images.size() > 1) label += ": " + found.where;
    try {
      use({label, found.kind, found.where, make_program(found, label, sm), &found});
    } catch (Error& error) {
      name_truncation(error, found);
      name_image(error, label);
      throw;
    }
  }
}

settings::Config load_policy(const PolicyOptions& options) {
  const auto given = [&](std::string_view variable) -> const std::string* {
    const auto found = options.values.find(std::string(variable));
    return found == options.values.end() || found->second.empty() ? nullptr : &found->second;
  };
  if (const std::string* const file = given("KLAP_CONFIG")) read_file(*file);
  settings::Config config = settings::load_config([&](const char* name) -> const char* {
    const std::string* const value = given(name);
    return value != nullptr ? value->c_str() : secure_getenv(name);
  });
  for (auto& [variable, value] : config.environment) {
    if (given(variable) != nullptr) value.place = "command line";
  }
  std::ranges::copy(settings::misspelt_variables(), std::back_inserter(config.problems));
  settings::apply_log_settings(config);
  for (const std::string& problem : config.problems) print_warning(problem);
  return config;
}

jit::Request make_request(const settings::Config& config, const PolicyOptions& options) {
  jit::Request request;
  request.sm = options.sm;
  request.debug_units = options.debug_units;
  request.device_runtime = config.device_runtime;
  request.setting = [config](std::string_view key, const std::string& parent, const std::string& child) {
    return config.setting_for(key, parent, child);
  };
  if (!config.dump_dir.empty()) {
    request.dump = [folder = config.dump_dir](const jit::Stage& stage) {
      try {
        make_folder(folder);
        write_file(folder / stage.file, stage.bytes);
      } catch (const Error& error) {
        throw Error(error.code(), fmt::format("KLAP_DUMP_DIR: stages are not written: {}", error.what()));
      }
    };
  }
  return request;
}

void require_functions(const Image& image) {
  const jit::Unit& unit = image.program.units.front();
  const ptx::Module module = ptx::parse(unit.ptx, unit.name);
  if (std::ranges::any_of(module.functions, &ptx::Function::is_definition)) return;
  throw Error(ErrorCode::Unsupported,
              "nothing could be judged: this PTX defines no kernel and no function; it may be truncated");
}

bool is_site(const jit::SiteRemark& remark) { return !remark.parent.empty(); }

std::string unit_label(const std::string& label, const jit::SiteRemark& remark) {
  // A PTX file is its own unit: "file.ptx:97:" is a place that editors can jump to.
  return remark.unit == label ? label : label + ": " + remark.unit;
}

SiteCounts count_sites(const std::vector<jit::SiteRemark>& remarks) {
  const std::string never_called = to_string(analysis::Reason::NeverCalled);
  SiteCounts counts;
  for (const jit::SiteRemark& remark : remarks) {
    if (!is_site(remark)) {
      ++counts.unread_units;
      continue;
    }
    ++counts.sites;
    ++(remark.rewritten                ? counts.rewritten
       : remark.reason == never_called ? counts.never_called
                                       : counts.left);
  }
  return counts;
}

void print_remark(const std::string& label, const jit::SiteRemark& remark, bool verbose) {
  jit::SiteRemark shown = remark;
  shown.source.file = from_current_folder(remark.source.file);
  const auto verbosity = verbose ? jit::Verbosity::Facts : jit::Verbosity::Brief;
  const std::string text = jit::describe(shown, unit_label(label, remark), verbosity);
  fmt::print("{}", coloured_remarks(stdout, text));
}

void print_summary(const std::vector<jit::SiteRemark>& remarks, const std::vector<jit::SiteRemark>& all) {
  if (all.empty()) return fmt::print("0 launch sites: no kernel here launches kernels\n");
  const SiteCounts counts = count_sites(remarks);
  const size_t sites = count_sites(all).sites;
  std::string text = remarks.size() == all.size() ? "" : fmt::format("{} of ", counts.sites);
  text += fmt::format("{} launch site{}: {} rewritten, {} left", sites, sites == 1 ? "" : "s",
                      counts.rewritten, counts.left);
  if (counts.never_called != 0) text += fmt::format(", {} in code that is never called", counts.never_called);
  if (counts.unread_units != 0)
    text += fmt::format("; {} unit{} could not be judged", counts.unread_units,
                        counts.unread_units == 1 ? "" : "s");
  fmt::print("{}\n", text);
}

void print_json(const nlohmann::json& json) {
  // Names in damaged files may be anything. Text that is not UTF-8 is replaced, instead of throwing.
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_warning(std::string_view text) {
  fmt::print(stderr, "{}: {} {}\n", program_name(), coloured(stderr, Colour::Yellow, "warning:"), text);
}

std::string program_name() { return program_invocation_short_name; }

}  // namespace klap::tool
