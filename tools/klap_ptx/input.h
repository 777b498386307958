// Helpers that the subcommands share: a file taken apart into programs for the pipeline, the policy, and
// printing.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "container/image.h"
#include "jit/module.h"
#include "klap_ptx/commands.h"
#include "settings/config.h"

namespace klap::tool {

// Opens a file that holds device code. Throws Error that names the file, also when there is no device code in
// it.
container::File open_device_code(const std::string& path);

// One image as the pipeline takes it.
struct Image {
  std::string label;  // for messages: the file, and where in it the image is if it holds several
  container::ImageKind kind{};
  std::string where;
  jit::Program program;
};

// Calls `use` for every image of the file, in its order. Errors thrown by it are made to name the image.
void for_each_image(const container::File& file, uint32_t sm, const std::function<void(const Image&)>& use);

// Settings as the library would read them, with the command line's options above them. Problems in them are
// printed as warnings, as the library would; a missing config file of the command line throws Error(Io).
settings::Config load_policy(const PolicyOptions& options);
jit::Request make_request(const settings::Config& config, const PolicyOptions& options);

// One line for the verdict on a site and one for each note, in the manner of compiler optimisation remarks.
void print_remark(const std::string& label, const jit::SiteRemark& remark);
// "3 launch sites: 1 rewritten, 2 left"
void print_summary(const std::vector<jit::SiteRemark>& remarks);

void print_json(const nlohmann::json& json);

// "klap-ptx" or "klap", as the program was called, for messages.
std::string program_name();

}  // namespace klap::tool
