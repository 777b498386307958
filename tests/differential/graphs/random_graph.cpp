#include "graphs/random_graph.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "graphs/graph_table.h"

namespace klap::differential::graphs {
namespace {

struct Launch {
  Stream stream = kNullStream;
  int node = 0, log = 0, first_log = 0, first_seen = 0, seen = 0;
  bool only_first = false;
};

struct Node {
  int blocks = 1, threads = 1, logs_per_block = 0, creates = 0;
  std::vector<Launch> launches;
  [[nodiscard]] int logs() const { return blocks * logs_per_block; }
};

// The logs of a block's streams, for what is launched into them.
struct StreamLogs {
  int null = 0, thread = 0, created = 0;
};

// Nodes are made from the leaves up: a node launches only nodes that are there.
class Maker {
 public:
  explicit Maker(uint64_t seed) : random_(seed) {}

  std::vector<Node> make() {
    const int nodes = number(3, 14);
    for (int i = 0; i < nodes; ++i) add_node(i == nodes - 1);
    return std::move(nodes_);
  }

 private:
  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  bool happens(int percent) { return number(1, 100) <= percent; }

  void add_node(bool is_root) {
    Node node;
    node.blocks = happens(70) ? 1 : happens(80) ? number(2, 5) : number(20, 70);
    node.threads = happens(60) ? 1 : happens(50) ? 32 : number(2, kMostThreads);
    int grids = 1;
    // The logs of a block: one for its NULL stream where several blocks have one each, one for the thread's
    // stream, and those of what it launches.
    const int null_log = node.blocks == 1 ? kLogOfGrid : node.logs_per_block++;
    const int thread_log = node.logs_per_block++;
    node.creates = happens(30) ? number(1, kCreatedStreams) : 0;
    const int created_log = node.logs_per_block;
    node.logs_per_block += node.creates;
    const int first_launched = node.logs_per_block;
    for (int left = number(is_root ? 2 : 0, 6); left > 0 && !nodes_.empty(); --left) {
      Launch launch;
      const int streams = kFirstCreated + node.creates;
      launch.stream = static_cast<Stream>(happens(40) ? kNullStream : number(kThreadStream, streams - 1));
      launch.only_first = launch.stream == kTailStream && node.blocks > 1;
      launch.node =
          number(std::max(0, static_cast<int>(nodes_.size()) - 4), static_cast<int>(nodes_.size()) - 1);
      const int more = sizes_[static_cast<size_t>(launch.node)] * (launch.only_first ? 1 : node.blocks);
      if (grids + more > kMostGrids) continue;
      grids += more;
      add_launch(node, launch, {null_log, thread_log, created_log}, first_launched);
    }
    for (Launch& launch : node.launches) {
      if (!launch.only_first || happens(50)) continue;
      launch.first_seen = node.logs_per_block;
      launch.seen = node.logs() - node.logs_per_block;
    }
    nodes_.push_back(node);
    sizes_.push_back(grids);
  }

  // Launches into the NULL stream, and those behind everything, may look at what is complete by then. Tail
  // launches look at what stands before their own logs, or at the logs of all other blocks.
  void add_launch(Node& node, Launch launch, const StreamLogs& logs, int first_launched) {
    if (launch.stream == kNullStream) launch.log = logs.null;
    if (launch.stream == kThreadStream) launch.log = logs.thread;
    if (launch.stream >= kFirstCreated) launch.log = logs.created + launch.stream - kFirstCreated;
    if (launch.stream == kFireAndForgetStream) launch.log = node.logs_per_block++;
    if (launch.stream == kTailStream) launch.log = kLogOfGrid;
    launch.first_log = node.logs_per_block;
    if (launch.stream == kTailStream && happens(70)) launch.seen = launch.first_log;
    if (launch.stream == kNullStream && happens(60)) {
      // As far back as all launches were into this stream, too.
      launch.first_seen = first_launched;
      for (const Launch& before : node.launches) {
        if (before.stream != kNullStream)
          launch.first_seen = before.first_log + nodes_[static_cast<size_t>(before.node)].logs();
      }
      launch.seen = node.logs_per_block - launch.first_seen;
    }
    node.logs_per_block += nodes_[static_cast<size_t>(launch.node)].logs();
    node.launches.push_back(launch);
  }

  static constexpr int kMostGrids = 500;
  std::mt19937_64 random_;
  std::vector<Node> nodes_;
  std::vector<int> sizes_;  // the grids that a launch of the node leads to
};

std::vector<int> table_of(const std::vector<Node>& nodes) {
  std::vector<int> table = {static_cast<int>(nodes.size())}, launches;
  for (const Node& node : nodes) {
    const int first = static_cast<int>(launches.size()) / kLaunchWords;
    table.insert(table.end(), {node.blocks, node.threads, first, static_cast<int>(node.launches.size()),
                               node.logs_per_block, node.creates});
    for (const Launch& launch : node.launches) {
      launches.insert(launches.end(), {launch.stream, launch.node, launch.log, launch.first_log,
                                       launch.first_seen, launch.seen, launch.only_first ? 1 : 0});
    }
  }
  table.insert(table.end(), launches.begin(), launches.end());
  return table;
}

// Runs a grid, all that it launches, and then its tail launches. `copies` is null in graphs that do not copy.
void run(const std::vector<int>& table, std::vector<int>& logs, std::vector<int>* copies, int number,
         const Given& given) {
  const int* const node = node_at(table.data(), number);
  const unsigned int copied = copies == nullptr ? 0 : sum_of_logs(copies->data(), given.log, 1);
  note(logs.data(), given.log,
       static_cast<unsigned int>(number) + sum_of_logs(logs.data(), given.first_seen, given.seen) + copied);
  for (const bool tails : {false, true}) {
    for (int block = 0; block < node[kBlocks]; ++block) {
      int before = -1, log_before = 0;  // the launch before, in a stream that can wait
      for (int i = 0; i < node[kLaunches]; ++i) {
        const int* const launch = launch_at(table.data(), node[kFirstLaunch] + i);
        if ((launch[kStream] == kTailStream) != tails || (launch[kOnlyFirst] != 0 && block != 0)) continue;
        const Given to = given_by(launch, given, node, block);
        const auto words = ptrdiff_t{2} * to.log;
        const bool is_joined = copies != nullptr && has_events(launch) && joins(launch[kStream], before, i);
        if (is_joined || (copies != nullptr && copies_before(launch, i)))
          std::copy_n(logs.begin() + (is_joined ? ptrdiff_t{2} * log_before : words), 2,
                      copies->begin() + words);
        if (has_events(launch)) {
          before = launch[kStream];
          log_before = to.log;
        }
        run(table, logs, copies, launch[kNode], to);
        if (copies != nullptr && fills_behind(launch, i))
          std::memset(reinterpret_cast<char*>(copies->data() + words) + 3, fill_value(i), 3);
      }
    }
  }
}

}  // namespace

void fill_case(Builder& c, uint64_t seed) {
  const std::vector<Node> nodes = Maker(seed).make();
  const std::vector<int> table = table_of(nodes);
  const int root = static_cast<int>(nodes.size()) - 1;
  std::vector<int> logs(size_t{2} * static_cast<size_t>(1 + nodes.back().logs()));
  const std::vector<int> before = logs;
  constexpr int kTimes = 2;
  const Given given = {0, 1, 0, 0};
  for (int i = 0; i < kTimes; ++i) run(table, logs, nullptr, root, given);
  const auto of_table = c.input("table", table);
  const auto of_logs = c.buffer("logs", before, logs);
  const std::vector<uint64_t> none(kCreatedStreams * logs.size());
  const auto of_handles = c.buffer("handles", none, std::vector<uint64_t>{});
  const auto blocks = static_cast<uint32_t>(nodes.back().blocks);
  const auto threads = static_cast<uint32_t>(nodes.back().threads);
  for (int i = 0; i < kTimes; ++i) {
    c.launch("graph_node", {blocks, 1, 1}, {threads, 1, 1}, c.address(of_table), c.address(of_logs),
             c.address(of_handles), root, given.log, given.first_log, given.first_seen, given.seen);
  }
}

void fill_copying_case(Builder& c, uint64_t seed) {
  const std::vector<Node> nodes = Maker(seed).make();
  const std::vector<int> table = table_of(nodes);
  const int root = static_cast<int>(nodes.size()) - 1;
  std::vector<int> logs(size_t{2} * static_cast<size_t>(1 + nodes.back().logs()));
  const std::vector<int> before = logs;
  std::vector<int> copies = logs;
  const Given given = {0, 1, 0, 0};
  run(table, logs, &copies, root, given);
  const auto of_table = c.input("table", table);
  const auto of_logs = c.buffer("logs", before, logs);
  const auto of_copies = c.buffer("copies", before, copies);
  const std::vector<uint64_t> none(kCreatedStreams * logs.size());
  const auto of_handles = c.buffer("handles", none, std::vector<uint64_t>{});
  const auto blocks = static_cast<uint32_t>(nodes.back().blocks);
  const auto threads = static_cast<uint32_t>(nodes.back().threads);
  c.launch("copying_node", {blocks, 1, 1}, {threads, 1, 1}, c.address(of_table), c.address(of_logs),
           c.address(of_copies), c.address(of_handles), root, given.log, given.first_log, given.first_seen,
           given.seen);
}

Case random_graph(uint64_t seed, bool copies) {
  Case c;
  c.name = (copies ? "copy_graph_" : "graph_") + std::to_string(seed);
  c.about = "a random graph of launches does not run in the order of its streams";
  c.file = copies ? "copy_graphs.ptx" : "grid_graphs.ptx";
  Builder builder(c);
  if (copies) {
    fill_copying_case(builder, seed);
  } else {
    fill_case(builder, seed);
  }
  return c;
}

}  // namespace klap::differential::graphs
