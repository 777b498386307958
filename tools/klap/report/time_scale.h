// The place of times on a line on which long pauses are short, so that short kernels can be seen.
#pragma once

#include <utility>
#include <vector>

namespace klap::tool {

class TimeScale {
 public:
  using Interval = std::pair<double, double>;  // begin and end
  // The scale spans these intervals, which may overlap.
  explicit TimeScale(std::vector<Interval> busy);

  // From 0 to 1.
  [[nodiscard]] double at(double time) const;
  [[nodiscard]] double time_at(double place) const;

  // A pause that is drawn shorter than it is.
  struct Pause {
    double from = 0, to = 0;  // places
    double length = 0;        // in time
  };
  [[nodiscard]] std::vector<Pause> pauses() const;

 private:
  struct Piece {
    double begin = 0, end = 0;  // times
    double from = 0, to = 0;    // places
    bool is_shortened = false;
  };
  std::vector<Piece> pieces_;  // one behind another
};

}  // namespace klap::tool
