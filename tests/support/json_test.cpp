// What is written is what a JSON library reads, whatever the texts hold.
#include "support/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace klap {
namespace {

using nlohmann::json;

TEST(Json, IsReadAsItWasMeant) {
  const Json written = Json::Object{{"null", Json()},
                                    {"truth", true},
                                    {"whole", 5'000'000'000},
                                    {"negative", -3},
                                    {"real", 0.1},
                                    {"round", 2.0},
                                    {"text", "a \"quoted\"\n\ttext \\ with \x01"},
                                    {"texts", std::vector<std::string>{"one", "two"}},
                                    {"empty", Json::Array{}},
                                    {"nothing", Json::Object{}},
                                    {"nested", Json::Array{1, Json::Object{{"a", "b"}}}}};
  const json expected = {{"null", nullptr},
                         {"truth", true},
                         {"whole", 5'000'000'000},
                         {"negative", -3},
                         {"real", 0.1},
                         {"round", 2.0},
                         {"text", "a \"quoted\"\n\ttext \\ with \x01"},
                         {"texts", {"one", "two"}},
                         {"empty", json::array()},
                         {"nothing", json::object()},
                         {"nested", json::array({1, {{"a", "b"}}})}};
  EXPECT_EQ(expected, json::parse(written.text()));
  EXPECT_EQ(expected.dump(2), written.text()) << "in the library's own form";
  EXPECT_TRUE(json::parse(written.text())["round"].is_number_float());
}

TEST(Json, BytesThatAreNotUtf8AreReplaced) {
  for (const std::string& text :
       {std::string("\xff"), std::string("a\xc3"), std::string("\xc0\x80"), std::string("\xe0\x80\x80"),
        std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80"), std::string("\xe2\x28\xa1")}) {
    EXPECT_NE(json::parse(Json(text).text()).get<std::string>().find("\xef\xbf\xbd"), std::string::npos);
  }
  for (const std::string& text : {std::string("\xc3\xa9"), std::string("\xe2\x82\xac"),
                                  std::string("\xf0\x9f\x98\x80"), std::string("\x7f")}) {
    EXPECT_EQ(text, json::parse(Json(text).text()).get<std::string>());
  }
}

}  // namespace
}  // namespace klap
