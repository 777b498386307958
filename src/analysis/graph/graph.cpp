#include "analysis/graph/graph.h"

#include <algorithm>

namespace klap::analysis {

// ---- strongly connected components ----

namespace {

class Tarjan {
 public:
  Tarjan(uint32_t nodes, const Neighbours& successors) : successors_(successors), index_(nodes), low_(nodes) {
    result_.of.assign(nodes, kOpen);
  }

  Components run() {
    for (uint32_t node = 0; node < index_.size(); ++node) {
      if (index_[node] == 0) search(node);
    }
    return std::move(result_);
  }

 private:
  static constexpr uint32_t kOpen = ~0u;
  struct Frame {
    uint32_t node;
    size_t next;  // successor to look at next
  };

  void enter(uint32_t node) {
    index_[node] = low_[node] = ++last_index_;
    open_.push_back(node);
    frames_.push_back({node, 0});
  }

  void search(uint32_t start) {
    enter(start);
    while (!frames_.empty()) {
      const uint32_t node = frames_.back().node;
      const auto& successors = successors_(node);
      if (frames_.back().next < successors.size()) {
        const uint32_t to = successors[frames_.back().next++];
        if (index_[to] == 0) {
          enter(to);
        } else if (result_.of[to] == kOpen) {
          low_[node] = std::min(low_[node], index_[to]);
        }
      } else {
        leave(node);
      }
    }
  }

  void leave(uint32_t node) {
    frames_.pop_back();
    if (!frames_.empty()) {
      const uint32_t below = frames_.back().node;
      low_[below] = std::min(low_[below], low_[node]);
    }
    if (low_[node] != index_[node]) return;
    uint32_t member = kOpen;
    do {
      member = open_.back();
      open_.pop_back();
      result_.of[member] = result_.count;
    } while (member != node);
    ++result_.count;
  }

  const Neighbours& successors_;
  std::vector<uint32_t> index_, low_, open_;
  std::vector<Frame> frames_;
  uint32_t last_index_ = 0;
  Components result_;
};

}  // namespace

Components strongly_connected(uint32_t nodes, const Neighbours& successors) {
  return Tarjan(nodes, successors).run();
}

Subgraph::Subgraph(std::vector<uint32_t> all, const Neighbours& successors, const Edge& keeps)
    : nodes(std::move(all)), edges(nodes.size()) {
  for (uint32_t n = 0; n < nodes.size(); ++n) {
    for (uint32_t to : successors(nodes[n])) {
      const auto inside = std::lower_bound(nodes.begin(), nodes.end(), to);
      if (inside == nodes.end() || *inside != to || (keeps && !keeps(nodes[n], to))) continue;
      edges[n].push_back(static_cast<uint32_t>(inside - nodes.begin()));
    }
  }
  components = strongly_connected(
      static_cast<uint32_t>(nodes.size()), [&](uint32_t n) -> const auto& { return edges[n]; });
  members.resize(components.count);
  for (uint32_t n = 0; n < nodes.size(); ++n) members[components.of[n]].push_back(n);
}

bool Subgraph::cyclic(uint32_t component) const {
  const uint32_t n = members[component][0];
  return members[component].size() > 1 || std::find(edges[n].begin(), edges[n].end(), n) != edges[n].end();
}

std::vector<uint32_t> Subgraph::nodes_of(uint32_t component) const {
  std::vector<uint32_t> out;
  for (uint32_t n : members[component]) out.push_back(nodes[n]);
  return out;
}

// ---- dominators ----

namespace {

// Works on depth-first numbers (from 1; 0 is "none"), as the algorithm is usually written down.
class LengauerTarjan {
 public:
  LengauerTarjan(uint32_t nodes, const Neighbours& successors, const Neighbours& predecessors)
      : successors_(successors), predecessors_(predecessors), number_(nodes) {}

  // The immediate dominator of every node, DominatorTree::kNone where there is none.
  std::vector<uint32_t> run(uint32_t root) {
    visit(root);
    const auto count = static_cast<uint32_t>(node_.size());
    semi_.resize(count);
    label_.resize(count);
    ancestor_.assign(count, 0);
    dominator_.assign(count, 0);
    buckets_.resize(count);
    for (uint32_t v = 0; v < count; ++v) semi_[v] = label_[v] = v;
    for (uint32_t v = count - 1; v > 1; --v) settle(v);
    std::vector<uint32_t> out(number_.size(), DominatorTree::kNone);
    for (uint32_t v = 2; v < count; ++v) {
      if (dominator_[v] != semi_[v]) dominator_[v] = dominator_[dominator_[v]];
      out[node_[v]] = node_[dominator_[v]];
    }
    return out;
  }

 private:
  void visit(uint32_t root) {
    struct Frame {
      uint32_t node;
      size_t next;
    };
    node_.assign(1, 0);
    tree_parent_.assign(1, 0);
    std::vector<Frame> frames;
    const auto enter = [&](uint32_t node, uint32_t from) {
      number_[node] = static_cast<uint32_t>(node_.size());
      node_.push_back(node);
      tree_parent_.push_back(from);
      frames.push_back({node, 0});
    };
    enter(root, 0);
    while (!frames.empty()) {
      const uint32_t node = frames.back().node;
      const auto& successors = successors_(node);
      if (frames.back().next == successors.size()) {
        frames.pop_back();
      } else {
        const uint32_t to = successors[frames.back().next++];
        if (number_[to] == 0) enter(to, number_[node]);
      }
    }
  }

  void settle(uint32_t v) {
    for (uint32_t from : predecessors_(node_[v])) {
      if (number_[from] != 0) semi_[v] = std::min(semi_[v], semi_[best(number_[from])]);
    }
    buckets_[semi_[v]].push_back(v);
    const uint32_t parent = tree_parent_[v];
    ancestor_[v] = parent;
    for (uint32_t w : buckets_[parent]) {
      const uint32_t u = best(w);
      dominator_[w] = semi_[u] < semi_[w] ? u : parent;
    }
    buckets_[parent].clear();
  }

  // The node with the least semidominator on the path up from `v` in the forest built so far; compresses
  // that path.
  uint32_t best(uint32_t v) {
    path_.clear();
    for (uint32_t at = v; ancestor_[at] != 0 && ancestor_[ancestor_[at]] != 0; at = ancestor_[at])
      path_.push_back(at);
    for (auto at = path_.rbegin(); at != path_.rend(); ++at) {
      const uint32_t above = ancestor_[*at];
      if (semi_[label_[above]] < semi_[label_[*at]]) label_[*at] = label_[above];
      ancestor_[*at] = ancestor_[above];
    }
    return label_[v];
  }

  const Neighbours& successors_;
  const Neighbours& predecessors_;
  std::vector<uint32_t> number_;              // node -> depth-first number, 0 if not reached
  std::vector<uint32_t> node_, tree_parent_;  // by number, as are all below
  std::vector<uint32_t> semi_, label_, ancestor_, dominator_, path_;
  std::vector<std::vector<uint32_t>> buckets_;
};

}  // namespace

DominatorTree::DominatorTree(uint32_t nodes, uint32_t root, const Neighbours& successors,
                             const Neighbours& predecessors)
    : parent_(LengauerTarjan(nodes, successors, predecessors).run(root)), first_(nodes), last_(nodes) {
  number(root);
}

// Subtree intervals by one walk over the tree.
void DominatorTree::number(uint32_t root) {
  std::vector<std::vector<uint32_t>> children(parent_.size());
  for (uint32_t node = 0; node < parent_.size(); ++node) {
    if (parent_[node] != kNone) children[parent_[node]].push_back(node);
  }
  std::vector<uint32_t> stack{root};
  while (!stack.empty()) {
    const uint32_t node = stack.back();
    stack.pop_back();
    order_.push_back(node);
    first_[node] = last_[node] = static_cast<uint32_t>(order_.size());
    stack.insert(stack.end(), children[node].rbegin(), children[node].rend());
  }
  for (auto node = order_.rbegin(); node != order_.rend(); ++node) {
    if (parent_[*node] != kNone) last_[parent_[*node]] = std::max(last_[parent_[*node]], last_[*node]);
  }
}

}  // namespace klap::analysis
