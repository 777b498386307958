#include "jit/generate/link_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "jit/compile/templates.h"
#include "jit/compile/toolchain.h"
#include "jit/generate/memory_unit.h"
#include "jit/plan/options.h"
#include "jit/strategy/kernel_names.h"
#include "support/error.h"
#include "transform/runtime_calls/no_runtime.h"
#include "transform/suspension/frame_functions.h"
#include "transform/text/lanes_apart.h"

namespace klap::jit {
namespace {

class LinkPlanner {
 public:
  LinkPlanner(const Program& program, const Request& request, Plan& plan, GeneratedUnits& generated)
      : program_(program), request_(request), plan_(plan), generated_(generated) {}

  // The unit is assembled anew even if nothing was added to it.
  void assemble_anew(size_t unit) { anew_ = unit; }
  // The units get other functions for their device memory.
  void aggregate_memory(const DeviceMemory& memory) { memory_ = memory; }

  LinkPlan run() {
    bool has_runtime = false;
    for (size_t u = 0; u < program_.units.size(); ++u) {
      has_runtime = has_runtime || program_.units[u].is_device_runtime;
      if (request_.device_runtime) {
        unit(u);
      } else {
        unit_without_runtime(u);
      }
    }
    if (memory_.is_aggregated()) add_memory();
    if (!has_runtime && !program_.built_in_runtime && request_.device_runtime) add_device_runtime();
    return std::move(out_);
  }

 private:
  void unit(size_t u) {
    const Unit& unit = program_.units[u];
    std::optional<transform::UnitCode>& code = generated_.code[u];
    const BuildOptions options = parse_options(unit.options);
    if (u == anew_) {
      const transform::UnitCode plain(*plan_.units[u]->original());
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
    if (!unit.cubin.empty() && memory_.changes(u)) {
      obstacle = "its device memory is aggregated";
    } else if (!unit.cubin.empty()) {
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

  // A unit that launches is assembled anew: there is no other way to its own kernels' launches.
  void unit_without_runtime(size_t u) {
    const Unit& program_unit = program_.units[u];
    if (program_unit.is_device_runtime) return;
    if (!program_unit.launches) {
      unit(u);
      return;
    }
    if (plan_.units[u]->original() == nullptr) {
      throw Error(ErrorCode::Unsupported, "the unit launches kernels but carries no PTX")
          .at(program_unit.name);
    }
    refuse_other_code(u, "it is to have no device runtime");
    const BuildOptions options = parse_options(program_unit.options);
    const transform::UnitCode plain(*plan_.units[u]->original());
    const transform::UnitCode& code = generated_.code[u] ? *generated_.code[u] : plain;
    const std::string text = transform::in_place_unit(code, options.register_cap);
    note(u, "linked without the device runtime: a launch that is left ends its kernel with an error");
    app_ptx(program_unit, options);
    add_ptx(u, transform::without_device_runtime(ptx::parse(text, program_unit.name)), code.dialect.target);
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
    if (!unit.cubin.empty() && !memory_.changes(u)) {
      needs_suffix(unit.cubin_suffix);
      out_.inputs.push_back({LinkInputKind::Cubin, unit.cubin, unit.name});
    } else if (!unit.ptx.empty()) {
      const transform::UnitCode plain(*plan_.units[u]->original());
      app_ptx(unit, options);
      needs_suffix(plain.dialect.target.suffix);
      out_.texts.push_back(own_memory(u, transform::in_place_unit(plain, options.register_cap)));
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
    text = own_memory(u, transform::with_lanes_apart(std::move(text), program_.units[u].name));
    if (request_.dump) request_.dump({Pass::Unit, fmt::format("unit{}.klap.ptx", u), "", text});
    out_.texts.push_back(std::move(text));
    out_.inputs.push_back({LinkInputKind::Ptx, out_.texts.back(), program_.units[u].name + " (rewritten)"});
  }

  // The unit with the functions for device memory that are the module's own or klap_jit's.
  [[nodiscard]] std::string own_memory(size_t u, std::string text) const {
    const std::string& name = program_.units[u].name;
    if (memory_.changes(u)) text = with_own_memory(text, memory_, name);
    if (!transform::has_frame_functions(text)) return text;
    return transform::with_frame_functions(text, *frames_template(), name);
  }

  void add_memory() {
    const bool lanes_apart = std::ranges::any_of(plan_.units, [](const auto& unit) {
      return unit->module() != nullptr && transform::may_go_apart(*unit->module());
    });
    out_.texts.push_back(device_memory_unit(memory_, lanes_apart));
    if (request_.dump) request_.dump({Pass::Unit, "memory.klap.ptx", "", out_.texts.back()});
    out_.inputs.push_back({LinkInputKind::Ptx, out_.texts.back(), "device memory"});
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
  DeviceMemory memory_;
  bool has_app_ptx_ = false;
};

}  // namespace

LinkPlan plan_link(const Program& program, const Request& request, Plan& plan, GeneratedUnits& generated,
                   const DeviceMemory& memory, std::optional<size_t> anew) {
  LinkPlanner planner(program, request, plan, generated);
  if (anew) planner.assemble_anew(*anew);
  planner.aggregate_memory(memory);
  return planner.run();
}

}  // namespace klap::jit
