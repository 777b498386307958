#include "klap/doctor/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "jit/cache/cache_folder.h"
#include "klap/program.h"
#include "klap_ptx/preload_library.h"
#include "klap_ptx/run_folder.h"
#include "klap_ptx/tune/program_run.h"
#include "settings/contradictions.h"
#include "support/error.h"
#include "support/file.h"

namespace klap::tool {

namespace {

constexpr const char* kCache = "cache";
constexpr const char* kLibrary = "library";
constexpr const char* kSettings = "settings";

std::string describe_cache(const jit::CacheFolder& folder, const settings::Config& config) {
  const std::vector<jit::CachedFile> modules = folder.entries(), profiles = folder.profiles();
  uint64_t bytes = 0;
  for (const auto& files : {modules, profiles, folder.links(), folder.tuned()})
    for (const jit::CachedFile& file : files) bytes += file.bytes;
  return fmt::format("{}: {} modules, times of {} programs, {:.1f} of {:.0f} MiB", config.cache_dir.string(),
                     modules.size(), profiles.size(), static_cast<double>(bytes) / (1 << 20),
                     static_cast<double>(config.cache_max_bytes) / (1 << 20));
}

// Empty if the loader takes the library when a program begins: this one, which then prints its version.
std::string loader_problem(const std::string& library) {
  const RunFolder folder;
  const ProgramRun run{{"/proc/self/exe", "--version"},
                       {{"LD_PRELOAD", library}},
                       folder.file("output"),
                       std::chrono::seconds(30)};
  const RunOutcome outcome = run_program(run);
  const std::string said = read_file(folder.file("output"));
  if (outcome.exit_code == 0 && said.find("cannot be preloaded") == std::string::npos) return "";
  return fmt::format("the loader does not take it: {}", said.substr(0, said.find('\n')));
}

}  // namespace

Findings check_settings(const settings::Config& config) {
  Findings out;
  for (const std::string& problem : config.problems) out.push_back({kSettings, State::Broken, problem, ""});
  const auto problem = settings::find_contradiction(config);
  if (problem && std::ranges::count(config.problems, problem->what()) == 0)
    out.push_back({kSettings, State::Broken, problem->what(), ""});
  if (config.disabled)
    out.push_back({kSettings, State::Broken, "KLAP_DISABLE is set, so programs run as they are", "unset it"});
  if (out.empty()) out.push_back({kSettings, State::Fine, "all are understood", ""});
  return out;
}

Finding check_cache(const settings::Config& config) {
  constexpr const char* kProbe = "klap-doctor";
  const std::string elsewhere = "name a folder of your own in KLAP_CACHE_DIR";
  if (config.cache_disabled)
    return {kCache, State::Fine, "off, as KLAP_CACHE_DISABLE is set: each start compiles", "unset it"};
  if (config.cache_dir.empty())
    return {kCache, State::Broken, "there is no folder, as HOME is not set: each start compiles", elsewhere};
  try {
    const auto folder = jit::CacheFolder::open(config.cache_dir);
    folder.write(kProbe, "");
    folder.remove(kProbe);
    return {kCache, State::Fine, describe_cache(folder, config), ""};
  } catch (const Error& error) {
    return {kCache, State::Broken, fmt::format("{}: {}", config.cache_dir.string(), error.reason()),
            elsewhere};
  }
}

Finding check_library(const std::string& given, std::string& library) {
  try {
    const std::string found = find_preload_library(given);
    with_preloaded(found);
    std::string problem = library_problem(found);
    if (problem.empty()) problem = loader_problem(found);
    if (!problem.empty())
      return {kLibrary, State::Broken, fmt::format("{}: {}", found, problem),
              "install the libklap_jit.so that belongs to this klap"};
    library = found;
    return {kLibrary, State::Fine, found, ""};
  } catch (const Error& error) {
    return {kLibrary, State::Broken, error.what(), "install libklap_jit.so, or say --library FILE"};
  }
}

}  // namespace klap::tool
