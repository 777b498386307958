// Reading and writing graph files; see graph_files.h.
#include "graph_files.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

namespace bench {

std::string read_whole(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw FileError(file, 0, "cannot be opened");
  try {
    return {std::istreambuf_iterator<char>(in), {}};
  } catch (const std::ios_base::failure&) {  // what the library throws for a folder
    throw FileError(file, 0, "cannot be read");
  }
}

namespace {

// The words of a text file, line by line.
class Lines {
 public:
  Lines(const std::string& file, std::string_view text) : file_(file), rest_(text) {}

  // Moves to the next line that is neither empty nor starts with one of `comments`; false at the end.
  bool next(std::string_view comments) {
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      skip_blanks();
      if (!line_.empty() && comments.find(line_[0]) == std::string_view::npos) return true;
    }
    return false;
  }

  std::string_view word() {
    size_t end = 0;
    while (end < line_.size() && std::isspace(static_cast<unsigned char>(line_[end])) == 0) ++end;
    const std::string_view found = line_.substr(0, end);
    line_.remove_prefix(end);
    skip_blanks();
    return found;
  }

  // The next word as a whole number from `smallest` to `largest`; it may be written like 1e3.
  long long number(const char* what, long long smallest, long long largest) {
    const std::string_view text = word();
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) fail("no number where " + name(what));
    // Written so that "nan", which from_chars accepts, fails too.
    if (!(value >= static_cast<double>(smallest) && value <= static_cast<double>(largest))) {
      fail("out of range: " + std::string(what) + " " + std::string(text));
    }
    if (value != std::floor(value)) fail("no whole number: " + std::string(what) + " " + std::string(text));
    return static_cast<long long>(value);
  }

  [[noreturn]] void fail(const std::string& what) const { throw FileError(file_, number_, what); }

 private:
  static std::string name(const char* what) { return std::string(what) + " should be"; }
  void skip_blanks() {
    while (!line_.empty() && std::isspace(static_cast<unsigned char>(line_[0])) != 0) line_.remove_prefix(1);
  }

  const std::string& file_;
  std::string_view rest_;
  std::string_view line_;
  long long number_ = 0;
};

Graph read_matrix_market(const std::string& file, std::string_view text) {
  Lines lines(file, text);
  lines.next("");
  lines.word();  // %%MatrixMarket, which brought us here
  if (lines.word() != "matrix" || lines.word() != "coordinate") lines.fail("not a coordinate matrix");
  // Values are not used, but a line without its value has been cut off, perhaps within its column's number.
  const bool has_values = lines.word() != "pattern";
  const std::string_view symmetry = lines.word();
  if (symmetry != "general" && symmetry != "symmetric") {
    lines.fail("symmetry '" + std::string(symmetry) + "' is not read; general and symmetric are");
  }
  const bool symmetric = symmetry == "symmetric";
  if (!lines.next("%")) lines.fail("the line with the sizes is missing");
  const long long rows = lines.number("the number of rows", 1, INT_MAX - 1);
  const long long columns = lines.number("the number of columns", 1, INT_MAX - 1);
  const long long entries = lines.number("the number of entries", 0, symmetric ? INT_MAX / 2 : INT_MAX);
  if (rows != columns) lines.fail("the matrix is not square, so it is no graph");
  std::vector<Edge> edges;
  for (long long i = 0; i < entries; ++i) {
    if (!lines.next("%")) lines.fail(std::to_string(entries - i) + " entries are missing at the end");
    const auto row = static_cast<int>(lines.number("a row", 1, rows));
    const auto column = static_cast<int>(lines.number("a column", 1, columns));
    if (has_values && lines.word().empty()) lines.fail("an entry without its value");
    edges.push_back({row - 1, column - 1, 1});
  }
  if (lines.next("%")) lines.fail("more entries than announced");
  return graph_from_edges(static_cast<int>(rows), edges,
                          symmetric ? Direction::kBothWays : Direction::kAsGiven, false);
}

Graph read_dimacs(const std::string& file, std::string_view text) {
  Lines lines(file, text);
  if (!lines.next("c") || lines.word() != "p" || lines.word() != "sp")
    lines.fail("no line 'p sp NODES ARCS'");
  const long long nodes = lines.number("the number of nodes", 1, INT_MAX - 1);
  const long long arcs = lines.number("the number of arcs", 0, INT_MAX);
  std::vector<Edge> edges;
  while (lines.next("c")) {
    if (lines.word() != "a") lines.fail("a line that is neither 'a' nor 'c'");
    if (static_cast<long long>(edges.size()) == arcs) lines.fail("more arcs than announced");
    const auto from = static_cast<int>(lines.number("a node", 1, nodes));
    const auto to = static_cast<int>(lines.number("a node", 1, nodes));
    edges.push_back({from - 1, to - 1, static_cast<int>(lines.number("a weight", 0, INT_MAX))});
  }
  const long long missing = arcs - static_cast<long long>(edges.size());
  if (missing != 0) lines.fail(std::to_string(missing) + " arcs are missing at the end");
  return graph_from_edges(static_cast<int>(nodes), edges, Direction::kAsGiven, true);
}

struct GaloisHeader {
  uint64_t version;
  uint64_t edge_data_bytes;
  uint64_t nodes;
  uint64_t edges;
};

// Copies `count` elements from a binary file's bytes at `offset`, which moves behind them.
template <class T>
std::vector<T> take(const std::string& file, std::string_view bytes, size_t& offset, size_t count) {
  if (offset > bytes.size() || (bytes.size() - offset) / sizeof(T) < count) {
    throw FileError(file, 0, "the file ends early, at byte " + std::to_string(bytes.size()));
  }
  std::vector<T> values(count);
  if (count != 0) std::memcpy(values.data(), bytes.data() + offset, count * sizeof(T));
  offset += count * sizeof(T);
  return values;
}

bool is_galois(std::string_view bytes) {
  uint64_t version = 0;
  if (bytes.size() < sizeof(GaloisHeader)) return false;
  std::memcpy(&version, bytes.data(), sizeof version);
  return version == 1;
}

Graph read_galois(const std::string& file, std::string_view bytes) {
  size_t offset = 0;
  const GaloisHeader header = take<GaloisHeader>(file, bytes, offset, 1)[0];
  if (header.nodes == 0 || header.nodes >= INT_MAX || header.edges > INT_MAX) {
    throw FileError(file, 0, "too many or no nodes or edges");
  }
  if (header.edge_data_bytes != 0 && header.edge_data_bytes != sizeof(uint32_t)) {
    throw FileError(file, 0, "weights of " + std::to_string(header.edge_data_bytes) + " bytes are not read");
  }
  const auto ends = take<uint64_t>(file, bytes, offset, header.nodes);
  const auto targets = take<uint32_t>(file, bytes, offset, header.edges);
  Graph graph;
  graph.first.reserve(header.nodes + 1);
  graph.first.push_back(0);
  for (const uint64_t end : ends) {
    if (end < static_cast<uint64_t>(graph.first.back()) || end > header.edges) {
      throw FileError(file, 0, "the edge offsets do not ascend");
    }
    graph.first.push_back(static_cast<int>(end));
  }
  if (ends.back() != header.edges) throw FileError(file, 0, "the edge offsets do not cover all edges");
  graph.neighbour.assign(targets.begin(), targets.end());
  for (const uint32_t target : targets) {
    if (target >= header.nodes) throw FileError(file, 0, "an edge to a node that does not exist");
  }
  if (header.edge_data_bytes != 0) {
    offset += header.edges % 2 * sizeof(uint32_t);  // the destinations are padded to 8 bytes
    graph.weight = take<int>(file, bytes, offset, header.edges);
    if (std::any_of(graph.weight.begin(), graph.weight.end(), [](int w) { return w < 0; })) {
      throw FileError(file, 0, "a weight of 2^31 or more");
    }
  }
  // The last array may be padded to 8 bytes or not.
  if (bytes.size() - offset > sizeof(uint32_t)) throw FileError(file, 0, "more edges than announced");
  return graph;
}

template <class T>
void put(std::ofstream& out, const std::vector<T>& values) {
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(T)));
}

}  // namespace

Graph read_graph(const std::string& file) {
  const std::string bytes = read_whole(file);
  if (bytes.rfind("%%MatrixMarket", 0) == 0) return read_matrix_market(file, bytes);
  if (is_galois(bytes)) return read_galois(file, bytes);
  if (!bytes.empty() && (bytes[0] == 'c' || bytes[0] == 'p')) return read_dimacs(file, bytes);
  throw FileError(file, 0, "neither Matrix Market nor Galois .gr version 1 nor DIMACS shortest-path text");
}

void write_galois(const std::string& file, const Graph& graph) {
  const std::string temporary = file + "." + std::to_string(getpid());
  std::ofstream out(temporary, std::ios::binary);
  const GaloisHeader header = {1, graph.weight.empty() ? 0U : 4U, graph.first.size() - 1,
                               graph.neighbour.size()};
  put(out, std::vector<GaloisHeader>{header});
  put(out, std::vector<uint64_t>(graph.first.begin() + 1, graph.first.end()));
  put(out, graph.neighbour);
  if (graph.neighbour.size() % 2 != 0) put(out, std::vector<int>{0});
  put(out, graph.weight);
  out.close();
  if (!out || std::rename(temporary.c_str(), file.c_str()) != 0) {
    std::remove(temporary.c_str());
    throw FileError(file, 0, "cannot be written");
  }
}

}  // namespace bench
