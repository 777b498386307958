#include "klap_ptx/tune/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace klap::tool {
namespace {

// The picture has a background of its own, since a page may be dark where the viewer says nothing.
constexpr std::string_view kStyle = R"(<style>
text { font: 12px sans-serif; fill: #222 }
.title { font-size: 15px; font-weight: bold }
.small { font-size: 11px; fill: #555 }
.page { fill: #fff }
.axis { stroke: #777; fill: none }
.grid { stroke: #e4e4e4 }
.tree { stroke: #555; fill: none }
.bar { fill: #3577b5 }
@media (prefers-color-scheme: dark) {
text { fill: #eee }
.small { fill: #bbb }
.page { fill: #1c1c1e }
.axis { stroke: #999 }
.grid { stroke: #38383a }
.tree { stroke: #bbb }
.bar { fill: #5b9bd8 }
}
</style>
)";

std::string_view name(Svg::Anchor anchor) {
  if (anchor == Svg::Anchor::Start) return "start";
  return anchor == Svg::Anchor::Middle ? "middle" : "end";
}

// A tick's label, which never says -0.
std::string number(double value) { return fmt::format("{:.4g}", value == 0 ? 0.0 : value); }

// The bytes of a UTF-8 character that XML allows at the start of the text; 0 if there is none.
size_t character(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto goes_on = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  if (byte(0) >= 0x20 && byte(0) < 0x7f) return 1;
  if (byte(0) >= 0xc2 && byte(0) < 0xe0 && goes_on(1)) return byte(0) == 0xc2 && byte(1) < 0xa0 ? 0 : 2;
  return 0;
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = character(text);
    const std::string_view letter = text.substr(0, std::max<size_t>(1, length));
    text.remove_prefix(letter.size());
    if (length == 0)
      out += '?';
    else if (letter == "&")
      out += "&amp;";
    else if (letter == "<")
      out += "&lt;";
    else if (letter == ">")
      out += "&gt;";
    else if (letter == "\"")
      out += "&quot;";
    else if (letter == "'")
      out += "&#39;";
    else
      out += letter;
  }
  return out;
}

Scale Scale::linear(double least, double most, double from, double to) {
  Scale out;
  const double room = most > least ? 0 : std::max(1e-6, std::abs(least) / 10);
  out.least_ = least - room;
  out.most_ = most + room;
  out.from_ = from;
  out.to_ = to;
  return out;
}

Scale Scale::logarithmic(double least, double most, double from, double to) {
  constexpr double kRoom = 1.1;
  const bool is_point = most <= least;
  Scale out = linear(std::log10(is_point ? least / kRoom : least),
                     std::log10(is_point ? least * kRoom : most), from, to);
  out.is_logarithmic_ = true;
  return out;
}

double Scale::at(double value) const {
  const double part = ((is_logarithmic_ ? std::log10(value) : value) - least_) / (most_ - least_);
  return from_ + part * (to_ - from_);
}

std::vector<double> Scale::ticks() const {
  const auto multiples = [](double least, double most) {
    constexpr double kMost = 8;
    constexpr double kRounding = 1e-9;
    double step = std::pow(10, std::floor(std::log10((most - least) / kMost)));
    for (const double factor : {2.0, 2.5, 2.0})  // 1, 2, 5, 10
      if ((most - least) / step > kMost) step *= factor;
    std::vector<double> out;
    for (double i = std::ceil(least / step - kRounding); i * step <= most + kRounding * step; ++i)
      out.push_back(i * step);
    return out;
  };
  if (!is_logarithmic_) return multiples(least_, most_);
  // Round numbers have equal distances while there are few to a power of ten, and then powers of ten do.
  const double decades = most_ - least_;
  if (decades < 0.7) return multiples(std::pow(10, least_), std::pow(10, most_));
  std::vector<double> out;
  const int step = std::max(1, static_cast<int>(std::ceil(decades / 8)));
  for (int power = static_cast<int>(std::floor(least_)); power <= most_; power += step) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick = digit * std::pow(10, power);
      const bool is_shown = digit == 1 || decades < 3;
      if (is_shown && std::log10(tick) >= least_ && std::log10(tick) <= most_) out.push_back(tick);
    }
  }
  return out;
}

Svg::Svg(double width, double height, std::string_view title, std::string_view subtitle) {
  body_ = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}">
)",
      width, height);
  body_ += kStyle;
  body_ += fmt::format("<rect class=\"page\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", width, height);
  text({16, 26}, title, Anchor::Start, "title");
  text({16, 46}, subtitle, Anchor::Start, "small");
}

void Svg::line(Point from, Point to, std::string_view style) {
  body_ += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                       style, from.x, from.y, to.x, to.y);
}

void Svg::path(const std::vector<Point>& points, double width) {
  body_ += fmt::format("<polyline class=\"tree\" stroke-width=\"{:.2f}\" points=\"", width);
  for (const Point& point : points) body_ += fmt::format("{:.1f},{:.1f} ", point.x, point.y);
  body_ += "\"/>\n";
}

void Svg::bar(Point corner, double width, double height, std::string_view tooltip) {
  body_ += fmt::format(
      "<rect class=\"bar\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
      "height=\"{:.1f}\"><title>{}</title></rect>\n",
      corner.x, corner.y, width, height, xml_text(tooltip));
}

void Svg::patch(Point corner, double width, double height, std::string_view colour) {
  body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"/>\n",
                       corner.x, corner.y, width, height, colour);
}

void Svg::dot(Point centre, double radius, std::string_view colour, std::string_view tooltip) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" fill-opacity=\"0.85\">",
                       centre.x, centre.y, radius, colour);
  body_ += fmt::format("<title>{}</title></circle>\n", xml_text(tooltip));
}

void Svg::text(Point at, std::string_view text, Anchor anchor, std::string_view style) {
  body_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", style,
                       at.x, at.y, name(anchor), xml_text(text));
}

void Svg::upright_text(Point at, std::string_view text) {
  body_ += fmt::format(
      "<text class=\"small\" transform=\"translate({:.1f},{:.1f}) rotate(-90)\" "
      "text-anchor=\"middle\">{}</text>\n",
      at.x, at.y, xml_text(text));
}

void Svg::x_axis(const Scale& x, const Scale& y, std::string_view name) {
  for (const double tick : x.ticks()) {
    line({x.at(tick), y.from()}, {x.at(tick), y.to()}, "grid");
    text({x.at(tick), y.from() + 16}, number(tick), Anchor::Middle, "small");
  }
  line({x.from(), y.from()}, {x.to(), y.from()});
  text({(x.from() + x.to()) / 2, y.from() + 36}, name, Anchor::Middle, "small");
}

void Svg::y_axis(const Scale& x, const Scale& y, std::string_view name) {
  for (const double tick : y.ticks()) {
    line({x.from(), y.at(tick)}, {x.to(), y.at(tick)}, "grid");
    text({x.from() - 6, y.at(tick) + 4}, number(tick), Anchor::End, "small");
  }
  line({x.from(), y.from()}, {x.from(), y.to()});
  upright_text({x.from() - 52, (y.from() + y.to()) / 2}, name);
}

}  // namespace klap::tool
