// A cluster of stars and its Barnes-Hut octree, laid out so that a walk is one simple loop.
//
// Cells and bodies are elements of one array, in depth-first order. An element has a centre of mass and the
// squared distance from which it acts as a single point. Nearer than that, the walk goes on with the element
// behind it, which is its first part; otherwise it adds the element's pull and goes on with `next`, behind
// all its parts. A body is an element that always acts as a point. No stack is needed, and a body met on its
// own walk pulls with force zero.
//
// The tree is made on the host: it is the walks that are measured.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "../common/random.h"

// What a walk decides by; the centre of mass and the mass are in an array of their own.
struct alignas(8) Extent {
  float opening;  // squared distance below which the element's parts are looked at
  int next;       // the element behind all its parts
};

// The bodies of a cell that is not divided further.
struct alignas(8) Leaf {
  int first;
  int count;
};

struct Octree {
  std::vector<float4> bodies;  // position and mass, in the order of the leaves
  std::vector<Leaf> leaves;
  std::vector<float4> centres;  // of the elements: centre of mass and mass
  std::vector<Extent> extents;
};

// Half the side of the cube that holds all bodies.
constexpr double kReach = 10.0;

// Plummer's model of a star cluster, the usual input of this problem, cut off at distance kReach. The number
// of stars within distance r grows like s^3 where s^2 = r^2 / (1 + r^2), and the largest of three uniform
// numbers is distributed so: nothing but basic arithmetic and square roots is needed, which round alike
// everywhere, so that a seed means the same stars on every machine.
inline std::vector<float4> star_cluster(int count, uint64_t seed) {
  bench::Random random(seed);
  const float mass = 1.0F / static_cast<float>(count);
  std::vector<float4> bodies(count);
  for (float4& body : bodies) {
    double r = kReach;
    while (r >= 0.999 * kReach) {
      double s = random.uniform();
      s = std::max(s, random.uniform());
      s = std::max(s, random.uniform());
      r = s / std::sqrt(1.0 - s * s);
    }
    double x = 1;
    double y = 1;
    double z = 1;
    double square = 3;
    while (square > 1 || square < 1e-6) {
      x = 2 * random.uniform() - 1;
      y = 2 * random.uniform() - 1;
      z = 2 * random.uniform() - 1;
      square = x * x + y * y + z * z;
    }
    const double scale = r / std::sqrt(square);
    body = make_float4(static_cast<float>(scale * x), static_cast<float>(scale * y),
                       static_cast<float>(scale * z), mass);
  }
  return bodies;
}

class OctreeBuilder {
 public:
  // Cells of more than `leaf_size` bodies are divided. A cell acts as a point from the distance at which its
  // side is seen under the angle `theta`.
  OctreeBuilder(const std::vector<float4>& bodies, int leaf_size, double theta)
      : leaf_size_(leaf_size), theta_(theta) {
    struct Place {
      uint64_t key;
      float4 body;
    };
    std::vector<Place> places;
    places.reserve(bodies.size());
    for (const float4& body : bodies) places.push_back({key_of(body), body});
    std::stable_sort(places.begin(), places.end(),
                     [](const Place& a, const Place& b) { return a.key < b.key; });
    keys_.reserve(places.size());
    tree_.bodies.reserve(places.size());
    for (const Place& place : places) {
      keys_.push_back(place.key);
      tree_.bodies.push_back(place.body);
    }
  }

  Octree build() {
    add_cell(0, static_cast<int>(keys_.size()), 0);
    return std::move(tree_);
  }

 private:
  static constexpr int kDepth = 21;  // bits of a coordinate

  struct Moments {
    double mass = 0;
    double x = 0;  // times mass
    double y = 0;
    double z = 0;

    void add(const Moments& part) {
      mass += part.mass;
      x += part.x;
      y += part.y;
      z += part.z;
    }
    [[nodiscard]] float4 centre() const {
      return make_float4(static_cast<float>(x / mass), static_cast<float>(y / mass),
                         static_cast<float>(z / mass), static_cast<float>(mass));
    }
  };

  // The coordinates' bits in turns, from the highest: which octant at each depth.
  static uint64_t key_of(const float4& body) {
    const auto whole = [](float coordinate) {
      return static_cast<uint64_t>((static_cast<double>(coordinate) / kReach + 1) * (1 << (kDepth - 1)));
    };
    const uint64_t x = whole(body.x);
    const uint64_t y = whole(body.y);
    const uint64_t z = whole(body.z);
    uint64_t key = 0;
    for (int bit = kDepth - 1; bit >= 0; --bit) {
      key = key << 3 | (x >> bit & 1) << 2 | (y >> bit & 1) << 1 | (z >> bit & 1);
    }
    return key;
  }

  int add_element() {
    tree_.centres.push_back({});
    tree_.extents.push_back({});
    return static_cast<int>(tree_.centres.size()) - 1;
  }

  // Adds the cell of bodies [begin, end) and all its parts.
  Moments add_cell(int begin, int end, int depth) {
    const bool leaf = end - begin <= leaf_size_ || depth == kDepth;
    if (leaf) tree_.leaves.push_back({begin, end - begin});
    if (end - begin == 1) return add_body(begin);
    const int cell = add_element();
    const Moments moments = leaf ? add_bodies(begin, end) : add_octants(begin, end, depth);
    const double distance = std::ldexp(2 * kReach, -depth) / theta_;
    tree_.centres[cell] = moments.centre();
    tree_.extents[cell] = {static_cast<float>(distance * distance), static_cast<int>(tree_.centres.size())};
    return moments;
  }

  Moments add_octants(int begin, int end, int depth) {
    const int shift = 3 * (kDepth - 1 - depth);
    Moments moments;
    while (begin < end) {
      const uint64_t octant = keys_[begin] >> shift;
      const auto behind = std::partition_point(keys_.begin() + begin, keys_.begin() + end,
                                               [=](uint64_t key) { return key >> shift == octant; });
      const int middle = static_cast<int>(behind - keys_.begin());
      moments.add(add_cell(begin, middle, depth + 1));
      begin = middle;
    }
    return moments;
  }

  Moments add_bodies(int begin, int end) {
    Moments moments;
    for (int i = begin; i < end; ++i) moments.add(add_body(i));
    return moments;
  }

  Moments add_body(int i) {
    const float4 body = tree_.bodies[i];
    const int element = add_element();
    tree_.centres[element] = body;
    tree_.extents[element] = {0.0F, element + 1};
    const double mass = body.w;
    return {mass, mass * body.x, mass * body.y, mass * body.z};
  }

  int leaf_size_;
  double theta_;
  std::vector<uint64_t> keys_;
  Octree tree_;
};
