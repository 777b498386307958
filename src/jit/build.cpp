#include "jit/build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <span>

#include "container/elf64.h"
#include "jit/hash.h"
#include "jit/options.h"
#include "jit/templates.h"
#include "jit/toolchain.h"
#include "support/demangle.h"
#include "support/error.h"

namespace klap::jit {
namespace {

using transform::Generated;

template <typename Make>
auto timed(double& milliseconds, const Make& make) {
  const Stopwatch watch(&milliseconds);
  return make();
}

// Short and unique within a program: names of generated kernels carry it.
std::string unit_tag(const Plan& plan, size_t unit) {
  return Hasher().add(plan.units[unit]->unit().ptx).add(std::to_string(unit)).hex().substr(0, 8);
}

// A consumer's name tells its child and what it was specialised for.
std::string consumer_name(const Plan& plan, const PlannedSite& site) {
  const transform::ConsumerShape& s = site.shape;
  if (s.lanes != 0) {
    return fmt::format("{}$klap_warp_{}{}", site.child->name, unit_tag(plan, site.child_unit),
                       s.grid_is_1d ? "_1d" : "");
  }
  return fmt::format("{}$klap_{}_{}_{}x{}x{}_{}{}", site.child->name, s.exact ? "exact" : "run",
                     unit_tag(plan, site.child_unit), s.block[0], s.block[1], s.block[2], s.pack,
                     s.grid_is_1d ? "_1d" : "");
}

void add_note(SiteRemark& remark, const std::string& text) {
  if (std::ranges::find(remark.notes, text) == remark.notes.end()) remark.notes.push_back(text);
}

class Generator {
 public:
  Generator(Plan& plan, Timings& timings) : plan_(plan), timings_(timings) {
    out_.code.resize(plan.units.size());
  }

  void site(const PlannedSite& site) {
    std::shared_ptr<const ptx::Module> record, consumer, leave;
    {
      const Stopwatch watch(&timings_.templates);
      record = record_template(site.shape.layout);
      consumer = consumer_template(site.shape);
      if (site.way.launcher == Launcher::Device) leave = leave_template(site.shape);
    }
    const Stopwatch watch(&timings_.transform);
    code(site.child_unit).includes(*consumer);
    code(site.parent_unit).includes(*record);
    if (leave) code(site.parent_unit).includes(*leave);
    const std::string name = consumer_name(plan_, site);
    const ptx::Module& child_module = *plan_.units[site.child_unit]->module();
    std::vector<Generated> made;
    if (!consumers_.contains(name)) {
      made.push_back(transform::consumer_kernel(child_module, *site.child, site.shape, *consumer, name,
                                                code(site.child_unit).lines));
    }
    Generated parent = parent_variant(site, *record, *consumer, leave.get(), name);
    add_variant(site, parent.name, name);
    if (consumers_.insert(name).second) code(site.child_unit).kernels.push_back(std::move(made.front()));
    code(site.parent_unit).kernels.push_back(std::move(parent));
    for (const size_t unit : {site.child_unit, site.parent_unit}) note_losses(site, code(unit).lines);
  }

  // For a site whose launches the lanes of a warp share: the kernel that runs its children.
  void shared_child(const PlannedSite& site) {
    const auto consumer = timed(timings_.templates, [&] { return consumer_template(site.shape); });
    const Stopwatch watch(&timings_.transform);
    const std::string name = consumer_name(plan_, site);
    if (consumers_.contains(name)) return;
    transform::UnitCode& unit = code(site.child_unit);
    unit.includes(*consumer);
    unit.kernels.push_back(transform::consumer_kernel(*plan_.units[site.child_unit]->module(), *site.child,
                                                      site.shape, *consumer, name, unit.lines));
    consumers_.insert(name);
  }

  // The parent of such sites, which are all of the same one and have their children.
  void sharing_parent(const std::vector<PlannedSite>& sites) {
    std::vector<std::shared_ptr<const ptx::Module>> templates;  // keeps them alive
    std::vector<transform::SharedSite> shared;
    transform::UnitCode& unit = code(sites.front().parent_unit);
    for (const PlannedSite& site : sites) {
      templates.push_back(timed(timings_.templates, [&] {
        return warp_launch_template(site.shape, transform::sharing_shape(*site.parent, *site.site));
      }));
      unit.includes(*templates.back());
      shared.push_back({site.site, templates.back().get(), consumer_name(plan_, site), ""});
      if (site.parent_unit == site.child_unit) continue;
      shared.back().declaration =
          transform::consumer_declaration(*consumer_template(site.shape), shared.back().consumer);
    }
    const Stopwatch watch(&timings_.transform);
    const PlannedSite& first = sites.front();
    const std::string name =
        fmt::format("{}$klap_warp_{}", first.parent->function.name, unit_tag(plan_, first.parent_unit));
    unit.kernels.push_back(transform::sharing_parent(*first.parent, shared, name, unit.lines));
    add_variant(first, name, shared.front().consumer);
    for (const PlannedSite& site : sites) {
      for (const size_t u : {site.child_unit, site.parent_unit}) note_losses(site, code(u).lines);
    }
  }

  GeneratedUnits take() { return std::move(out_); }

 private:
  // `leave` is null where the host launches the consumer.
  Generated parent_variant(const PlannedSite& site, const ptx::Module& record, const ptx::Module& consumer,
                           const ptx::Module* leave, const std::string& consumer_name) {
    const std::string name = fmt::format("{}$klap_grid{}_{}", site.parent->function.name,
                                         leave ? "_device" : "", unit_tag(plan_, site.parent_unit));
    transform::LineTables& lines = code(site.parent_unit).lines;
    if (leave == nullptr) return transform::recording_parent(*site.parent, *site.site, record, name, lines);
    transform::DeviceLaunch launch{*leave, consumer_name, ""};
    if (site.parent_unit != site.child_unit) {
      launch.declaration = transform::consumer_declaration(consumer, consumer_name);
    }
    return transform::launching_parent(*site.parent, *site.site, record, launch, name, lines);
  }

  transform::UnitCode& code(size_t unit) {
    auto& code = out_.code[unit];
    if (!code) code.emplace(*plan_.units[unit]->module());
    return *code;
  }

  // What is missing from the line tables of a unit, said at the site that it was found for.
  void note_losses(const PlannedSite& site, const transform::LineTables& lines) {
    for (const std::string& loss : lines.losses()) add_note(plan_.remarks[site.remark], loss);
  }

  void add_variant(const PlannedSite& site, const std::string& parent_variant, const std::string& consumer) {
    const ptx::Function& parent = site.parent->function;
    Variant v;
    v.parent = parent.name;
    v.parent_variant = parent_variant;
    v.granularity = site.way.granularity;
    v.child = site.child->name;
    v.consumer = consumer;
    v.launcher = site.way.launcher;
    if (v.granularity == Granularity::Warp) {
      out_.variants.push_back(std::move(v));
      return;
    }
    v.parent_param_count = static_cast<uint32_t>(parent.parameters.size());
    v.parent_param_bytes = parent.parameter_bytes;
    v.queue_param_offset = transform::queue_parameter_offset(parent);
    v.record_bytes = site.shape.layout.record_bytes;
    v.consumer_block_threads = site.shape.threads();
    v.child_block_threads = site.shape.child_threads();
    out_.variants.push_back(std::move(v));
  }

  Plan& plan_;
  Timings& timings_;
  GeneratedUnits out_;
  std::set<std::string> consumers_;
};

// ---- the link ----

// Everything that goes into the link, in the program's order, generated units behind their own.
struct LinkPlan {
  std::vector<LinkInput> inputs;
  std::deque<std::string> texts;          // generated PTX that the inputs point to; a deque never moves it
  std::vector<std::string> code_options;  // of the PTX that is assembled
  bool line_info = false;                 // some of that PTX was to carry line tables
  char suffix = '\0';                     // of the narrowest target that an input is for
};

class LinkPlanner {
 public:
  LinkPlanner(const Program& program, const Request& request, Plan& plan, GeneratedUnits& generated)
      : program_(program), request_(request), plan_(plan), generated_(generated) {}

  // The unit is assembled anew even if nothing was added to it.
  void assemble_anew(size_t unit) { anew_ = unit; }

  LinkPlan run() {
    bool has_runtime = false;
    for (size_t u = 0; u < program_.units.size(); ++u) {
      has_runtime = has_runtime || program_.units[u].is_device_runtime;
      unit(u);
    }
    if (!has_runtime && !program_.built_in_runtime) add_device_runtime();
    return std::move(out_);
  }

 private:
  void unit(size_t u) {
    const Unit& unit = program_.units[u];
    std::optional<transform::UnitCode>& code = generated_.code[u];
    const BuildOptions options = parse_options(unit.options);
    if (u == anew_) {
      const transform::UnitCode plain(*plan_.units[u]->module());
      app_ptx(unit, options);
      add_ptx(u, transform::in_place_unit(plain, options.register_cap), plain.dialect.target);
      return;
    }
    if (!code || code->kernels.empty()) {
      original(u, options);
      return;
    }
    std::string obstacle = "the unit carries no machine code for this device";
    std::optional<std::string> detached;
    if (!unit.cubin.empty()) {
      detached = transform::detached_unit(*code, "$klap_" + unit_tag(plan_, u), &obstacle);
    }
    if (detached) {
      // Also where it is spliced, the program's code is compiled as the program wanted it.
      app_ptx(unit, options);
      original(u, options);
      add_ptx(u, std::move(*detached), code->dialect.target);
    } else {
      refuse_other_code(u, obstacle);
      note(u, "the unit is assembled anew: " + obstacle);
      app_ptx(unit, options);
      add_ptx(u, transform::in_place_unit(*code, options.register_cap), code->dialect.target);
    }
  }

  // PTX for another target is shown to be the program's code only for the kernels that are rewritten.
  void refuse_other_code(size_t u, const std::string& obstacle) const {
    const std::string& made_for = plan_.units[u]->made_for();
    if (made_for.empty() || program_.units[u].cubin.empty()) return;
    throw Error(ErrorCode::Link, fmt::format("all of the unit would have to be assembled from PTX for {}: {}",
                                             made_for, obstacle))
        .at(program_.units[u].name);
  }

  // A unit that nothing was added to: its machine code as it is, else its PTX.
  void original(size_t u, const BuildOptions& options) {
    const Unit& unit = program_.units[u];
    if (!unit.cubin.empty()) {
      needs_suffix(unit.cubin_suffix);
      out_.inputs.push_back({LinkInputKind::Cubin, unit.cubin, unit.name});
    } else if (!unit.ptx.empty()) {
      const transform::UnitCode plain(*plan_.units[u]->module());
      app_ptx(unit, options);
      needs_suffix(plain.dialect.target.suffix);
      out_.texts.push_back(transform::in_place_unit(plain, options.register_cap));
      out_.inputs.push_back({LinkInputKind::Ptx, out_.texts.back(), unit.name});
    } else {
      throw Error(ErrorCode::Unsupported, "the unit has neither machine code nor PTX for this device")
          .at(unit.name);
    }
  }

  // Code-changing options hold for the whole link: all of the program's PTX in it must share them.
  void app_ptx(const Unit& unit, const BuildOptions& options) {
    if (has_app_ptx_ && options.code_changing != out_.code_options) {
      throw Error(ErrorCode::Unsupported,
                  "units built with different options would have to be assembled together")
          .at(unit.name);
    }
    has_app_ptx_ = true;
    out_.code_options = options.code_changing;
    out_.line_info = out_.line_info || options.line_info;
  }

  void add_ptx(size_t u, std::string text, const ptx::Target& target) {
    needs_suffix(target.suffix);
    if (request_.dump) request_.dump({Pass::Unit, fmt::format("unit{}.klap.ptx", u), "", text});
    out_.texts.push_back(std::move(text));
    out_.inputs.push_back({LinkInputKind::Ptx, out_.texts.back(), program_.units[u].name + " (rewritten)"});
  }

  // Code for sm_90a can only be linked for sm_90a: not even for sm_90, though the same devices run both.
  void needs_suffix(char suffix) {
    if (suffix == 'a' || out_.suffix == '\0') out_.suffix = suffix;
  }

  void add_device_runtime() {
    const std::string& given = program_.device_runtime_archive;
    const std::string archive = given.empty() ? find_device_runtime_archive() : given;
    if (archive.empty()) {
      throw Error(ErrorCode::Toolchain,
                  "the image has no device runtime of its own and libcudadevrt.a was not found")
          .fix("install the CUDA toolkit's libcudadevrt.a or set CUDA_HOME");
    }
    out_.texts.push_back(archive);
    out_.inputs.push_back({LinkInputKind::Library, out_.texts.back(), "libcudadevrt.a"});
  }

  void note(size_t unit, const std::string& text) {
    for (const PlannedSite& site : plan_.sites) {
      const bool concerned = site.parent_unit == unit || site.child_unit == unit;
      if (concerned) add_note(plan_.remarks[site.remark], text);
    }
  }

  const Program& program_;
  const Request& request_;
  Plan& plan_;
  GeneratedUnits& generated_;
  LinkPlan out_;
  std::optional<size_t> anew_;
  bool has_app_ptx_ = false;
};

// The generated kernels, numbered by their units.
void dump_generated(const Dump& dump, const GeneratedUnits& generated) {
  for (size_t u = 0; u < generated.code.size(); ++u) {
    const auto& code = generated.code[u];
    for (size_t k = 0; code && k < code->kernels.size(); ++k) {
      const Generated& kernel = code->kernels[k];
      const std::string file = fmt::format("unit{}.kernel{}.", u, k);
      std::string bodies;
      for (const std::string& body : kernel.spliced) bodies += body + "\n";
      if (!bodies.empty()) dump({Pass::Splice, file + "splice.ptx", kernel.name, bodies});
      dump({Pass::Aggregate, file + "aggregate.ptx", kernel.name, kernel.text});
    }
  }
}

const char* to_string(LinkInputKind kind) {
  switch (kind) {
    case LinkInputKind::Ptx:
      return "PTX";
    case LinkInputKind::Cubin:
      return "machine code";
    case LinkInputKind::Library:
      return "library";
  }
  return "";
}

// ---- checking what came out ----

constexpr std::string_view kParameterBank = ".nv.constant0.";  // every kernel has one, a function has none

std::set<std::string> kernels_of(std::string_view cubin, const std::string& name) {
  std::set<std::string> out;
  const container::Elf64 elf(std::as_bytes(std::span(cubin.data(), cubin.size())), name);
  for (const container::ElfSection& section : elf.sections()) {
    const std::string_view text = elf.name(section);
    if (text.starts_with(kParameterBank)) out.emplace(text.substr(kParameterBank.size()));
  }
  return out;
}

// nvJitLink has been seen to report success for links that were not: every kernel must be there.
void check_linked(const Program& program, const GeneratedUnits& generated, const std::string& cubin) {
  const std::set<std::string> linked = kernels_of(cubin, "linked image");
  const auto require = [&](const std::string& kernel) {
    if (!linked.contains(kernel)) {
      throw Error(ErrorCode::Link, "the linked image lacks a kernel").kernel(kernel);
    }
  };
  for (const Variant& variant : generated.variants) {
    for (const std::string* kernel : {&variant.parent, &variant.parent_variant, &variant.consumer})
      require(*kernel);
  }
  for (const Unit& unit : program.units) {
    if (unit.is_device_runtime || unit.cubin.empty()) continue;
    for (const std::string& kernel : kernels_of(unit.cubin, unit.name)) require(kernel);
  }
}

// nvJitLink does not report duplicate definitions, so no generated name may stand anywhere else.
void check_unique(const Program& program, const GeneratedUnits& generated) {
  std::set<std::string> names;
  for (const Unit& unit : program.units) {
    if (!unit.cubin.empty()) names.merge(kernels_of(unit.cubin, unit.name));
  }
  for (const auto& code : generated.code) {
    if (!code) continue;
    for (const Generated& kernel : code->kernels) {
      if (!names.insert(kernel.name).second) {
        throw Error(ErrorCode::Internal, "the name of a generated kernel is taken").kernel(kernel.name);
      }
    }
  }
}

}  // namespace

GeneratedUnits generate(Plan& plan, const std::vector<PlannedSite>& sites, const Dump& dump,
                        Timings& timings) {
  Generator generator(plan, timings);
  const auto attempt = [&](const PlannedSite& site, const auto& make) {
    try {
      make();
      return true;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::Toolchain) throw;
      const bool parameter_use = error.code() == ErrorCode::Unsupported;
      leave(plan, site, parameter_use ? analysis::Reason::ChildParameterUse : analysis::Reason::BuildFailed,
            error.what());
      return false;
    }
  };
  std::map<const analysis::FunctionFacts*, std::vector<PlannedSite>> sharing;  // by parent
  std::vector<const analysis::FunctionFacts*> order;
  for (const PlannedSite& site : sites) {
    if (site.way.granularity != Granularity::Warp) {
      attempt(site, [&] { generator.site(site); });
    } else if (attempt(site, [&] { generator.shared_child(site); })) {
      std::vector<PlannedSite>& of_parent = sharing[site.parent.get()];
      if (of_parent.empty()) order.push_back(site.parent.get());
      of_parent.push_back(site);
    }
  }
  for (const analysis::FunctionFacts* parent : order) generator.sharing_parent(sharing[parent]);
  GeneratedUnits generated = generator.take();
  if (dump) dump_generated(dump, generated);
  return generated;
}

namespace {

std::string link(const LinkPlan& plan, const Request& request) {
  std::vector<std::string> options = {"-arch=" + to_string(ptx::Target{request.sm, plan.suffix})};
  for (const std::string& option : plan.code_options) options.push_back("-Xptxas=" + option);
  if (plan.line_info) options.emplace_back("-lineinfo");
  if (request.dump) {
    std::string text = fmt::format("options {}\n", fmt::join(options, " "));
    for (const LinkInput& input : plan.inputs) {
      text += fmt::format("input {}: {}, {} bytes\n", input.name, to_string(input.kind), input.bytes.size());
    }
    request.dump({Pass::Link, "link.txt", "", text});
  }
  if (request.linker != nullptr) return request.linker->link(plan.inputs, options);
  return link_to_cubin(plan.inputs, options);
}

void dump_linked(const Dump& dump, const std::string& cubin) {
  std::string text;
  for (const std::string& kernel : kernels_of(cubin, "linked image")) text += both_names(kernel) + "\n";
  dump({Pass::Link, "linked.txt", "", text});
  dump({Pass::Link, "linked.cubin", "", cubin});
}

}  // namespace

std::string link_originals(const Program& program, const Request& request, Plan& plan,
                           std::optional<size_t> anew) {
  GeneratedUnits nothing;
  nothing.code.resize(program.units.size());
  LinkPlanner planner(program, request, plan, nothing);
  if (anew) planner.assemble_anew(*anew);
  return link(planner.run(), request);
}

BuiltModule build(const Program& program, const Request& request, Plan& plan,
                  const std::vector<PlannedSite>& sites, Timings& timings) {
  GeneratedUnits generated = generate(plan, sites, request.dump, timings);
  if (generated.variants.empty()) return {};
  check_unique(program, generated);
  const Stopwatch watch(&timings.link);
  BuiltModule out;
  out.cubin = link(LinkPlanner(program, request, plan, generated).run(), request);
  if (request.dump) dump_linked(request.dump, out.cubin);
  check_linked(program, generated, out.cubin);
  out.variants = std::move(generated.variants);
  return out;
}

}  // namespace klap::jit
