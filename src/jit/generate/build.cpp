#include "jit/generate/build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "jit/compile/toolchain.h"
#include "jit/generate/generate.h"
#include "jit/generate/link_plan.h"
#include "jit/generate/linked_image.h"
#include "support/demangle.h"
#include "support/error.h"

namespace klap::jit {
namespace {

const char* to_string(LinkInputKind kind) {
  switch (kind) {
    case LinkInputKind::Ptx:
      return "PTX";
    case LinkInputKind::Cubin:
      return "machine code";
    case LinkInputKind::LtoIr:
      return "ltoir";
    case LinkInputKind::Library:
      return "library";
  }
  return "";
}

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
  return link(plan_link(program, request, plan, nothing, {}, anew), request);
}

namespace {

BuiltModule build_with(const DeviceMemory& memory, const Program& program, const Request& request, Plan& plan,
                       std::span<const PlannedSite> sites, Timings& timings) {
  GeneratedUnits generated = generate(plan, sites, request.dump, timings);
  if (generated.variants.empty()) return {};
  check_unique(program, generated);
  const Stopwatch watch(&timings.link);
  BuiltModule out;
  out.cubin = link(plan_link(program, request, plan, generated, memory, std::nullopt), request);
  if (request.dump) dump_linked(request.dump, out.cubin);
  check_linked(program, generated, out.cubin);
  out.variants = std::move(generated.variants);
  return out;
}

}  // namespace

// If it is the program's device memory that does not build, it stays as it is.
BuiltModule build(const Program& program, const Request& request, Plan& plan,
                  std::span<const PlannedSite> sites, Timings& timings) {
  if (!plan.memory.is_aggregated()) return build_with({}, program, request, plan, sites, timings);
  const std::vector<SiteRemark> remarks = plan.remarks;
  std::string problem;
  try {
    return build_with(plan.memory, program, request, plan, sites, timings);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Toolchain) throw;
    problem = error.what();
  }
  plan.remarks = remarks;
  BuiltModule out = build_with({}, program, request, plan, sites, timings);
  plan.memory.rejection = "the module does not build with it: " + problem;
  return out;
}

}  // namespace klap::jit
