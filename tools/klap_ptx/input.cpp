#include "klap_ptx/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "analysis/facts/rejection.h"
#include "jit/plan/describe.h"
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

// Makes an error of the pipeline, which knows units but not files, name the image.
void name_image(Error& error, const std::string& label) {
  if (error.file().starts_with(label)) return;
  error.at(error.file().empty() ? label : label + ": " + error.file());
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
      use({label, found.kind, found.where, make_program(found, label, sm)});
    } catch (Error& error) {
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
  settings::apply_log_settings(config);
  for (const std::string& problem : config.problems)
    fmt::print(stderr, "{}: warning: {}\n", program_name(), problem);
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
      make_folder(folder);
      write_file(folder / stage.file, stage.bytes);
    };
  }
  return request;
}

void print_remark(const std::string& label, const jit::SiteRemark& remark) {
  // A PTX file is its own unit: "file.ptx:97:" is a place that editors can jump to.
  const std::string unit = remark.unit == label ? label : label + ": " + remark.unit;
  fmt::print("{}", jit::describe(remark, unit));
}

void print_summary(const std::vector<jit::SiteRemark>& remarks) {
  const auto all = static_cast<std::ptrdiff_t>(remarks.size());
  const auto rewritten = std::ranges::count_if(remarks, &jit::SiteRemark::rewritten);
  const std::string never_called = to_string(analysis::Reason::NeverCalled);
  const auto idle = std::ranges::count(remarks, never_called, &jit::SiteRemark::reason);
  fmt::print("{} launch site{}: {} rewritten, {} left{}\n", all, all == 1 ? "" : "s", rewritten,
             all - rewritten - idle, idle == 0 ? "" : fmt::format(", {} in code that is never called", idle));
}

void print_json(const nlohmann::json& json) {
  // Names in damaged files may be anything. Text that is not UTF-8 is replaced, instead of throwing.
  fmt::print("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string program_name() { return program_invocation_short_name; }

}  // namespace klap::tool
