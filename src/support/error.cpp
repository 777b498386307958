#include "support/error.h"

#include <utility>

namespace klap {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::Parse:
      return "parse";
    case ErrorCode::Container:
      return "container";
    case ErrorCode::Unsupported:
      return "unsupported";
    case ErrorCode::Config:
      return "config";
    case ErrorCode::Io:
      return "io";
    case ErrorCode::Toolchain:
      return "toolchain";
    case ErrorCode::Link:
      return "link";
    case ErrorCode::Driver:
      return "driver";
    case ErrorCode::Internal:
      return "internal";
  }
  return "unknown";
}

Error::Error(ErrorCode code, std::string reason) : code_(code), reason_(std::move(reason)) { compose(); }

Error& Error::at(std::string file, int line, int column) {
  file_ = std::move(file);
  if (line != 0) line_ = line;
  if (column != 0) column_ = column;
  compose();
  return *this;
}

Error& Error::source_line(std::string text) {
  source_line_ = std::move(text);
  compose();
  return *this;
}

Error& Error::kernel(std::string name) {
  kernel_ = std::move(name);
  compose();
  return *this;
}

Error& Error::fix(std::string hint) {
  fix_ = std::move(hint);
  compose();
  return *this;
}

void Error::compose() {
  message_.clear();
  if (!file_.empty()) {
    message_ += file_;
    if (line_ != 0) message_ += ":" + std::to_string(line_);
    if (column_ != 0) message_ += ":" + std::to_string(column_);
    message_ += ": ";
  }
  message_ += reason_;
  if (!kernel_.empty()) message_ += " [in kernel " + kernel_ + "]";
  if (!fix_.empty()) message_ += " (fix: " + fix_ + ")";
  if (!source_line_.empty()) {
    message_ += "\n    " + source_line_;
    if (column_ > 0) message_ += "\n    " + std::string(static_cast<size_t>(column_ - 1), ' ') + "^";
  }
}

}  // namespace klap
