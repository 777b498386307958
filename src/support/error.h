// The one error type of klap_jit.
//
// Everything below the shim reports failure by throwing klap::Error. An error knows where it happened (file,
// line, column and the line itself), which kernel it concerns, why, and where possible the fix. Nothing is
// thrown across the C ABI: the shim and the tools catch Error at their boundary and either fall back to the
// program's own code or print what() and exit.
#pragma once

#include <exception>
#include <string>

namespace klap {

enum class ErrorCode {
  Parse,        // PTX text that cannot be read
  Container,    // damaged wrapper, fatbin, ELF file or compressed payload
  Unsupported,  // well-formed input that this version cannot treat
  Config,       // configuration file or environment variable
  Io,           // files and folders
  Toolchain,    // NVRTC or nvJitLink missing, too old, or refusing its input
  Link,         // the linked image is not what was asked for
  Driver,       // a CUDA driver call failed
  Internal,     // a broken invariant of klap_jit itself
};

// Short name, for logs and JSON ("parse", "container", ...).
const char* to_string(ErrorCode code);

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string reason);

  // Context, added by the code that knows it. Each call recomposes what(). Lines and columns count from 1.
  Error& at(std::string file, int line = 0, int column = 0);
  Error& source_line(std::string text);
  Error& kernel(std::string name);
  Error& fix(std::string hint);

  [[nodiscard]] ErrorCode code() const { return code_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] int line() const { return line_; }
  [[nodiscard]] int column() const { return column_; }
  // "FILE:LINE:COL: REASON [in kernel K] (fix: ...)", then the source line with a caret where there is one.
  [[nodiscard]] const char* what() const noexcept override { return message_.c_str(); }

 private:
  void compose();

  ErrorCode code_;
  std::string reason_, file_, source_line_, kernel_, fix_, message_;
  int line_ = 0, column_ = 0;
};

}  // namespace klap
