// klap-ptx extract writes all device code in a file to files of its own, with an index.json that describes
// each one.
//
// Names tell the image, the unit, the kind and the architecture: image1-unit0.sm_90.cubin,
// unit2-cudadevrt.compute_75.ptx; the image's number is only there when there are several. A damaged entry
// does not keep the others from being written: it is reported, marked in the index, and makes the exit
// code 1.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "klap_ptx/input.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::tool {

namespace {

using nlohmann::json;

std::string ending(const container::FatbinEntry& entry) {
  std::string arch = std::to_string(entry.arch);
  if (const char suffix = entry.arch_suffix(); suffix != 0) arch += suffix;
  if (entry.is_ptx()) return fmt::format("compute_{}.ptx", arch);
  if (entry.kind == container::EntryKind::Cubin) return fmt::format("sm_{}.cubin", arch);
  if (entry.kind == container::EntryKind::LtoIr) return fmt::format("sm_{}.ltoir", arch);
  return fmt::format("sm_{}.kind{}", arch, static_cast<unsigned>(entry.kind));
}

class Extraction {
 public:
  explicit Extraction(const ExtractOptions& options) : options_(options), folder_(options.folder) {}

  void run() {
    const container::File file = open_device_code(options_.file);
    make_folder(folder_);
    json images = json::array();
    for (size_t i = 0; i < file.images.size(); ++i) {
      const std::string prefix = file.images.size() > 1 ? fmt::format("image{}-", i) : "";
      images.push_back(image(file.images[i], prefix));
    }
    const json index = {{"file", options_.file}, {"images", std::move(images)}};
    write_file(folder_ / "index.json", index.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
    if (options_.json) print_json(index);
    if (!options_.json) {
      fmt::print("entries written to {}: {}; index.json lists them\n", options_.folder, names_.size());
    }
    if (damaged_ != 0) {
      throw Error(ErrorCode::Container,
                  fmt::format("{} damaged; index.json in the output folder says which",
                              damaged_ == 1 ? "a part is" : fmt::format("{} parts are", damaged_)))
          .at(options_.file);
    }
  }

 private:
  json image(const container::FileImage& image, const std::string& prefix) {
    json units = json::array();
    if (image.kind == container::ImageKind::Ptx || image.kind == container::ImageKind::Cubin) {
      const char* const end = image.kind == container::ImageKind::Ptx ? "ptx" : "cubin";
      const std::string name = write(prefix + "unit0", end, image.text);
      units.push_back({{"entries", {{{"file", name}, {"kind", end}, {"bytes", image.text.size()}}}}});
    }
    for (size_t i = 0; i < image.units.size(); ++i) units.push_back(unit(image.units[i], prefix, i));
    return {{"kind", container::to_string(image.kind)}, {"where", image.where}, {"units", std::move(units)}};
  }

  json unit(const container::Fatbin& fatbin, const std::string& prefix, size_t index) {
    json described = {{"entries", json::array()}};
    std::string stem = fmt::format("{}unit{}", prefix, index);
    attempt(stem, described, [&] {
      const bool is_runtime = container::is_device_runtime(fatbin);
      described["device_runtime"] = is_runtime;
      if (is_runtime) stem += "-cudadevrt";
      described["launches"] = container::mentions_device_launch(fatbin);
    });
    for (const container::FatbinEntry& entry : fatbin.entries) {
      described["entries"].push_back(this->entry(entry, stem));
    }
    return described;
  }

  json entry(const container::FatbinEntry& entry, const std::string& stem) {
    json described = {{"kind", static_cast<unsigned>(entry.kind)},
                      {"arch", entry.arch},
                      {"name", entry.name},
                      {"options", entry.options},
                      {"stored_bytes", entry.stored.size()}};
    attempt(stem + "." + ending(entry), described, [&] {
      const std::string payload = entry.payload();
      const std::string name = write(stem, ending(entry), payload);
      described["file"] = name;
      described["bytes"] = payload.size();
      if (!entry.options.empty()) write_file(folder_ / (name + ".options"), entry.options + "\n");
    });
    return described;
  }

  // Writes STEM.END, or STEM-2.END where that name is taken.
  std::string write(const std::string& stem, const std::string& end, std::string_view bytes) {
    std::string name = fmt::format("{}.{}", stem, end);
    for (int n = 2; !names_.insert(name).second; ++n) name = fmt::format("{}-{}.{}", stem, n, end);
    write_file(folder_ / name, bytes);
    return name;
  }

  // Runs `step`; damage in the container is reported and noted, anything else is passed on.
  template <typename Step>
  void attempt(const std::string& what, json& described, Step step) {
    try {
      step();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Container) throw;
      fmt::print(stderr, "{}: {}: {}: {}\n", program_name(), options_.file, what, error.what());
      described["error"] = error.what();
      ++damaged_;
    }
  }

  const ExtractOptions& options_;
  std::filesystem::path folder_;
  std::set<std::string> names_;
  int damaged_ = 0;
};

}  // namespace

void extract(const ExtractOptions& options) { Extraction(options).run(); }

}  // namespace klap::tool
