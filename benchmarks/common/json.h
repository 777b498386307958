// One-line JSON objects for the benchmarks' results, keys in the order they were added.
//
// The benchmarks are ordinary CUDA programs that anybody should be able to build with one nvcc command, so
// they use no JSON library; writing (never reading) flat results needs only this.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bench {

class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string_view value);
  JsonObject& add(std::string_view key, const char* value);
  JsonObject& add(std::string_view key, bool value);
  JsonObject& add(std::string_view key, int value);
  JsonObject& add(std::string_view key, long long value);
  JsonObject& add(std::string_view key, double value);
  JsonObject& add(std::string_view key, const std::vector<double>& values);
  JsonObject& add(std::string_view key, const JsonObject& value);
  JsonObject& add(std::string_view key, const std::vector<JsonObject>& values);
  JsonObject& add_null(std::string_view key);

  // The object as one line, without a newline at its end.
  [[nodiscard]] std::string line() const;

 private:
  JsonObject& add_raw(std::string_view key, std::string_view value);

  std::string members_;
};

}  // namespace bench
