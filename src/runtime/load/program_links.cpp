#include "runtime/load/program_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "container/archive.h"
#include "container/host_elf.h"
#include "container/image.h"
#include "runtime/load/image_rewrite.h"
#include "runtime/load/load.h"
#include "support/error.h"
#include "support/file.h"
#include "support/hash.h"

namespace klap::runtime {

namespace {

// Limits for all results that are kept, and for one link. Code that a program links while it runs is small.
constexpr size_t kMostBytes = size_t{64} << 20;
constexpr size_t kMostResults = 256;

// Calls `visit` with each image in the bytes of an input that is not PTX, of archives with those of all
// members.
template <class Visit>
void for_each_image(const std::string& bytes, const std::string& name, const Visit& visit) {
  if (container::is_archive(bytes)) {
    for (const container::ArchiveMember& member : container::archive_members(bytes, name)) {
      const std::string terminated(member.bytes);
      for_each_image(terminated, fmt::format("{}({})", name, member.name), visit);
    }
    return;
  }
  for (const container::FileImage& image : container::find_images(bytes)) visit(image, name);
}

bool launches(const container::FileImage& image, const std::string& name) {
  if (image.kind == container::ImageKind::Cubin) return container::mentions_device_launch(image.text, name);
  if (image.kind == container::ImageKind::Ptx) return image.text.find("LaunchDevice") != std::string::npos;
  return std::ranges::any_of(image.units, [](const container::Fatbin& unit) {
    return !container::is_device_runtime(unit) && container::mentions_device_launch(unit);
  });
}

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

void append(jit::Program& program, jit::Program more) {
  program.units.insert(program.units.end(), std::make_move_iterator(more.units.begin()),
                       std::make_move_iterator(more.units.end()));
}

CodeKind kind_of(CUjitInputType type) {
  switch (type) {
    case CU_JIT_INPUT_PTX:
      return CodeKind::Ptx;
    case CU_JIT_INPUT_CUBIN:
    case CU_JIT_INPUT_FATBINARY:
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
      return CodeKind::Binary;
    default:
      return CodeKind::LtoIr;
  }
}

std::string options_text(const JitOptions& options) {
  return options.count == 0 ? "" : ptxas_options({options.names, options.count}, options.values);
}

// Names that the linker resolves to addresses that only this call knows.
bool binds_symbols(const JitOptions& options) {
  return std::any_of(options.names, options.names + options.count,
                     [](CUjit_option name) { return name == CU_JIT_GLOBAL_SYMBOL_NAMES; });
}

}  // namespace

size_t ProgramLink::bytes() const {
  size_t sum = 0;
  for (const AddedCode& code : inputs) sum += code.bytes.size();
  return sum;
}

bool launches(const ProgramLink& link) {
  return std::ranges::any_of(link.inputs, [](const AddedCode& code) {
    if (code.kind == CodeKind::LtoIr) return false;
    if (code.kind == CodeKind::Ptx) return code.bytes.find("LaunchDevice") != std::string::npos;
    bool found = false;
    for_each_image(code.bytes, code.name, [&](const container::FileImage& image, const std::string& name) {
      found = found || launches(image, name);
    });
    return found;
  });
}

jit::Program program_from(const ProgramLink& link, uint32_t sm) {
  if (!link.problem.empty()) throw Error(ErrorCode::Unsupported, link.problem);
  jit::Program program;
  for (const AddedCode& code : link.inputs) {
    if (code.kind == CodeKind::LtoIr)
      throw Error(ErrorCode::Unsupported, "it is code for link-time optimisation").at(code.name);
    if (code.kind == CodeKind::Ptx) {
      append(program, jit::program_from_ptx(code.bytes, code.name));
      program.units.back().options = code.options;
      continue;
    }
    for_each_image(code.bytes, code.name, [&](const container::FileImage& image, const std::string& name) {
      append(program, units_of(image, name, sm));
    });
  }
  return program;
}

ProgramLinks& ProgramLinks::instance() {
  static auto* const links = new ProgramLinks;  // leaked: code may be loaded while the process exits
  return *links;
}

void ProgramLinks::begin(Handle link, std::string options) {
  const std::lock_guard lock(mutex_);
  open_[link] = {std::move(options), {}};
}

void ProgramLinks::add(Handle link, AddedCode code) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(link);
  if (found == open_.end() || !found->second.link.problem.empty()) return;
  auto& [options, to] = found->second;
  code.options = options + code.options;
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

void ProgramLinks::complete(Handle link, const void* image, size_t readable_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(link);
  const uint64_t bytes = container::machine_code_bytes(image);
  if (found == open_.end() || bytes == 0 || bytes > readable_bytes) return;
  // It is copied, since the program may ask for the result again.
  ProgramLink of = found->second.link;
  try {
    if (of.problem.empty() && !launches(of)) return;
  } catch (const Error& error) {
    of = {{}, error.what()};
  }
  keep({bytes, content_hash({static_cast<const char*>(image), bytes}),
        std::make_shared<ProgramLink>(std::move(of))});
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

void link_created(CUlinkState link, const JitOptions& options) {
  ProgramLinks::instance().begin(link, options_text(options));
  if (binds_symbols(options))
    ProgramLinks::instance().spoil(link, "the program's link gives symbols addresses of its own");
}

void link_data_added(CUlinkState link, CUjitInputType type, const void* data, size_t bytes, const char* name,
                     const JitOptions& options) {
  std::string copy(static_cast<const char*>(data), bytes);
  if (type == CU_JIT_INPUT_PTX) copy.resize(strnlen(copy.data(), copy.size()));
  ProgramLinks::instance().add(
      link, {kind_of(type), name != nullptr ? name : "linked code", std::move(copy), options_text(options)});
}

void link_file_added(CUlinkState link, CUjitInputType type, const char* path, const JitOptions& options) {
  try {
    std::string bytes = read_file(path);
    if (type == CU_JIT_INPUT_PTX) bytes.resize(strnlen(bytes.data(), bytes.size()));
    ProgramLinks::instance().add(link, {kind_of(type), path, std::move(bytes), options_text(options)});
  } catch (const Error& error) {
    ProgramLinks::instance().spoil(link, error.what());
  }
}

void link_completed(CUlinkState link, const void* image, size_t bytes) {
  ProgramLinks::instance().complete(link, image, bytes);
}

void link_about_to_end(CUlinkState link) { ProgramLinks::instance().end(link); }

}  // namespace klap::runtime
