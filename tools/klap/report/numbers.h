// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace klap::tool {

// "36,849".
std::string grouped(uint64_t number);
// "1 launch", "36,849 launches"; the plural has an s unless it is given.
std::string amount(uint64_t number, const std::string& what, const std::string& plural = "");
// "1.25 s", "3.41 ms", "17.2 us", to three digits.
std::string duration(double ms);
// "213x", "0.85x".
std::string factor(double times);
// "1.5 GB".
std::string bytes_text(uint64_t bytes);

// A number for an attribute of SVG, as short as may be.
std::string svg_number(double value);
// A share from 0 to 1, as "12.5%".
std::string svg_percent(double share);

}  // namespace klap::tool
