#include "klap/report/time_scale.h"

#include <algorithm>

namespace klap::tool {

namespace {

// Sorted, and without overlaps.
std::vector<TimeScale::Interval> united(std::vector<TimeScale::Interval> busy) {
  std::ranges::sort(busy);
  std::vector<TimeScale::Interval> out;
  for (const TimeScale::Interval& one : busy) {
    if (!out.empty() && one.first <= out.back().second) {
      out.back().second = std::max(out.back().second, one.second);
    } else {
      out.push_back(one);
    }
  }
  return out;
}

}  // namespace

TimeScale::TimeScale(std::vector<Interval> busy) {
  constexpr double kLongest = 1.0 / 8;     // of all work; a longer pause is shortened
  constexpr double kShortened = 1.0 / 30;  // of all work, if there are few of them
  const std::vector<Interval> all = united(std::move(busy));
  double work = 0;
  for (const auto& [begin, end] : all) work += end - begin;
  const auto is_long = [&](double pause) { return pause > work * kLongest; };
  size_t long_pauses = 0;
  for (size_t i = 1; i < all.size(); ++i)
    if (is_long(all[i].first - all[i - 1].second)) ++long_pauses;
  const double shortened = work * std::min(kShortened, 1.0 / (2.0 * static_cast<double>(long_pauses + 1)));
  double place = 0;
  const auto add = [&](double begin, double end, double width, bool is_shortened) {
    pieces_.push_back({begin, end, place, place + width, is_shortened});
    place += width;
  };
  for (size_t i = 0; i < all.size(); ++i) {
    const auto [begin, end] = all[i];
    if (i > 0) {
      const double pause = begin - all[i - 1].second;
      add(all[i - 1].second, begin, is_long(pause) ? shortened : pause, is_long(pause));
    }
    add(begin, end, end - begin, false);
  }
  for (Piece& piece : pieces_) {
    piece.from = place > 0 ? piece.from / place : 0;
    piece.to = place > 0 ? piece.to / place : 1;
  }
}

double TimeScale::at(double time) const {
  for (const Piece& piece : pieces_) {
    if (time > piece.end) continue;
    const double length = piece.end - piece.begin;
    const double part = length > 0 ? std::clamp((time - piece.begin) / length, 0.0, 1.0) : 0;
    return piece.from + part * (piece.to - piece.from);
  }
  return pieces_.empty() ? 0 : 1;
}

double TimeScale::time_at(double place) const {
  for (const Piece& piece : pieces_) {
    if (place > piece.to) continue;
    const double width = piece.to - piece.from;
    const double part = width > 0 ? std::clamp((place - piece.from) / width, 0.0, 1.0) : 0;
    return piece.begin + part * (piece.end - piece.begin);
  }
  return pieces_.empty() ? 0 : pieces_.back().end;
}

std::vector<TimeScale::Pause> TimeScale::pauses() const {
  std::vector<Pause> out;
  for (const Piece& piece : pieces_)
    if (piece.is_shortened) out.push_back({piece.from, piece.to, piece.end - piece.begin});
  return out;
}

}  // namespace klap::tool
