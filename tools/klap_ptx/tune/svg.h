// SVG pictures: shapes, text and axes, in colours that can be read on a light and on a dark screen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace klap::tool {

// The text of an XML element or attribute. Characters that XML or SVG viewers do not take become '?'.
std::string xml_text(std::string_view text);

struct Point {
  double x = 0, y = 0;
};

// A number's place in a picture, in pixels. Both may grow either way.
class Scale {
 public:
  // `least` and `most` may be equal; then some room is made around them.
  static Scale linear(double least, double most, double from, double to);
  // Both must be positive; equal distances are equal ratios.
  static Scale logarithmic(double least, double most, double from, double to);

  [[nodiscard]] double at(double value) const;
  // Round numbers between the ends: at least one, and not more than about eight.
  [[nodiscard]] std::vector<double> ticks() const;
  [[nodiscard]] double from() const { return from_; }
  [[nodiscard]] double to() const { return to_; }

 private:
  double least_ = 0, most_ = 1, from_ = 0, to_ = 1;
  bool is_logarithmic_ = false;
};

class Svg {
 public:
  enum class Anchor { Start, Middle, End };

  // The title stands at the top left, and the subtitle below it.
  Svg(double width, double height, std::string_view title, std::string_view subtitle);

  void line(Point from, Point to, std::string_view style = "axis");
  void path(const std::vector<Point>& points, double width);
  void bar(Point corner, double width, double height, std::string_view tooltip);
  void patch(Point corner, double width, double height, std::string_view colour);
  void dot(Point centre, double radius, std::string_view colour, std::string_view tooltip);
  void text(Point at, std::string_view text, Anchor anchor = Anchor::Start, std::string_view style = "label");
  // The text is turned, so that it is read from below, and `at` is its middle.
  void upright_text(Point at, std::string_view text);

  // Lines at round numbers, their labels, and the axis's name. An axis lies where the other one begins.
  void x_axis(const Scale& x, const Scale& y, std::string_view name);
  void y_axis(const Scale& x, const Scale& y, std::string_view name);

  [[nodiscard]] std::string finish() const { return body_ + "</svg>\n"; }

  static constexpr double kTop = 64;  // the first free pixel below the titles

 private:
  std::string body_;
};

}  // namespace klap::tool
