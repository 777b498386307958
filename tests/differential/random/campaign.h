// Runs random programs in every configuration until the time is up, and reduces those that fail.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "case.h"
#include "random/generate.h"
#include "runs.h"

namespace klap::differential::random {

struct Plan {
  std::chrono::seconds time{20};
  uint64_t seed = 1;       // of the first program; the others follow
  uint64_t programs = 0;   // no more than these; 0: as many as there is time for
  std::vector<Mix> mixes;  // taken in turn
  std::vector<Configuration> configurations;
  uint64_t seeds = 2;  // of the emulator, for each program in each configuration
  uint64_t batch = 6;  // programs in one process
  size_t processes = 2;
  size_t most_failures = 3;                         // stop after so many
  size_t most_tries = 600;                          // of each reduction
  std::filesystem::path out;                        // receives reduced programs
  std::function<void(Case&)> plant;                 // puts a fault into every case; of tests
  std::function<std::string(const Case&)> refusal;  // the reason why the library leaves a program as it is
  std::map<std::string, std::string> settings;      // environment variables of all runs
  // A library with a fault, for preloaded runs. A program counts as failing only if the usual library runs it
  // well; nothing is reduced.
  std::filesystem::path faulty_library;
};

struct Tally {
  uint64_t programs = 0;  // in all configurations
  uint64_t runs = 0;
  uint64_t rewritten = 0;                   // launch sites of preloaded processes
  std::map<std::string, uint64_t> left;     // those that are not, by reason
  std::map<std::string, uint64_t> refused;  // programs, by what Plan::refusal says
  uint64_t redirected = 0;                  // host launches that ran a variant
  std::vector<std::string> failures;        // texts for people
  std::vector<uint64_t> failing;            // the seeds of these programs
  bool is_missing_device = false;
};

Tally run_campaign(const Plan& plan);

}  // namespace klap::differential::random
