// klap-ptx rewrite: the pipeline's output as a file.
//
// OUT.cubin is the image the library would load, originals and variants linked together. OUT.ptx is the
// rewritten PTX of a unit, for reading and for other tools. A file may give several of either; they are then
// numbered.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "jit/inspect.h"
#include "klap_ptx/input.h"
#include "klap_ptx/progress.h"
#include "runtime/remark_json.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::tool {

namespace {

using nlohmann::json;

struct Product {
  std::string source;  // image or unit it was made from
  std::string bytes;
};

struct Outcome {
  explicit Outcome(const RewriteOptions& given) : options(given) {}

  const RewriteOptions& options;
  Progress progress{"rewriting"};
  std::vector<Product> products;
  std::vector<jit::SiteRemark> remarks;
  json sites = json::array();

  void add_remarks(const Image& image, const std::vector<jit::SiteRemark>& more) {
    const auto pause = progress.pause();
    for (const jit::SiteRemark& remark : more) {
      sites.push_back(runtime::to_json(remark));
      if (!options.json) print_remark(image.label, remark, options.verbose);
    }
    remarks.insert(remarks.end(), more.begin(), more.end());
  }
};

void link_image(const Image& image, const jit::Request& request, Outcome& outcome) {
  jit::RewrittenModule module = jit::rewrite_module(image.program, request);
  outcome.add_remarks(image, module.remarks);
  if (!module.cubin.empty()) outcome.products.push_back({image.label, std::move(module.cubin)});
}

void print_units(const Image& image, const jit::Request& request, Outcome& outcome) {
  for (const jit::Unit& unit : image.program.units) {
    if (!unit.launches || unit.is_device_runtime || unit.ptx.empty()) continue;
    std::vector<jit::SiteRemark> remarks;
    std::string ptx = jit::rewrite_ptx(unit, request, &remarks);
    outcome.add_remarks(image, remarks);
    if (std::ranges::any_of(remarks, &jit::SiteRemark::rewritten)) {
      outcome.products.push_back({unit.name, std::move(ptx)});
    }
  }
}

// OUT for a single product, else OUT-0, OUT-1, ... before the ending.
std::string numbered(const std::filesystem::path& out, size_t index, size_t count) {
  if (count == 1) return out.string();
  return (out.parent_path() / fmt::format("{}-{}{}", out.stem().string(), index, out.extension().string()))
      .string();
}

json write_products(const Outcome& outcome, const std::string& out, bool print) {
  json written = json::array();
  for (size_t i = 0; i < outcome.products.size(); ++i) {
    const Product& product = outcome.products[i];
    const std::string path = numbered(out, i, outcome.products.size());
    write_file(path, product.bytes);
    written.push_back({{"file", path}, {"source", product.source}, {"bytes", product.bytes.size()}});
    if (print) fmt::print("wrote {}: {} bytes, from {}\n", path, product.bytes.size(), product.source);
  }
  return written;
}

}  // namespace

void rewrite(const RewriteOptions& options) {
  const jit::Request request = make_request(load_policy(options.policy), options.policy);
  const container::File file = open_device_code(options.file);
  Outcome outcome(options);
  const bool print = !options.json;
  for_each_image(file, options.policy.sm, [&](const Image& image) {
    outcome.progress.at(image.label);
    const auto make = options.out.ends_with(".ptx") ? print_units : link_image;
    make(image, request, outcome);
  });
  const auto pause = outcome.progress.pause();
  if (print) print_summary(outcome.remarks, outcome.remarks);
  json written = write_products(outcome, options.out, print);
  if (options.json) {
    print_json({{"file", options.file},
                {"sm", options.policy.sm},
                {"outputs", std::move(written)},
                {"sites", std::move(outcome.sites)}});
  }
  if (outcome.products.empty()) {
    throw Error(ErrorCode::Unsupported, "no launch site could be rewritten, nothing was written")
        .at(options.file)
        .fix(outcome.remarks.empty() ? program_name() + " explain says why" : "the remarks say why");
  }
}

}  // namespace klap::tool
