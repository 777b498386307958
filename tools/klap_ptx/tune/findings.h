// The findings about a kernel's samples: a model of its time, what that depends on, and which samples are
// alike.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "klap_ptx/tune/clusters.h"
#include "klap_ptx/tune/components.h"
#include "klap_ptx/tune/time_model.h"

namespace klap::tool {

// A group near the root of the tree of clusters.
struct GroupSummary {
  Group group;
  double fastest_ms = 0, slowest_ms = 0;
  // The settings that all its samples have, and those that none has, where that is not so of its parent.
  std::vector<std::string> with, without;
};

// The variables by which samples are compared.
enum class Basis { Settings, Counters };

// "settings", "performance counters".
const char* name_of(Basis basis);

struct Findings {
  Basis basis = Basis::Settings;
  std::vector<Sample> samples;          // the fastest first
  std::vector<CounterValues> counters;  // of each sample, if they are the basis
  HeldOut held_out;
  std::map<std::string, double> importance;
  Components components;
  std::vector<Merge> merges;  // of the first samples; of more than a thousand, the slower ones are left out
  std::vector<GroupSummary> groups;
};

// `samples` are in the order of their times. With `with_model` false, only they are returned.
Findings find(std::vector<Sample> samples, const std::vector<Candidate>& tried, bool with_model);

// Findings about those samples whose performance counters were read. Without a model if they are too few.
Findings find_by_counters(const std::vector<Sample>& samples,
                          const std::map<Configuration, CounterValues>& counted,
                          const std::vector<Candidate>& tried);

// Adds components, merges and groups to what has samples.
void find_alike(Findings& found, const std::vector<Candidate>& tried);

// "with threshold = 64, without launcher = device"; "alike in nothing else" if nothing sets it apart.
std::string text(const GroupSummary& group);

void print_findings(const Findings& found);
nlohmann::json to_json(const Findings& found, const std::vector<Candidate>& tried);

}  // namespace klap::tool
