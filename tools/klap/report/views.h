// The parts of the page for its template (page.html), as JSON. Texts are as they are: the template escapes
// them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "klap/report/baseline.h"
#include "klap/statistics.h"

namespace klap::tool {

// A kernel's place on the page.
struct PageKernel {
  std::string id;
  std::string short_name;
};

// By mangled name: kernels that were launched or have a launch that is left, and only these.
using PageKernels = std::map<std::string, PageKernel>;

// The mangled names of the kernels on the page, the ones that take the longest first; and the ids of all.
std::vector<std::string> listed_kernels(const Statistics& all);
PageKernels page_kernels(const Statistics& all);

// A kernel's row in the table of all, and its section.
nlohmann::json kernel_view(const Statistics& all, const std::string& mangled, const PageKernel& page,
                           const Baseline& baseline);
// The first launches of each process, and the slowest of all.
nlohmann::json timeline_view(const Statistics& all, const PageKernels& kernels);
// Launches that were left or run slower than they might, and the advice for each reason.
nlohmann::json help_view(const Statistics& all, const PageKernels& kernels);
// Modules, memory and processes.
nlohmann::json program_view(const Statistics& all);

// "bfs<1>" for "void bfs<1>(int*)".
std::string short_name(const std::string& demangled);

}  // namespace klap::tool
