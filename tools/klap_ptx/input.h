// Helpers that the subcommands share: a file taken apart into programs for the pipeline, the policy, and
// printing.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
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
  const container::FileImage* source = nullptr;
};

// Calls `use` for every image of the file, in its order. Errors thrown by it are made to name the image.
void for_each_image(const container::File& file, uint32_t sm, const std::function<void(const Image&)>& use);

// Settings as the library would read them, with the command line's options above them. Problems in them are
// printed as warnings, as the library would; a missing config file of the command line throws Error(Io).
settings::Config load_policy(const PolicyOptions& options);
jit::Request make_request(const settings::Config& config, const PolicyOptions& options);

// Throws Error(Unsupported) for an image of PTX that defines no function, and Error(Parse).
void require_functions(const Image& image);

// Whether the remark is about a launch site. Others are about a unit that cannot be read.
bool is_site(const jit::SiteRemark& remark);
// The file and the unit that a remark is about.
std::string unit_label(const std::string& label, const jit::SiteRemark& remark);
// One line for the verdict on a site and one for each note, in the manner of compiler optimisation remarks. A
// file of the source that lies below the current folder is named from there.
void print_remark(const std::string& label, const jit::SiteRemark& remark, bool verbose);

struct SiteCounts {
  size_t sites = 0, rewritten = 0, left = 0;
  size_t never_called = 0;  // neither rewritten nor left
  size_t unread_units = 0;  // units without PTX, in which sites cannot be counted
  [[nodiscard]] bool is_any_left() const { return left + unread_units != 0; }
};
SiteCounts count_sites(const std::vector<jit::SiteRemark>& remarks);
// "3 launch sites: 1 rewritten, 2 left", "1 of 3 launch sites: ..." where only some of all are shown.
void print_summary(const std::vector<jit::SiteRemark>& remarks, const std::vector<jit::SiteRemark>& all);

void print_warning(std::string_view text);
void print_json(const nlohmann::json& json);

// "klap-ptx" or "klap", as the program was called, for messages.
std::string program_name();

}  // namespace klap::tool
