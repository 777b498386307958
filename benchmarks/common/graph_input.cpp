// Choosing a benchmark's graph; see graph_input.h.
#include "graph_input.h"

#include <sys/stat.h>

#include <climits>
#include <cstdio>
#include <cstdlib>

#include "graph_files.h"
#include "graph_generators.h"

namespace bench {
namespace {

[[noreturn]] void give_up(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(2);
}

bool is_rmat(const GraphInput& input) { return input.kind == "rmat" || input.kind == "rmat-as-drawn"; }

Graph generate(const GraphInput& input, uint64_t seed) {
  const auto vertices = static_cast<int>(input.vertices);
  const auto degree = static_cast<int>(input.degree);
  Graph graph;
  if (is_rmat(input)) {
    const VertexNames names = input.kind == "rmat" ? VertexNames::kShuffled : VertexNames::kAsDrawn;
    graph = rmat_graph(static_cast<int>(input.scale), degree, seed, names);
  } else if (input.kind == "citation") {
    graph = citation_graph(vertices, degree, static_cast<int>(input.largest_degree), seed);
  } else {
    graph = uniform_graph(vertices, degree, seed);
  }
  if (input.largest_weight > 0) add_weights(graph, static_cast<int>(input.largest_weight), seed);
  return graph;
}

// What the cache calls a generated graph: every option that shapes it.
std::string cache_name(const GraphInput& input, uint64_t seed) {
  std::string name = input.kind;
  for (const long long value : {input.vertices, input.scale, input.degree, input.largest_degree,
                                input.largest_weight, static_cast<long long>(seed)}) {
    name += "-" + std::to_string(value);
  }
  return name + ".gr";
}

bool exists(const std::string& file) {
  struct stat about = {};
  return stat(file.c_str(), &about) == 0;
}

Graph from_file(const GraphInput& input, uint64_t seed) {
  Graph graph = read_graph(input.data);
  if (input.largest_weight == 0) {
    graph.weight.clear();
  } else if (graph.weight.empty()) {
    add_weights(graph, static_cast<int>(input.largest_weight), seed);
  }
  return graph;
}

// Edges that the generator may make, both directions counted.
long long most_edges(const GraphInput& input) {
  if (is_rmat(input)) return (2 * input.degree) << input.scale;
  return input.vertices * (2 * input.degree + 1);
}

void check_sizes(const GraphInput& input) {
  if (input.vertices >= INT_MAX || input.degree >= INT_MAX || input.scale > 30 ||
      input.largest_weight > INT_MAX || input.largest_degree >= INT_MAX || most_edges(input) > INT_MAX) {
    give_up("the graph is too large: edges are numbered with 31 bits");
  }
  if (input.kind == "citation" && (input.degree >= input.largest_degree || input.degree < 1)) {
    give_up("a citation graph needs a degree between 1 and its largest degree");
  }
}

}  // namespace

void GraphInput::add_to(Options& options) {
  options.choice("graph", kind, {"uniform", "rmat", "rmat-as-drawn", "citation"},
                 "how the graph is generated");
  options.integer("vertices", vertices, 1, "vertices of a uniform or citation graph");
  options.integer("scale", scale, 0, "log2 of the number of vertices of an R-MAT graph");
  options.integer("degree", degree, 0, "edges drawn for each vertex");
  options.integer("largest-degree", largest_degree, 1, "largest degree drawn in a citation graph");
  options.integer("largest-weight", largest_weight, 0, "weights are from 1 to this; 0: none");
  options.text("data", data, "read the graph from this file: Matrix Market, Galois .gr or DIMACS");
  options.text("input-cache", cache, "folder that keeps generated graphs for the next process");
}

Graph GraphInput::load(uint64_t seed) const {
  try {
    if (!data.empty()) return from_file(*this, seed);
    check_sizes(*this);
    if (cache.empty()) return generate(*this, seed);
    const std::string file = cache + "/" + cache_name(*this, seed);
    if (exists(file)) return read_graph(file);
    Graph graph = generate(*this, seed);
    write_galois(file, graph);
    return graph;
  } catch (const FileError& error) {
    give_up(error.what());
  }
}

void GraphInput::describe(JsonObject& report, const Graph& graph) const {
  int largest = 0;
  for (int v = 0; v < graph.vertices(); ++v) largest = graph.degree(v) > largest ? graph.degree(v) : largest;
  report.add("graph", data.empty() ? kind : data.substr(data.rfind('/') + 1));
  report.add("vertices", graph.vertices()).add("edges", graph.edges()).add("largest_degree", largest);
}

}  // namespace bench
