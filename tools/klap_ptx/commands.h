// The subcommands of klap-ptx, one file each. main.cpp fills in the options from the command line.
//
// Each prints its result to standard output and throws klap::Error for bad input.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace klap::tool {

// Options that decide about a launch site, shared by explain, rewrite and config.
struct PolicyOptions {
  // Values that options like --granularity set, by their environment variable; empty: not given.
  std::map<std::string, std::string> values;
  uint32_t sm = 90;  // compute capability to choose images for
  bool debug_units = false;
};

struct InspectOptions {
  std::string file;
  std::string dump_after;             // name of a pass, whose stages are printed instead
  std::vector<std::string> analyses;  // analysis_views() to print instead
  std::string kernel;                 // glob: what is printed is about this kernel only
  PolicyOptions policy;               // dump_after; its sm is always used
  bool json = false;
};
void inspect(const InspectOptions& options);

struct ExtractOptions {
  std::string file, folder;
  bool json = false;
};
void extract(const ExtractOptions& options);

struct RewriteOptions {
  std::string file, out;
  PolicyOptions policy;
  bool verbose = false;  // facts of each site as well
  bool json = false;
};
void rewrite(const RewriteOptions& options);

struct ExplainOptions {
  std::string file;
  std::string only;      // text in the name of a parent or child; empty: all sites
  std::string reason;    // sites that are left for this one; empty: all sites
  bool check = false;    // a site that is left is a failure
  bool verbose = false;  // facts of each site as well
  PolicyOptions policy;
  bool json = false;
};
// Returns the exit code.
int explain(const ExplainOptions& options);

struct CacheOptions {
  std::string file;          // warm
  std::vector<uint32_t> sm;  // warm
  PolicyOptions policy;      // warm; its sm is not used
  bool json = false;
};
void cache_ls(const CacheOptions& options);
void cache_clear(const CacheOptions& options);
void cache_warm(const CacheOptions& options);

struct ConfigOptions {
  std::string kernel;  // empty: for kernels that no table names
  std::string child;   // empty: not for one launch
  std::string file;    // a program whose annotations count too; empty: none
  PolicyOptions policy;
  bool json = false;
};
void config(const ConfigOptions& options);

struct ReasonsOptions {
  bool markdown = false, json = false;
};
void reasons(const ReasonsOptions& options);
// The names of the reasons for which a launch site may be left.
std::vector<std::string_view> site_reasons();

struct SettingsOptions {
  bool markdown = false, json = false;
  bool developers = false;  // their settings and the optimisations, instead of what users need
};
void settings(const SettingsOptions& options);

struct TuneOptions {
  std::vector<std::string> command;  // the program and its arguments
  std::string check;       // shell command that fails if a run was wrong; $1 is what the program printed
  std::string out;         // config file to write; empty: none
  std::string library;     // the preload library; empty: the one beside this program
  uint32_t runs = 3;       // with each setting alone
  uint32_t samples = 200;  // the most runs with several settings together
  double seconds = 300;    // after which no setting is begun
  std::vector<std::string> counters;  // metrics that runs of their own read; empty: none
  bool exhaustive = false;            // tries all combinations when the search is over
  std::string pictures;               // folder for pictures; empty: none
  bool json = false;
};
void tune(const TuneOptions& options);

}  // namespace klap::tool
