// The subcommands of klap that klap-ptx does not have. main.cpp fills in the options from the command line.
#pragma once

#include <string>
#include <vector>

namespace klap::tool {

struct RunOptions {
  std::vector<std::string> command;   // the program and its arguments
  std::vector<std::string> settings;  // key=value, valid ones
  std::string config;                 // config file; empty: none
  std::string report;                 // file that keeps the statistics; empty: none
  std::string library;                // the preload library; empty: the one beside this program
  bool compare = false;               // runs natively first
  bool native = false;                // runs each kernel as it is, and times it
  bool profile = false;               // times launches and counts sizes of children
  bool stats = false;                 // prints all that is known
  bool quiet = false;                 // prints nothing
};
// Returns the exit code: that of the program where it ran.
int run(const RunOptions& options);

struct DoctorOptions {
  bool json = false;
  std::string library;
};
// Returns 1 if something is broken.
int doctor(const DoctorOptions& options);
// Runs the small program of doctor. Returns 0 if its result is right; what is wrong goes to standard error.
int run_sample();

struct ReportOptions {
  std::vector<std::string> files;
  std::string baseline;  // statistics of another run; empty: none
  std::string html;      // file for the page, "-": standard output; empty: no page
};
void report(const ReportOptions& options);

}  // namespace klap::tool
