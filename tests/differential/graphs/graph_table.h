// A graph of launches as a table that one kernel reads: what random graphs (random_graph.h) and the kernel
// that runs them (cases/grid_graphs.cu) have in common.
//
// A node is a grid. The first thread of each of its blocks makes the launches of its list, one after another.
// Each grid notes its number in a log that all grids before it in its stream have written. A log is a count
// and a hash of what was noted, so grids that overlap or change places leave another log. Some grids also
// note what other logs hold by then, namely those of grids that must be complete, with all that they
// launched.
#pragma once

#include "case.h"

namespace klap::differential::graphs {

enum Stream : int { kNullStream, kThreadStream, kFireAndForgetStream, kTailStream, kFirstCreated };
// The streams that a block creates, at most, which are destroyed when it has made its launches.
constexpr int kCreatedStreams = 2;

// Words of a node: its grid and block, its launches, the logs that each of its blocks has for what it
// launches, and the streams that each of them creates.
enum NodeWord : int { kBlocks, kThreads, kFirstLaunch, kLaunches, kLogsPerBlock, kCreates, kNodeWords };

// Words of a launch: the stream; the node; the log that it notes in, and the first one for what it launches,
// counted from the block's first one; the logs to look at, likewise; whether only block 0 makes it.
enum LaunchWord : int { kStream, kNode, kLog, kFirstLog, kFirstSeen, kSeen, kOnlyFirst, kLaunchWords };
constexpr int kMostThreads = 40;  // of a block, which keeps the consumer's blocks small

// In place of kLog: the log of the launching grid.
constexpr int kLogOfGrid = -1;

// The table begins with the number of nodes; then come the nodes, and the launches.
KLAP_SHARED inline const int* node_at(const int* table, int node) { return table + 1 + kNodeWords * node; }
KLAP_SHARED inline const int* launch_at(const int* table, int launch) {
  return table + 1 + kNodeWords * table[0] + kLaunchWords * launch;
}

// Two words of a log.
KLAP_SHARED inline void note(int* logs, int log, unsigned int value) {
  int* const at = logs + 2 * log;
  at[0] += 1;
  at[1] = static_cast<int>(static_cast<unsigned int>(at[1]) * 31u + value);
}
KLAP_SHARED inline unsigned int sum_of_logs(const int* logs, int first, int count) {
  unsigned int sum = 0;
  for (int log = first; log < first + count; ++log)
    sum += 17u * static_cast<unsigned int>(logs[2 * log]) + static_cast<unsigned int>(logs[2 * log + 1]);
  return sum;
}

// What a grid is given: the log to note in, the first of its own logs, and the logs to look at.
struct Given {
  int log, first_log, first_seen, seen;
};
// What a launch by that block gives its grid.
KLAP_SHARED inline Given given_by(const int* launch, const Given& own, const int* node, int block) {
  const int first = own.first_log + block * node[kLogsPerBlock];
  Given out;
  out.log = launch[kLog] == kLogOfGrid ? own.log : first + launch[kLog];
  out.first_log = first + launch[kFirstLog];
  out.first_seen = first + launch[kFirstSeen];
  out.seen = launch[kSeen];
  return out;
}

// Of graphs that copy (cases/copy_graphs.cu): whether the log of a launch, the i-th of its node, is copied
// before it, and whether the copy is filled behind it. Nothing orders what is fired and forgotten.
KLAP_SHARED inline bool copies_before(const int* launch, int i) {
  return launch[kStream] != kFireAndForgetStream && i % 3 != 1;
}
KLAP_SHARED inline bool fills_behind(const int* launch, int i) {
  return launch[kStream] != kFireAndForgetStream && i % 3 != 2;
}
// Whether a launch in that stream can come behind an event, and whether its copy does: it is then a copy of
// the log of the launch before it in another stream. Both streams wait for each other around it.
KLAP_SHARED inline bool has_events(const int* launch) {
  return launch[kStream] != kFireAndForgetStream && launch[kStream] != kTailStream;
}
KLAP_SHARED inline bool joins(int stream, int before, int i) {
  return before >= 0 && before != stream && i % 2 == 1;
}
KLAP_SHARED inline int fill_value(int i) { return 3 * i + 1; }

}  // namespace klap::differential::graphs
