// Which graph a benchmark program works on: options that name a generator and its sizes, or a data file.
//
// Making or reading the larger inputs takes seconds, and a measurement starts every variant of a program as a
// process of its own; `--input-cache FOLDER` keeps finished graphs there for the next process.
#pragma once

#include <cstdint>
#include <string>

#include "graph.h"
#include "json.h"
#include "options.h"

namespace bench {

struct GraphInput {
  std::string kind = "uniform";  // uniform, rmat, rmat-as-drawn or citation
  long long vertices = 10000;    // of uniform and citation graphs
  long long scale = 12;          // both kinds of rmat: log2 of the number of vertices
  long long degree = 8;          // edges drawn per vertex
  long long largest_degree = 1188;
  long long largest_weight = 0;  // 0: no weights
  std::string data;              // a file instead of a generator
  std::string cache;

  void add_to(Options& options);

  // Makes or reads the graph. Ends the program with exit code 2 and a clear line where the sizes do not fit
  // 31-bit indices or the file cannot be read. A file's weights are used if it has any and weights are asked
  // for; otherwise they are drawn from the seed.
  [[nodiscard]] Graph load(uint64_t seed) const;

  // Adds what was asked for, and the graph's sizes and largest degree.
  void describe(JsonObject& report, const Graph& graph) const;
};

}  // namespace bench
