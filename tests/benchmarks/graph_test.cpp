// The benchmark programs' graphs: generators, readers, and what they are built on.
#include "common/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/compare.h"
#include "common/graph_files.h"
#include "common/graph_generators.h"
#include "common/parallel.h"
#include "common/random.h"

namespace bench {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// ---- random.h, parallel.h, compare.h ----

TEST(Random, IsSplitMix64) {
  Random random(0);
  EXPECT_EQ(0xe220a8397b1dcdafULL, random.next());
  EXPECT_EQ(0x6e789e6aa1b965f4ULL, random.next());
  EXPECT_EQ(0x06c45d188009454fULL, random.next());
}

TEST(Random, DrawsWithinBounds) {
  Random random(7);
  std::vector<int> drawn(6);
  double sum = 0;
  for (int i = 0; i < 60000; ++i) {
    const uint32_t below = random.below(6);
    ASSERT_LT(below, 6U);
    ++drawn[below];
    const double u = random.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  for (const int count : drawn) EXPECT_NEAR(10000, count, 500);
  EXPECT_NEAR(0.5, sum / 60000, 0.01);
  EXPECT_EQ(0U, random.below(1));
}

TEST(Random, PartsOfAnInputDiffer) {
  std::set<uint64_t> first;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    for (uint64_t part = 0; part < 30; ++part) first.insert(Random(seed, part).next());
  }
  EXPECT_EQ(900U, first.size());
}

TEST(Parallel, LoopsVisitEverythingOnce) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}, size_t{32768}, size_t{1000003}}) {
    std::vector<std::atomic<int>> visits(count);
    parallel_for(count, [&](size_t i) { ++visits[i]; });
    EXPECT_TRUE(std::all_of(visits.begin(), visits.end(), [](int n) { return n == 1; })) << count;
  }
}

TEST(Compare, NamesTheFirstDifference) {
  const std::vector<int> expected = {1, 2, 3, 4};
  EXPECT_EQ("", differences("sums", expected, expected));
  EXPECT_EQ("2 sums differ, number 1 is 5 instead of 2", differences("sums", expected, {1, 5, 3, 0}));
  EXPECT_EQ("3 sums instead of 4", differences("sums", expected, {1, 2, 3}));
  EXPECT_EQ("", differences("sums", std::vector<int>{}, {}));
}

TEST(Compare, ToleratesWhatItIsTold) {
  const std::vector<double> expected = {100, 0};
  EXPECT_EQ("", differences_beyond("sums", expected, {100.9, 0.05}, 0.01, 0.1));
  EXPECT_THAT(differences_beyond("sums", expected, {101.2, 0}, 0.01, 0.1), HasSubstr("1 sums differ"));
  EXPECT_THAT(differences_beyond("sums", expected, {100, -0.2}, 0.01, 0.1), HasSubstr("number 1"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_NE("", differences_beyond("sums", expected, {nan, 0}, 0.01, 0.1));
  EXPECT_NE("", differences_beyond<double>("sums", {nan, 0}, {nan, 0}, 0.01, 0.1));
}

// ---- graph.h ----

TEST(GraphFromEdges, SortsAndDropsLoopsAndParallelEdges) {
  const std::vector<Edge> edges = {{2, 0, 9}, {0, 2, 5}, {0, 1, 7}, {0, 2, 3}, {1, 1, 1}, {0, 2, 4}};
  const Graph given = graph_from_edges(4, edges, Direction::kAsGiven, true);
  EXPECT_THAT(given.first, ElementsAre(0, 2, 2, 3, 3));
  EXPECT_THAT(given.neighbour, ElementsAre(1, 2, 0));
  EXPECT_THAT(given.weight, ElementsAre(7, 3, 9));
  const Graph both = graph_from_edges(4, edges, Direction::kBothWays, true);
  EXPECT_THAT(both.first, ElementsAre(0, 2, 3, 4, 4));
  EXPECT_THAT(both.neighbour, ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(both.weight, ElementsAre(7, 3, 7, 3));
  EXPECT_THAT(graph_from_edges(4, edges, Direction::kBothWays, false).weight, IsEmpty());
  EXPECT_THAT(graph_from_edges(2, {}, Direction::kBothWays, true).first, ElementsAre(0, 0, 0));
}

TEST(GraphFromEdges, DoesTheSameInManyThreadsAsInOne) {
  Random random(3);
  std::vector<Edge> edges;
  std::map<std::pair<int, int>, int> lightest;
  for (int i = 0; i < 400000; ++i) {
    const Edge e = {static_cast<int>(random.below(70000)), static_cast<int>(random.below(20)),
                    static_cast<int>(random.below(1000))};
    edges.push_back(e);
    if (e.from == e.to) continue;
    const auto place = lightest.emplace(std::pair(e.from, e.to), e.weight).first;
    place->second = std::min(place->second, e.weight);
  }
  const Graph graph = graph_from_edges(70000, edges, Direction::kAsGiven, true);
  ASSERT_EQ(lightest.size(), graph.neighbour.size());
  auto next = lightest.begin();
  for (int v = 0; v < graph.vertices(); ++v) {
    for (int e = graph.first[v]; e < graph.first[v + 1]; ++e, ++next) {
      ASSERT_EQ(next->first, std::pair(v, graph.neighbour[e]));
      ASSERT_EQ(next->second, graph.weight[e]);
    }
  }
}

TEST(CpuBfs, CountsEdges) {
  const std::vector<Edge> edges = {{0, 1, 1}, {1, 2, 1}, {0, 3, 1}, {3, 2, 1}, {2, 4, 1}, {5, 0, 1}};
  const Graph graph = graph_from_edges(6, edges, Direction::kAsGiven, false);
  EXPECT_THAT(cpu_bfs(graph, 0), ElementsAre(0, 1, 2, 1, 3, -1));
}

// ---- graph_generators.h ----

bool has_edge(const Graph& g, int from, int to) {
  return std::binary_search(g.neighbour.begin() + g.first[from], g.neighbour.begin() + g.first[from + 1], to);
}

// Neighbours ascend (so that there are no parallel edges), there are no loops, and every edge has its
// reverse.
void expect_simple_and_symmetric(const Graph& g) {
  for (int v = 0; v < g.vertices(); ++v) {
    for (int e = g.first[v]; e < g.first[v + 1]; ++e) {
      ASSERT_NE(v, g.neighbour[e]);
      ASSERT_GE(g.neighbour[e], 0);
      ASSERT_LT(g.neighbour[e], g.vertices());
      ASSERT_TRUE(e == g.first[v] || g.neighbour[e - 1] < g.neighbour[e]);
      ASSERT_TRUE(has_edge(g, g.neighbour[e], v)) << v << " " << g.neighbour[e];
    }
  }
}

double mean_degree(const Graph& g) { return static_cast<double>(g.edges()) / g.vertices(); }

int largest_degree(const Graph& g) {
  int largest = 0;
  for (int v = 0; v < g.vertices(); ++v) largest = std::max(largest, g.degree(v));
  return largest;
}

// One number that any change to a graph changes.
uint64_t fingerprint(const Graph& g) {
  uint64_t state = 0;
  for (const std::vector<int>* values : {&g.first, &g.neighbour, &g.weight}) {
    for (const int value : *values) state = mix(state ^ static_cast<uint32_t>(value));
  }
  return state;
}

void expect_same(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.neighbour, b.neighbour);
  EXPECT_EQ(a.weight, b.weight);
}

TEST(UniformGraph, HasTheDegreesAskedFor) {
  const Graph g = uniform_graph(20000, 10, 1);
  EXPECT_EQ(20000, g.vertices());
  EXPECT_EQ(g.first.back(), g.edges());
  EXPECT_NEAR(10, mean_degree(g), 0.1);
  for (int v = 0; v < g.vertices(); ++v) {
    ASSERT_GE(g.degree(v), 5);
    ASSERT_LE(g.degree(v), 15);
  }
  EXPECT_TRUE(std::all_of(g.neighbour.begin(), g.neighbour.end(), [](int w) { return w >= 0 && w < 20000; }));
  EXPECT_EQ(0, uniform_graph(5, 0, 1).edges());
  EXPECT_THAT(g.weight, IsEmpty());
}

TEST(RmatGraph, IsSymmetricAndSkewed) {
  const Graph g = rmat_graph(13, 16, 1);
  EXPECT_EQ(8192, g.vertices());
  expect_simple_and_symmetric(g);
  // 2 x 16 a vertex are drawn; R-MAT draws the same ones often.
  EXPECT_GT(mean_degree(g), 20);
  EXPECT_LT(mean_degree(g), 32);
  EXPECT_GT(largest_degree(g), 20 * mean_degree(g));
  int without = 0;
  for (int v = 0; v < g.vertices(); ++v) without += g.degree(v) == 0 ? 1 : 0;
  EXPECT_GT(without, 8192 / 20);
}

TEST(RmatGraph, ShufflesTheNames) {
  const Graph g = rmat_graph(12, 16, 1);
  // Unshuffled, three quarters of all edges begin in the lower half.
  EXPECT_NEAR(0.5, static_cast<double>(g.first[2048]) / g.edges(), 0.1);
}

TEST(RmatGraph, KeepsTheNamesAsDrawnIfAskedTo) {
  const Graph g = rmat_graph(12, 16, 1, VertexNames::kAsDrawn);
  const Graph shuffled = rmat_graph(12, 16, 1);
  expect_simple_and_symmetric(g);
  EXPECT_EQ(shuffled.edges(), g.edges());
  EXPECT_EQ(largest_degree(shuffled), g.degree(0));
  EXPECT_GT(g.first[2048], 0.7 * g.edges());
}

TEST(RmatGraph, MayBeTiny) {
  EXPECT_EQ(1, rmat_graph(0, 4, 1).vertices());
  EXPECT_EQ(0, rmat_graph(0, 4, 1).edges());
  EXPECT_EQ(0, rmat_graph(4, 0, 1).edges());
}

TEST(CitationGraph, HasThePowerLawAskedFor) {
  const Graph g = citation_graph(30000, 40, 600, 1);
  EXPECT_EQ(30000, g.vertices());
  expect_simple_and_symmetric(g);
  EXPECT_GT(mean_degree(g), 40 * 0.85);
  EXPECT_LE(mean_degree(g), 40 * 1.02);
  EXPECT_LE(largest_degree(g), 600);
  EXPECT_GT(largest_degree(g), 400);
  std::vector<int> degrees;
  for (int v = 0; v < g.vertices(); ++v) degrees.push_back(g.degree(v));
  std::nth_element(degrees.begin(), degrees.begin() + 15000, degrees.end());
  EXPECT_LT(degrees[15000], 20);  // most vertices have far fewer than the mean
}

TEST(CitationGraph, HalfOfThePartnersAreNear) {
  const Graph g = citation_graph(60000, 20, 100, 1);
  long long near = 0;
  for (int v = 0; v < g.vertices(); ++v) {
    for (int e = g.first[v]; e < g.first[v + 1]; ++e) near += std::abs(v - g.neighbour[e]) < 6000 ? 1 : 0;
  }
  const double share = static_cast<double>(near) / g.edges();
  EXPECT_GT(share, 0.5);
  EXPECT_LT(share, 0.75);
}

TEST(Weights, AreInRangeAndTheSameBothWays) {
  Graph g = rmat_graph(11, 8, 1);
  add_weights(g, 9, 4);
  ASSERT_EQ(g.neighbour.size(), g.weight.size());
  std::set<int> seen;
  for (int v = 0; v < g.vertices(); ++v) {
    for (int e = g.first[v]; e < g.first[v + 1]; ++e) {
      seen.insert(g.weight[e]);
      const auto begin = g.neighbour.begin();
      const auto back =
          std::lower_bound(begin + g.first[g.neighbour[e]], begin + g.first[g.neighbour[e] + 1], v);
      ASSERT_EQ(g.weight[e], g.weight[back - begin]);
    }
  }
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(Generators, DependOnTheSeedOnly) {
  expect_same(uniform_graph(500, 8, 5), uniform_graph(500, 8, 5));
  expect_same(rmat_graph(10, 8, 5), rmat_graph(10, 8, 5));
  expect_same(citation_graph(2000, 20, 300, 5), citation_graph(2000, 20, 300, 5));
  EXPECT_NE(uniform_graph(500, 8, 5).neighbour, uniform_graph(500, 8, 6).neighbour);
  EXPECT_NE(rmat_graph(10, 8, 5).neighbour, rmat_graph(10, 8, 6).neighbour);
  EXPECT_NE(citation_graph(2000, 20, 300, 5).neighbour, citation_graph(2000, 20, 300, 6).neighbour);
}

// The graphs of published results: the same on every machine, with however many cores, in every later
// version. They are large enough to be made by several threads.
TEST(Generators, MakeTheSameGraphsEverywhere) {
  EXPECT_EQ(0x7f495504603754efULL, fingerprint(uniform_graph(3000, 20, 1)));
  Graph rmat = rmat_graph(14, 16, 1);
  EXPECT_EQ(0xdd2f98092d312587ULL, fingerprint(rmat));
  add_weights(rmat, 100, 1);
  EXPECT_EQ(0x4158c3e12ce6e7c4ULL, fingerprint(rmat));
  EXPECT_EQ(0x3ee10f7ae4dc346fULL, fingerprint(citation_graph(40000, 20, 300, 1)));
}

// ---- graph_files.h ----

class GraphFiles : public testing::Test {
 protected:
  GraphFiles() : folder_(fs::path(testing::TempDir()) / ("klap_graphs." + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~GraphFiles() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const char* name = "graph") const { return folder_ / name; }

  [[nodiscard]] std::string written(const std::string& content) const {
    std::ofstream(path(), std::ios::binary) << content;
    return path();
  }

  [[nodiscard]] Graph read(const std::string& content) const { return read_graph(written(content)); }

  // What is wrong with a file of this content, without the file's name, which must be there too.
  [[nodiscard]] std::string mistake(const std::string& content) const { return mistake_in(written(content)); }

  static std::string mistake_in(const std::string& file) {
    try {
      read_graph(file);
    } catch (const FileError& error) {
      EXPECT_THAT(error.what(), StartsWith(file + ":"));
      return std::string(error.what()).substr(file.size());
    }
    return "nothing";
  }

  [[nodiscard]] std::string galois_bytes(const Graph& graph) const {
    write_galois(path(), graph);
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  fs::path folder_;
};

// Changes the 64-bit or 32-bit number at `offset`.
template <class T>
std::string with(std::string bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

// 4 vertices, 5 edges: 32 bytes of header, 4 ends of 8, 5 targets of 4, 4 of padding, 5 weights of 4.
Graph small_graph() { return {{0, 2, 2, 3, 5}, {1, 2, 0, 0, 2}, {7, 3, 9, 0, INT_MAX}}; }

TEST_F(GraphFiles, GaloisGoesRoundTrip) {
  Graph odd = small_graph();
  write_galois(path(), odd);
  expect_same(odd, read_graph(path()));
  EXPECT_EQ(32U + 32 + 20 + 4 + 20, fs::file_size(path()));
  odd.weight.clear();
  write_galois(path(), odd);
  expect_same(odd, read_graph(path()));
  Graph even = rmat_graph(9, 8, 1);
  write_galois(path(), even);
  expect_same(even, read_graph(path()));
  add_weights(even, 50, 1);
  write_galois(path(), even);
  expect_same(even, read_graph(path()));
  const Graph edgeless = {{0, 0, 0}, {}, {}};
  write_galois(path(), edgeless);
  expect_same(edgeless, read_graph(path()));
  EXPECT_EQ(1, std::distance(fs::directory_iterator(fs::path(path()).parent_path()), {}));
}

TEST_F(GraphFiles, GaloisMayLackThePaddingAtItsEnd) {
  Graph graph = small_graph();
  graph.weight.clear();
  const std::string bytes = galois_bytes(graph);
  expect_same(graph, read(bytes.substr(0, bytes.size() - 4)));
}

TEST_F(GraphFiles, TruncatedGaloisIsRefused) {
  const std::string bytes = galois_bytes(small_graph());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const char* expected =
        size < 32 ? ": neither Matrix Market nor Galois" : ": the file ends early, at byte ";
    EXPECT_THAT(mistake(bytes.substr(0, size)), StartsWith(expected)) << size;
  }
  EXPECT_EQ(": more edges than announced", mistake(bytes + std::string(8, '\0')));
}

TEST_F(GraphFiles, GaloisWithAWrongHeaderIsRefused) {
  const std::string bytes = galois_bytes(small_graph());
  EXPECT_THAT(mistake(with<uint64_t>(bytes, 0, 2)), StartsWith(": neither"));
  EXPECT_EQ(": weights of 8 bytes are not read", mistake(with<uint64_t>(bytes, 8, 8)));
  EXPECT_EQ(": too many or no nodes or edges", mistake(with<uint64_t>(bytes, 16, 0)));
  EXPECT_EQ(": too many or no nodes or edges", mistake(with<uint64_t>(bytes, 16, INT_MAX)));
  EXPECT_EQ(": too many or no nodes or edges", mistake(with<uint64_t>(bytes, 24, 1ULL << 31)));
  EXPECT_THAT(mistake(with<uint64_t>(bytes, 16, INT_MAX - 1)), StartsWith(": the file ends early"));
  EXPECT_THAT(mistake(with<uint64_t>(bytes, 24, INT_MAX)), StartsWith(": the file ends early"));
  EXPECT_NE("nothing", mistake(with<uint64_t>(bytes, 24, 4)));
}

TEST_F(GraphFiles, GaloisWithWrongNumbersIsRefused) {
  const std::string bytes = galois_bytes(small_graph());
  EXPECT_EQ(": the edge offsets do not ascend", mistake(with<uint64_t>(bytes, 40, 1)));
  EXPECT_EQ(": the edge offsets do not ascend", mistake(with<uint64_t>(bytes, 32, 6)));
  EXPECT_EQ(": the edge offsets do not ascend", mistake(with<uint64_t>(bytes, 32, 1ULL << 63)));
  EXPECT_EQ(": the edge offsets do not cover all edges", mistake(with<uint64_t>(bytes, 56, 4)));
  EXPECT_EQ(": an edge to a node that does not exist", mistake(with<uint32_t>(bytes, 64, 4)));
  EXPECT_EQ(": an edge to a node that does not exist", mistake(with<uint32_t>(bytes, 80, ~0U)));
  EXPECT_EQ(": a weight of 2^31 or more", mistake(with<uint32_t>(bytes, 88, 1U << 31)));
}

TEST_F(GraphFiles, UnwritableFilesAreNamed) {
  const std::string file = path("no/such/folder");
  try {
    write_galois(file, small_graph());
    FAIL();
  } catch (const FileError& error) {
    EXPECT_EQ(file + ": cannot be written", error.what());
  }
}

TEST_F(GraphFiles, WhatIsNoGraphIsRefused) {
  EXPECT_EQ(": cannot be opened", mistake_in(path("missing")));
  EXPECT_EQ(": cannot be read", mistake_in(fs::path(path()).parent_path()));
  EXPECT_THAT(mistake(""), StartsWith(": neither"));
  EXPECT_THAT(mistake("hello\n"), StartsWith(": neither"));
}

constexpr const char* kGeneral = "%%MatrixMarket matrix coordinate pattern general\n";
constexpr const char* kSymmetric = "%%MatrixMarket matrix coordinate real symmetric\n";

TEST_F(GraphFiles, MatrixMarketIsRead) {
  const Graph general = read(std::string(kGeneral) + "% a comment\n\n3 3 4\n1 2\n1 3\n% another\n3 1\n2 2\n");
  EXPECT_THAT(general.first, ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(general.neighbour, ElementsAre(1, 2, 0));
  EXPECT_THAT(general.weight, IsEmpty());
  const Graph symmetric = read(std::string(kSymmetric) + "3 3 3\r\n2 1 -0.5\r\n  3\t3 1e-3\r\n3 1 2");
  EXPECT_THAT(symmetric.first, ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(symmetric.neighbour, ElementsAre(1, 2, 0, 0));
  EXPECT_EQ(0, read(std::string(kGeneral) + "2 2 0\n").edges());
}

TEST_F(GraphFiles, MatrixMarketWithAWrongHeaderIsRefused) {
  EXPECT_EQ(":1: not a coordinate matrix", mistake("%%MatrixMarket matrix array real general\n2 2\n"));
  EXPECT_EQ(":1: not a coordinate matrix", mistake("%%MatrixMarket\n"));
  EXPECT_THAT(mistake("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 0\n"),
              StartsWith(":1: symmetry 'skew-symmetric' is not read"));
  EXPECT_THAT(mistake("%%MatrixMarket matrix coordinate real\n2 2 0\n"), StartsWith(":1: symmetry ''"));
  EXPECT_EQ(":1: the line with the sizes is missing", mistake(kGeneral));
  EXPECT_EQ(":2: no number where the number of entries should be", mistake(std::string(kGeneral) + "3 3\n"));
  EXPECT_EQ(":3: the matrix is not square, so it is no graph",
            mistake(std::string(kGeneral) + "%\n3 4 1\n1 1\n"));
  EXPECT_EQ(":2: out of range: the number of rows 0", mistake(std::string(kGeneral) + "0 0 0\n"));
  EXPECT_EQ(":2: out of range: the number of rows 2147483647",
            mistake(std::string(kGeneral) + "2147483647 2147483647 0\n"));
  EXPECT_EQ(":2: out of range: the number of entries 2147483648",
            mistake(std::string(kGeneral) + "2 2 2147483648\n"));
  // Both directions must be numbered with 31 bits.
  EXPECT_EQ(":2: out of range: the number of entries 1073741824",
            mistake(std::string(kSymmetric) + "2 2 1073741824\n"));
}

TEST_F(GraphFiles, MatrixMarketWithWrongEntriesIsRefused) {
  const std::string sizes = std::string(kGeneral) + "3 3 2\n1 2\n";
  EXPECT_EQ(":3: 1 entries are missing at the end", mistake(sizes));
  EXPECT_EQ(":5: more entries than announced", mistake(sizes + "2 3\n3 1\n"));
  EXPECT_EQ(":4: out of range: a column 4", mistake(sizes + "1 4\n"));
  EXPECT_EQ(":4: out of range: a row 0", mistake(sizes + "0 1\n"));
  EXPECT_EQ(":4: out of range: a row -1", mistake(sizes + "-1 1\n"));
  EXPECT_EQ(":4: out of range: a row nan", mistake(sizes + "nan 1\n"));
  EXPECT_EQ(":4: out of range: a row inf", mistake(sizes + "inf 1\n"));
  EXPECT_EQ(":4: no whole number: a row 1.5", mistake(sizes + "1.5 1\n"));
  EXPECT_EQ(":4: no number where a row should be", mistake(sizes + "x 1\n"));
  EXPECT_EQ(":4: no number where a row should be", mistake(sizes + "1x 1\n"));
  EXPECT_EQ(":4: no number where a column should be", mistake(sizes + "3\n"));
  EXPECT_EQ(":3: an entry without its value", mistake(std::string(kSymmetric) + "30 30 1\n1 2"));
}

TEST_F(GraphFiles, DimacsIsRead) {
  const Graph graph = read("c roads\np sp 3 4\nc more\na 1 2 10\na 3 1 0\n\na 1 3 5\na 1 2 8\n");
  EXPECT_THAT(graph.first, ElementsAre(0, 2, 2, 3));
  EXPECT_THAT(graph.neighbour, ElementsAre(1, 2, 0));
  EXPECT_THAT(graph.weight, ElementsAre(8, 5, 0));
  EXPECT_EQ(2, read("p sp 2 0\n").vertices());
}

TEST_F(GraphFiles, DamagedDimacsIsRefused) {
  EXPECT_EQ(":1: no line 'p sp NODES ARCS'", mistake("p cnf 3 4\n"));
  EXPECT_EQ(":2: no line 'p sp NODES ARCS'", mistake("c only\nc comments\n"));
  EXPECT_EQ(":1: no number where the number of arcs should be", mistake("p sp 3\n"));
  EXPECT_EQ(":1: out of range: the number of nodes 0", mistake("p sp 0 0\n"));
  EXPECT_EQ(":1: out of range: the number of arcs 2147483648", mistake("p sp 3 2147483648\n"));
  EXPECT_EQ(":2: 2 arcs are missing at the end", mistake("p sp 3 3\na 1 2 3\n"));
  EXPECT_EQ(":3: more arcs than announced", mistake("p sp 3 1\na 1 2 3\na 2 3 4\n"));
  EXPECT_EQ(":2: a line that is neither 'a' nor 'c'", mistake("p sp 3 1\ne 1 2 3\n"));
  EXPECT_EQ(":2: out of range: a node 4", mistake("p sp 3 1\na 1 4 3\n"));
  EXPECT_EQ(":2: out of range: a node 0", mistake("p sp 3 1\na 0 1 3\n"));
  EXPECT_EQ(":2: out of range: a weight -3", mistake("p sp 3 1\na 1 2 -3\n"));
  EXPECT_EQ(":2: out of range: a weight 2147483648", mistake("p sp 3 1\na 1 2 2147483648\n"));
  EXPECT_EQ(":2: no number where a weight should be", mistake("p sp 3 1\na 1 2"));
}

}  // namespace
}  // namespace bench
