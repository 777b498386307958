#include "runtime/links/link_files.h"

#include "runtime/process.h"
#include "support/checked_file.h"
#include "support/error.h"
#include "support/hash.h"
#include "support/log.h"

namespace klap::runtime {
namespace {

constexpr std::string_view kMagic("klaplnk\n", 8);
constexpr uint32_t kFormat = 1;

}  // namespace

LinkFiles& LinkFiles::instance() {
  // Leaked on purpose: code may be loaded while the process exits.
  static auto* const files = new LinkFiles(
      config().cache_disabled ? std::filesystem::path() : config().cache_dir, config().cache_max_bytes);
  return *files;
}

void LinkFiles::keep(std::string_view machine_code, const ProgramLink& link) const {
  if (folder_.empty()) return;
  try {
    const auto folder = jit::CacheFolder::open(folder_);
    const std::string file = link_file(machine_code);
    if (folder.read(file)) return folder.touch(file);
    folder.write(file, encode(link));
    folder.trim(max_bytes_);
  } catch (const Error& error) {
    log().info("the inputs of a link are not kept: {}", error.what());
  }
}

std::shared_ptr<const ProgramLink> LinkFiles::find(std::string_view machine_code) const {
  if (folder_.empty()) return nullptr;
  const std::string file = link_file(machine_code);
  try {
    const auto folder = jit::CacheFolder::open(folder_);
    const std::optional<std::string> bytes = folder.read(file);
    if (!bytes) return nullptr;
    folder.touch(file);
    return std::make_shared<const ProgramLink>(decode_link(*bytes));
  } catch (const Error& error) {
    log().info("the inputs of a link, {}, are not used: {}", (folder_ / file).string(), error.what());
    return nullptr;
  }
}

std::string link_file(std::string_view machine_code) {
  return Hasher().add(machine_code).hex() + std::string(jit::kLinkEnding);
}

std::string encode(const ProgramLink& link) {
  CheckedWriter file(kMagic, kFormat);
  file.put(uint64_t{link.lto_options.size()});
  for (const std::string& option : link.lto_options) file.put_text(option);
  file.put(uint64_t{link.inputs.size()});
  for (const AddedCode& code : link.inputs) {
    file.put(code.kind);
    for (const std::string* text : {&code.name, &code.bytes, &code.options, &code.ptx}) file.put_text(*text);
  }
  return file.finish();
}

ProgramLink decode_link(std::string_view bytes) {
  CheckedReader file(bytes, kMagic, kFormat, "link");
  ProgramLink link;
  for (uint64_t left = file.get<uint64_t>(); left != 0; --left) link.lto_options.push_back(file.get_text());
  for (uint64_t left = file.get<uint64_t>(); left != 0; --left) {
    AddedCode code;
    code.kind = file.get<CodeKind>();
    for (std::string* text : {&code.name, &code.bytes, &code.options, &code.ptx}) *text = file.get_text();
    link.inputs.push_back(std::move(code));
  }
  file.finish();
  return link;
}

}  // namespace klap::runtime
