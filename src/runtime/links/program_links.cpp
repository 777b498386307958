#include "runtime/links/program_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "container/archive.h"
#include "container/host_elf.h"
#include "container/image.h"
#include "jit/compile/toolchain.h"
#include "support/error.h"
#include "support/hash.h"

namespace klap::runtime {

namespace {

// Limits for all results that are kept, and for one link. Code that a program links while it runs is small.
constexpr size_t kMostBytes = size_t{64} << 20;
constexpr size_t kMostResults = 256;

jit::Program units_of(const container::FileImage& image, const std::string& name, uint32_t sm) {
  jit::Program program;
  if (image.kind == container::ImageKind::Cubin) {
    program = jit::program_from_machine_code(image.text, name);
  } else if (image.kind == container::ImageKind::Ptx) {
    program = jit::program_from_ptx(image.text, name);
  } else {
    program = jit::program_from_fatbins(image.units, sm);
  }
  for (jit::Unit& unit : program.units) {
    unit.name = name;
    if (unit.ptx.empty() && unit.cubin.empty())
      throw Error(ErrorCode::Unsupported, "it holds neither PTX nor machine code for the device").at(name);
  }
  return program;
}

bool has_lto_ir(const container::Fatbin& fatbin) {
  return std::ranges::any_of(fatbin.entries, [](const container::FatbinEntry& entry) {
    return entry.kind == container::EntryKind::LtoIr;
  });
}

// Code for link-time optimisation, in whatever container. The bytes are its own, since an archive's members
// are looked at one by one.
struct LtoIr {
  std::string bytes, name;
};

// Takes the fatbins out of `image` that are to be compiled from such code: those that have no PTX.
void move_lto_ir(container::FileImage& image, const std::string& name, uint32_t sm, std::vector<LtoIr>& to) {
  std::erase_if(image.units, [&](const container::Fatbin& fatbin) {
    if (!has_lto_ir(fatbin) || container::best_ptx(fatbin, sm) != nullptr) return false;
    to.push_back({{reinterpret_cast<const char*>(fatbin.bytes.data()), fatbin.bytes.size()}, name});
    return true;
  });
}

jit::Program compiled(const std::vector<LtoIr>& lto_ir, std::vector<std::string> options, uint32_t sm) {
  std::vector<jit::LinkInput> inputs;
  for (const LtoIr& code : lto_ir) inputs.push_back({jit::LinkInputKind::LtoIr, code.bytes, code.name});
  const auto is_target = [](const std::string& option) { return option.starts_with("-arch="); };
  if (std::ranges::none_of(options, is_target)) options.push_back(fmt::format("-arch=sm_{}", sm));
  return jit::program_from_ptx(jit::lower_to_ptx(inputs, std::move(options)), "link-time optimised code");
}

void append(jit::Program& program, jit::Program more) {
  program.units.insert(program.units.end(), std::make_move_iterator(more.units.begin()),
                       std::make_move_iterator(more.units.end()));
}

}  // namespace

void for_each_image(const std::string& bytes, const std::string& name,
                    const std::function<void(const container::FileImage&, const std::string&)>& visit) {
  if (container::is_archive(bytes)) {
    for (const container::ArchiveMember& member : container::archive_members(bytes, name)) {
      const std::string terminated(member.bytes);
      for_each_image(terminated, fmt::format("{}({})", name, member.name), visit);
    }
    return;
  }
  for (const container::FileImage& image : container::find_images(bytes)) visit(image, name);
}

size_t ProgramLink::bytes() const {
  size_t sum = 0;
  for (const AddedCode& code : inputs) sum += code.bytes.size() + code.ptx.size();
  return sum;
}

jit::Program program_from(const ProgramLink& link, uint32_t sm) {
  if (!link.problem.empty()) throw Error(ErrorCode::Unsupported, link.problem);
  jit::Program program;
  std::vector<LtoIr> lto_ir;
  for (const AddedCode& code : link.inputs) {
    if (code.kind == CodeKind::LtoIr) {
      lto_ir.push_back({code.bytes, code.name});
      continue;
    }
    if (code.kind == CodeKind::Ptx) {
      append(program, jit::program_from_ptx(code.bytes, code.name));
      program.units.back().options = code.options;
      continue;
    }
    for_each_image(code.bytes, code.name, [&](const container::FileImage& found, const std::string& name) {
      container::FileImage image = found;
      move_lto_ir(image, name, sm, lto_ir);
      jit::Program units = units_of(image, name, sm);
      if (image.kind == container::ImageKind::Cubin) units.units.front().ptx = code.ptx;
      // They apply to code that the linker compiles.
      for (jit::Unit& unit : units.units) {
        if (unit.cubin.empty()) unit.options += code.options;
      }
      append(program, std::move(units));
    });
  }
  if (!lto_ir.empty()) append(program, compiled(lto_ir, link.lto_options, sm));
  return program;
}

ProgramLinks& ProgramLinks::instance() {
  static auto* const links = new ProgramLinks;  // leaked: code may be loaded while the process exits
  return *links;
}

void ProgramLinks::begin(Handle link, std::string ptxas_options, std::vector<std::string> lto_options,
                         std::string target) {
  const std::lock_guard lock(mutex_);
  open_[link] = {{std::move(ptxas_options), std::move(target)}, {{}, std::move(lto_options), {}}};
}

std::optional<ProgramLinks::Options> ProgramLinks::options_of(Handle link) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(link);
  if (found == open_.end() || !found->second.link.problem.empty()) return std::nullopt;
  return found->second.options;
}

void ProgramLinks::add(Handle link, AddedCode code) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(link);
  if (found == open_.end() || !found->second.link.problem.empty()) return;
  auto& [options, to] = found->second;
  code.options = options.ptxas + code.options;
  to.inputs.push_back(std::move(code));
  if (to.bytes() <= kMostBytes) return;
  to.inputs.clear();
  to.problem = fmt::format("the program linked more than {} MB of code", kMostBytes >> 20);
}

void ProgramLinks::spoil(Handle link, const std::string& problem) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(link);
  if (found != open_.end() && found->second.link.problem.empty()) found->second.link.problem = problem;
}

std::shared_ptr<const ProgramLink> ProgramLinks::complete(Handle link, std::string_view machine_code) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(link);
  if (found == open_.end()) return nullptr;
  // It is copied, since the program may ask for the result again.
  auto kept = std::make_shared<const ProgramLink>(found->second.link);
  keep({machine_code.size(), content_hash(machine_code), kept});
  return kept;
}

void ProgramLinks::keep(Result result) {
  std::erase_if(results_, [&](const Result& other) {
    return other.bytes == result.bytes && other.hash == result.hash;
  });
  results_.push_back(std::move(result));
  const auto kept = [&] {
    size_t sum = 0;
    for (const Result& each : results_) sum += each.link->bytes();
    return sum;
  };
  while (results_.size() > kMostResults || (results_.size() > 1 && kept() > kMostBytes)) results_.pop_front();
  count_.store(results_.size(), std::memory_order_release);
}

void ProgramLinks::end(Handle link) {
  const std::lock_guard lock(mutex_);
  open_.erase(link);
}

std::shared_ptr<const ProgramLink> ProgramLinks::link_of(std::string_view machine_code) {
  if (none()) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto has_size = [&](const Result& result) { return result.bytes == machine_code.size(); };
  if (std::ranges::none_of(results_, has_size)) return nullptr;
  const auto hash = content_hash(machine_code);
  const auto found = std::ranges::find_if(
      results_, [&](const Result& result) { return has_size(result) && result.hash == hash; });
  return found == results_.end() ? nullptr : found->link;
}

}  // namespace klap::runtime
