// Graph files: the formats that the papers' inputs come in, and the one that finished inputs are kept in.
//
// Every reader checks what it reads and throws FileError, which names the file, the place and what is wrong;
// a damaged input must never become a measurement.
#pragma once

#include <stdexcept>
#include <string>

#include "graph.h"

namespace bench {

class FileError : public std::runtime_error {
 public:
  FileError(const std::string& file, long long line, const std::string& what)
      : std::runtime_error(file + (line > 0 ? ":" + std::to_string(line) : "") + ": " + what) {}
};

// The whole file. Throws FileError if it cannot be opened or read.
std::string read_whole(const std::string& file);

// By its content: Galois binary `.gr` version 1, Matrix Market coordinate (1-based; symmetric ones give both
// directions; values are dropped), or DIMACS shortest-path text ("p sp n m", "a from to weight").
Graph read_graph(const std::string& file);

// Galois binary version 1, with weights where the graph has them. Written under another name and renamed.
void write_galois(const std::string& file, const Graph& graph);

}  // namespace bench
