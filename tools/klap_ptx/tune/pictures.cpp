#include "klap_ptx/tune/pictures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "klap_ptx/tune/svg.h"
#include "support/demangle.h"
#include "support/hash.h"

namespace klap::tool {
namespace {

using Anchor = Svg::Anchor;

constexpr double kRadius = 4;  // of a sample's dot

// The text up to a width, in pixels; letters of labels are about 6 wide.
std::string fitting(const std::string& text, double width) {
  const auto most = static_cast<size_t>(std::max(4.0, width / 6.4));
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

struct Range {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  // There is some room at both ends, so that no dot lies on the frame.
  [[nodiscard]] Range widened() const {
    const double room = (most - least) / 20;
    return {least - room, most + room};
  }
};

// The colours of times: blue for the fastest, then purple, and orange for the slowest. All are seen on white
// and on black.
class TimeColours {
 public:
  explicit TimeColours(const std::vector<Sample>& samples) {
    for (const Sample& sample : samples) range_.add(sample.ms);
  }

  [[nodiscard]] std::string of(double ms) const {
    const double all = std::log(range_.most / range_.least);
    return at(all > 0 ? std::log(ms / range_.least) / all : 0);
  }

  void draw_legend(Svg& svg, Point corner) const {
    constexpr int kSteps = 40;
    constexpr double kWidth = 4;
    const std::string least = fmt::format("{:.4g} ms", range_.least);
    svg.text(corner, least, Anchor::End, "small");
    for (int i = 0; i < kSteps; ++i)
      svg.patch({corner.x + 8 + kWidth * i, corner.y - 9}, kWidth + 0.5, 10,
                at(static_cast<double>(i) / (kSteps - 1)));
    svg.text({corner.x + 16 + kWidth * kSteps, corner.y}, fmt::format("{:.4g} ms", range_.most),
             Anchor::Start, "small");
  }

 private:
  static std::string at(double part) {
    constexpr int kColours[3][3] = {{0x1f, 0x7a, 0xd1}, {0xb0, 0x4f, 0xa8}, {0xf0, 0x7c, 0x12}};
    const int half = part < 0.5 ? 0 : 1;
    const auto mixed = [&](int i) {
      const int from = kColours[half][i], to = kColours[half + 1][i];
      return std::lround(from + (2 * part - half) * (to - from));
    };
    return fmt::format("#{:02x}{:02x}{:02x}", mixed(0), mixed(1), mixed(2));
  }
  Range range_;
};

std::string tooltip(const Sample& sample, const std::vector<Candidate>& tried) {
  return fmt::format("{:.4g} ms: {}", sample.ms, text(sample.configuration, tried));
}

// A row of a chart of bars, `share` of the longest one's width.
void draw_bar(Svg& svg, Point at, double label_width, double width, const std::string& label, double share,
              double longest) {
  const double length = longest > 0 ? width * share / longest : 0;
  svg.text({at.x + label_width - 8, at.y + 12}, fitting(label, label_width - 8), Anchor::End);
  svg.bar({at.x + label_width, at.y}, length, 16, fmt::format("{}: {:.1f} %", label, 100 * share));
  svg.text({at.x + label_width + length + 6, at.y + 12}, fmt::format("{:.1f} %", 100 * share), Anchor::Start,
           "small");
}

// The variables that weigh the most in the first two components, below each other.
void draw_weights(Svg& svg, const Components& all, Point at) {
  for (size_t i = 0; i < std::min<size_t>(2, all.components.size()); ++i) {
    svg.text(at, fmt::format("Component {} is mostly:", i + 1));
    for (const std::string& weight : heaviest(all, all.components[i]))
      svg.text({at.x + 16, at.y += 17}, fitting(weight, 400), Anchor::Start, "small");
    at.y += 24;
  }
}

std::string axis_name(const Components& all, size_t number) {
  if (number >= all.components.size()) return "";
  return fmt::format("Component {}, {:.0f} % of the variance", number + 1,
                     100 * all.components[number].share);
}

std::string draw_components(const std::string& kernel, const Findings& found,
                            const std::vector<Candidate>& tried) {
  constexpr double kRow = 24, kPlane = 560, kLeft = 520;
  constexpr size_t kMostBars = 16;
  const std::vector<Component>& all = found.components.components;
  Svg svg(kLeft + kPlane + 30, Svg::kTop + kPlane + 90, kernel,
          fmt::format("Principal components of the {}: their shares of the variance, and the samples along "
                      "the first two",
                      name_of(found.basis)));
  for (size_t i = 0; i < std::min(all.size(), kMostBars); ++i)
    draw_bar(svg, {16, Svg::kTop + 26 + kRow * static_cast<double>(i)}, 100, 200,
             fmt::format("component {}", i + 1), all[i].share, all.front().share);
  draw_weights(svg, found.components, {16, Svg::kTop + 26 + kRow * (kMostBars + 1)});
  Range first, second;
  const auto second_score = [&](size_t sample) { return all.size() > 1 ? all[1].scores[sample] : 0.0; };
  for (size_t i = 0; i < found.samples.size(); ++i) {
    first.add(all.front().scores[i]);
    second.add(second_score(i));
  }
  const Range wide = first.widened(), high = second.widened();
  const Scale x = Scale::linear(wide.least, wide.most, kLeft, kLeft + kPlane);
  const Scale y = Scale::linear(high.least, high.most, Svg::kTop + 26 + kPlane, Svg::kTop + 26);
  svg.x_axis(x, y, axis_name(found.components, 0));
  svg.y_axis(x, y, axis_name(found.components, 1));
  const TimeColours colours(found.samples);
  colours.draw_legend(svg, {kLeft + kPlane - 260, Svg::kTop + 12});
  // The fastest ones are drawn last, so that they can be seen.
  for (size_t i = found.samples.size(); i-- > 0;)
    svg.dot({x.at(all.front().scores[i]), y.at(second_score(i))}, kRadius, colours.of(found.samples[i].ms),
            tooltip(found.samples[i], tried));
  return svg.finish();
}

std::string draw_importance(const std::string& kernel, const Findings& found) {
  constexpr double kRow = 24;
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& [subject, share] : found.importance) ranked.emplace_back(share, subject);
  std::ranges::stable_sort(ranked, std::greater(), &std::pair<double, std::string>::first);
  const double label_width = found.basis == Basis::Settings ? 170 : 400;  // metrics have long names
  Svg svg(530 + label_width, Svg::kTop + kRow * static_cast<double>(ranked.size()) + 24, kernel,
          found.basis == Basis::Settings
              ? "What the time depends on: how much worse a model predicts without knowing a setting"
              : "What the time goes with: how much worse a model predicts without knowing a counter");
  for (size_t i = 0; i < ranked.size(); ++i)
    draw_bar(svg, {16, Svg::kTop + kRow * static_cast<double>(i)}, label_width, 430, ranked[i].second,
             ranked[i].first, ranked.front().first);
  return svg.finish();
}

// Names the groups that are not split by numbers below their leaves, and says below what they are.
void draw_groups(Svg& svg, const Findings& found, const std::vector<double>& leaf_x, double top) {
  size_t number = 0;
  for (const GroupSummary& group : found.groups) {
    if (group.group.is_split) continue;
    ++number;
    Range range;
    for (const size_t member : group.group.members) range.add(leaf_x[member]);
    // Numbers of narrow neighbours stand on lines of their own.
    const double line = top + (number % 2 == 1 ? 0 : 14);
    svg.line({range.least - 3, top - 14}, {range.most + 3, top - 14});
    svg.text({(range.least + range.most) / 2, line}, fmt::format("{}", number), Anchor::Middle, "small");
    svg.text({16, top + 20 + 18 * static_cast<double>(number)},
             fitting(fmt::format("{}: {} of {}, {:.4g} to {:.4g} ms, {}", number, group.group.members.size(),
                                 found.merges.size() + 1, group.fastest_ms, group.slowest_ms, text(group)),
                     900));
  }
}

std::string draw_dendrogram(const std::string& kernel, const Findings& found,
                            const std::vector<Candidate>& tried) {
  constexpr double kWidth = 840, kLeft = 80, kHeight = 360;
  const size_t samples = found.merges.size() + 1;
  Svg svg(kLeft + kWidth + 24, Svg::kTop + kHeight + 160, kernel,
          fmt::format("Clusters of samples with like {}; the height is the average distance",
                      name_of(found.basis)));
  const double bottom = Svg::kTop + 26 + kHeight;
  const Scale y = Scale::linear(0, std::max(1e-9, found.merges.back().distance), bottom, Svg::kTop + 26);
  svg.y_axis(Scale::linear(0, 1, kLeft, kLeft + kWidth), y, "Distance");

  const double pitch = kWidth / static_cast<double>(samples);
  std::vector<Point> nodes(samples + found.merges.size());
  std::vector<double> leaf_x(samples);
  const std::vector<size_t> order = members(found.merges).back();
  for (size_t i = 0; i < order.size(); ++i) {
    leaf_x[order[i]] = kLeft + pitch * (static_cast<double>(i) + 0.5);
    nodes[order[i]] = {leaf_x[order[i]], bottom};
  }
  for (size_t i = 0; i < found.merges.size(); ++i) {
    const Point first = nodes[found.merges[i].first], second = nodes[found.merges[i].second];
    const double height = y.at(found.merges[i].distance);
    svg.path({first, {first.x, height}, {second.x, height}, second}, std::clamp(pitch / 4, 0.5, 1.0));
    nodes[samples + i] = {(first.x + second.x) / 2, height};
  }
  const TimeColours colours(found.samples);
  colours.draw_legend(svg, {kLeft + kWidth - 260, Svg::kTop + 12});
  const double radius = std::clamp(pitch / 2, 2.0, kRadius);
  for (size_t i = 0; i < samples; ++i)
    svg.dot({leaf_x[i], bottom + 4}, radius, colours.of(found.samples[i].ms),
            tooltip(found.samples[i], tried));
  draw_groups(svg, found, leaf_x, bottom + 32);
  return svg.finish();
}

std::string draw_prediction(const std::string& kernel, const Findings& found,
                            const std::vector<Candidate>& tried) {
  constexpr double kSide = 520, kLeft = 80;
  Svg svg(kLeft + kSide + 40, Svg::kTop + kSide + 60, kernel,
          fmt::format("{}: an error of {:.1f} % in the middle, {:.1f} % or less for nine in ten",
                      found.basis == Basis::Settings ? "Times that the model had not seen"
                                                     : "Times predicted from performance counters",
                      100 * found.held_out.median_error, 100 * found.held_out.error_of_nine_in_ten));
  Range range;
  for (const HeldOut::Pair& pair : found.held_out.pairs) {
    range.add(pair.measured_ms);
    range.add(pair.predicted_ms);
  }
  const double least = range.least / 1.05, most = range.most * 1.05;
  const Scale x = Scale::logarithmic(least, most, kLeft, kLeft + kSide);
  const Scale y = Scale::logarithmic(least, most, Svg::kTop + kSide, Svg::kTop);
  svg.x_axis(x, y, "Measured time of a launch, ms");
  svg.y_axis(x, y, "Predicted time, ms");
  svg.line({x.from(), y.from()}, {x.to(), y.to()});
  const TimeColours colours(found.samples);
  for (const HeldOut::Pair& pair : found.held_out.pairs)
    svg.dot({x.at(pair.measured_ms), y.at(pair.predicted_ms)}, kRadius, colours.of(pair.measured_ms),
            fmt::format("{:.4g} ms, predicted {:.4g}: {}", pair.measured_ms, pair.predicted_ms,
                        text(found.samples[pair.sample].configuration, tried)));
  return svg.finish();
}

// The name with underscores for all but letters and digits. A hash tells names apart that become alike.
std::string file_stem(const std::string& kernel) {
  constexpr size_t kMost = 80;
  std::string out;
  for (const char c : kernel.substr(0, kMost)) {
    const bool is_safe =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    out += is_safe ? c : '_';
  }
  return out == kernel && !out.empty() ? out : out + "_" + Hasher().add(kernel).hex();
}

}  // namespace

std::vector<Picture> draw(const std::string& kernel, const Findings& found,
                          const std::vector<Candidate>& tried) {
  const std::string stem = file_stem(kernel) + (found.basis == Basis::Settings ? "" : ".counters");
  const std::string name = fitting(demangle(kernel), 620);
  std::vector<Picture> out;
  if (!found.components.components.empty())
    out.push_back({stem + ".components.svg", draw_components(name, found, tried)});
  if (!found.importance.empty()) out.push_back({stem + ".importance.svg", draw_importance(name, found)});
  if (!found.merges.empty()) out.push_back({stem + ".clusters.svg", draw_dendrogram(name, found, tried)});
  if (!found.held_out.pairs.empty())
    out.push_back({stem + ".prediction.svg", draw_prediction(name, found, tried)});
  return out;
}

}  // namespace klap::tool
