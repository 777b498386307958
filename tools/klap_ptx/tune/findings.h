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

struct Findings {
  std::vector<Sample> samples;  // the fastest first
  HeldOut held_out;
  std::map<std::string, double> importance;
  Components components;
  std::vector<Merge> merges;  // of the first samples; of more than a thousand, the slower ones are left out
  std::vector<GroupSummary> groups;
};

// `samples` are in the order of their times. With `with_model` false, only they are returned.
Findings find(std::vector<Sample> samples, const std::vector<Candidate>& tried, bool with_model);

// Adds components, merges and groups to what has samples.
void find_alike(Findings& found, const std::vector<Candidate>& tried);

// "with threshold = 64, without launcher = device"; "alike in nothing else" if nothing sets it apart.
std::string text(const GroupSummary& group);

void print_findings(const Findings& found);
nlohmann::json to_json(const Findings& found, const std::vector<Candidate>& tried);

}  // namespace klap::tool
