// The choice between a parent's variant and the program's own kernel, for launches that are all the same.
//
// A variant may be slower than the original, mostly where children are large. So some launches of each are
// measured, and the faster one runs from then on. To try the original costs time if it is slower: as long as
// CUDA needs to launch the children from the device. It is tried only when that is less than a few percent of
// the time that all launches so far took. So a variant that saves much is never given up for a trial, and no
// program loses more than that, but for the first trial, in which CUDA sets up its device runtime. Both are
// measured again now and then, because the data may have changed.
//
// This class only decides. launch_guard.h measures, and knows which launches are the same.
#pragma once

#include <algorithm>
#include <cstdint>

namespace klap::runtime {

class GuardChoice {
 public:
  enum class Next : uint8_t { Variant, MeasuredVariant, Original, MeasuredOriginal };

  // Counts a launch, and says how it is to be made. `most_children`: as many can be launched from the device
  // without losing one. A measured launch must be answered by one of the functions below. Until then, no
  // other launch is measured.
  Next next(uint64_t most_children);
  void variant_took(double ms, uint64_t children);
  void original_took(double ms);
  void not_measured() { is_measuring_ = false; }

  // True once the original was found to be faster.
  [[nodiscard]] bool is_original() const { return is_decided_ && takes_original_; }
  // The shortest time of each, 0 where there is none.
  [[nodiscard]] double variant_ms() const { return variant_.ms; }
  [[nodiscard]] double original_ms() const { return original_.ms; }

 private:
  struct Measured {
    uint32_t launches = 0;
    double ms = 0;
    void add(double took) {
      ms = launches == 0 ? took : std::min(ms, took);
      ++launches;
    }
  };
  [[nodiscard]] bool may_try_original() const;
  void decide();

  uint64_t launches_ = 0, since_decision_ = 0;
  uint64_t children_ = 0;  // of a launch, at most
  double lost_ms_ = 0;     // by trials so far
  Measured variant_, original_;
  bool is_measuring_ = false, is_decided_ = false, takes_original_ = false;
  bool has_run_original_ = false;
};

}  // namespace klap::runtime
