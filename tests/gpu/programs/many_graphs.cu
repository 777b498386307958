// Graphs that come and go: each one is captured, run once and destroyed. What one of them needed is there for
// the next. So the process has as many mappings at the end as after the first ones, with and without
// statistics, and their children are counted all the same.
//
// The argument is the number of graphs.
#include <cstdlib>
#include <fstream>
#include <string>

#include "graphs.h"

namespace {

constexpr int kParentsOfGraph = 4, kFirst = 64, kMostMore = 3;

int mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) ++count;
  return count;
}

void run_graph(Cells& cells, const Stream& stream) {
  cudaGraph_t graph = capture(stream, [&] {
    for (int i = 0; i < kParentsOfGraph; ++i) parent<<<1, kBlockSize, 0, stream>>>(cells.data(), i + 1);
  });
  cudaGraphExec_t executable = instantiate(graph);
  launch(executable, stream);
  stream.synchronize();
  for (int i = 0; i < kParentsOfGraph; ++i) cells.expect_parent(i + 1, 1);
  destroy(executable);
  destroy(graph);
}

}  // namespace

int main(int argc, char** argv) {
  gpu::Report report("many_graphs");
  const int graphs = argc > 1 ? std::atoi(argv[1]) : 160;
  Cells cells;
  const Stream stream;
  // This loads the module, which not every driver does while a stream is captured.
  parent<<<1, kBlockSize, 0, stream>>>(cells.data(), 1);
  cells.expect_parent(1, 1);
  for (int i = 0; i < kFirst; ++i) run_graph(cells, stream);
  const int before = mappings();
  for (int i = kFirst; i < graphs; ++i) run_graph(cells, stream);
  const int more = mappings() - before;
  report.expect(more <= kMostMore, "%d mappings more after %d graphs", more, graphs);
  cells.compare(report, "cells");
  return report.finish();
}
