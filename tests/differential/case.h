// One differential test case: device code, the host's steps with it, and the memory that must result.
//
// A case is plain data, so the same one can be run natively and preloaded, on the emulated driver and on a
// GPU, and be written to a file and read back (case_file.h). The expected memories come from C++ code that
// knows nothing of PTX: the cases' own functions (cases/) or the random programs' reference (random/).
#pragma once

// One file in cases/ holds one idea: its device code, compiled by nvcc to PTX, and below it its cases,
// compiled as C++ with __CUDACC__ undefined. Code that both need, such as the value that a thread writes,
// stands above both and is marked KLAP_SHARED, and its functions static: other files have others of the
// same names.
#ifdef __CUDACC__
#define KLAP_SHARED __host__ __device__
#else
#define KLAP_SHARED

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace klap::differential {

using Dim3 = std::array<uint32_t, 3>;
using Bytes = std::vector<std::byte>;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

// Device memory: allocated for the case, or a variable of the module.
struct Buffer {
  std::string name;
  std::string variable;  // name of the module's variable; empty: allocated
  Bytes initial;         // contents before the first step; of a variable: empty leaves the module's own
  Bytes expected;        // contents after the last step; empty: not looked at
  uint32_t element = 4;  // bytes of what is compared and printed
};

struct Argument {
  enum class Kind : uint8_t { Value, Address } kind = Kind::Value;
  Bytes bytes;          // Value
  uint32_t buffer = 0;  // Address: of this buffer
  uint64_t offset = 0;  // plus so many bytes
};

struct Launch {
  std::string kernel;
  Dim3 grid{1, 1, 1}, block{1, 1, 1};
  uint32_t shared = 0;  // dynamic shared memory in bytes
  std::vector<Argument> arguments;
};

struct Step {
  enum class Kind : uint8_t { Launch, Fill, Copy, Write, Synchronise } kind = Kind::Launch;
  uint32_t stream = 0;  // 0: the NULL stream; others are created for the case, not blocking
  Launch launch;
  int launch_error = 0;      // Launch: the CUresult that it must return
  uint32_t buffer = 0;       // Fill, Copy, Write: what is changed, all of it
  uint32_t from = 0;         // Copy: another buffer of that size
  uint8_t value = 0;         // Fill
  Bytes bytes;               // Write: as many as the buffer has; the host waits
  bool stream_only = false;  // Synchronise: wait for the stream, not for everything
};

// The outcome that a preloaded run must have for the launch sites of a parent.
struct Site {
  std::string parent;
  std::string left;  // the reason why it stays as it is; empty: it is rewritten
  // Where it is left with another reason under launcher "device"; empty: the same.
  std::string left_on_device;
  // Where it is left under launcher "host" only; empty: it is not; "rewritten": where `left` holds elsewhere.
  std::string left_on_host;
  // At granularity warp: "rewritten", "as it is" if it is rewritten but this launch is not made for it, the
  // reason, "any" of several, or "some" of several sites rewritten, where that differs from `left`.
  std::string by_warp = {};
  // Where it is left at granularity block and multiblock only.
  std::string left_by_group = {};
};

struct Case {
  std::string name;
  std::string about;  // one sentence: what would have to be wrong for it to fail
  std::string file;   // its PTX, beside the program (cases by hand)
  std::string ptx;    // or the text itself
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<Site> sites;  // empty: not looked at
  // Settings of preloaded runs, as environment variables. Cases by hand only.
  std::map<std::string, std::string> settings = {};
  // For a cell of order_cells.h: the relation of its launches, and the access in which children conflict.
  std::string relation = {}, access = {};
  // For a row of contract.md: the statement that the case tests, and the form of its program.
  std::string contract = {}, form = {};
};

// ---- putting a case together ----

class Builder {
 public:
  explicit Builder(Case& out) : case_(out) {}

  // A buffer's name in messages, its contents before, and its contents that must result.
  template <class T>
  uint32_t buffer(const std::string& name, const std::vector<T>& initial, const std::vector<T>& expected) {
    case_.buffers.push_back({name, "", bytes_of(initial), bytes_of(expected), sizeof(T)});
    return static_cast<uint32_t>(case_.buffers.size() - 1);
  }
  // Memory that the device only reads.
  template <class T>
  uint32_t input(const std::string& name, const std::vector<T>& values) {
    return buffer(name, values, values);
  }
  template <class T>
  uint32_t variable(const std::string& name, const std::vector<T>& initial, const std::vector<T>& expected) {
    const uint32_t made = buffer(name, initial, expected);
    case_.buffers[made].variable = name;
    return made;
  }

  [[nodiscard]] static Argument address(uint32_t buffer, uint64_t offset = 0) {
    return {Argument::Kind::Address, {}, buffer, offset};
  }

  // Appends a launch into `stream`. Arguments: Argument, or values whose bytes are the argument.
  template <class... Values>
  Step& launch_in(uint32_t stream, const std::string& kernel, Dim3 grid, Dim3 block,
                  const Values&... values) {
    Step step;
    step.stream = stream;
    step.launch = {kernel, grid, block, 0, {argument(values)...}};
    case_.steps.push_back(std::move(step));
    return case_.steps.back();
  }
  template <class... Values>
  Step& launch(const std::string& kernel, Dim3 grid, Dim3 block, const Values&... values) {
    return launch_in(0, kernel, grid, block, values...);
  }
  void fill(uint32_t buffer, uint8_t value, uint32_t stream = 0) {
    Step step;
    step.kind = Step::Kind::Fill;
    step.stream = stream;
    step.buffer = buffer;
    step.value = value;
    case_.steps.push_back(step);
  }
  void copy(uint32_t to, uint32_t from, uint32_t stream = 0) {
    Step step;
    step.kind = Step::Kind::Copy;
    step.stream = stream;
    step.buffer = to;
    step.from = from;
    case_.steps.push_back(step);
  }
  void synchronise() {
    Step step;
    step.kind = Step::Kind::Synchronise;
    case_.steps.push_back(step);
  }
  void synchronise_stream(uint32_t stream) {
    synchronise();
    case_.steps.back().stream = stream;
    case_.steps.back().stream_only = true;
  }
  void rewritten(const std::string& parent) { case_.sites.push_back({parent, "", "", ""}); }
  void left(const std::string& parent, const std::string& reason) {
    case_.sites.push_back({parent, reason, "", ""});
  }
  void left_on_device(const std::string& parent, const std::string& reason) {
    case_.sites.push_back({parent, "", reason, ""});
  }
  void left_on_host(const std::string& parent, const std::string& reason) {
    case_.sites.push_back({parent, "", "", reason});
  }
  // The reason why the last named parent, which is left, is left under launcher "device".
  void otherwise_on_device(const std::string& reason) { case_.sites.back().left_on_device = reason; }
  // The last named parent, which is left otherwise, is executed where the executor can be had.
  void executed() { case_.sites.back().left_on_host = "rewritten"; }
  // The verdict on the last named parent's sites at granularity warp: see Site::by_warp.
  void by_warp(const std::string& verdict) { case_.sites.back().by_warp = verdict; }
  // The reason why the last named parent is left where groups of its blocks launch apart.
  void left_by_group(const std::string& reason) { case_.sites.back().left_by_group = reason; }
  void cell(const std::string& relation, const std::string& access) {
    case_.relation = relation;
    case_.access = access;
  }
  void contract(const std::string& statement, const std::string& form) {
    case_.contract = statement;
    case_.form = form;
  }
  void setting(const std::string& variable, const std::string& value) { case_.settings[variable] = value; }
  // The user's word that children of different threads never meet, where the analysis of their order cannot
  // see it. The case is about something else, which children in order do not have.
  void children_never_meet() { setting("KLAP_ORDERING", "relaxed"); }

 private:
  static const Argument& argument(const Argument& given) { return given; }
  template <class T>
  static Argument argument(const T& value) {
    return {Argument::Kind::Value, bytes_of(std::vector<T>{value}), 0, 0};
  }

  Case& case_;
};

// ---- the cases by hand ----

// All of them, by name.
const std::vector<Case>& all_cases();
// In the same order those whose names begin so, of that PTX file if one is given, and the files of these.
// Making a case takes the time of its reference, so only cases that are asked for are made.
std::vector<std::string> case_names(std::string_view prefix = "", std::string_view file = "");
std::vector<std::string> case_files(std::string_view prefix);
const Case* find_case(const std::string& name);

// Used by KLAP_CASE only: a function that fills in a case, called when the case is first asked for.
struct Registration {
  Registration(const char* name, const char* file, const char* about, void (*fill)(Builder&));
};

}  // namespace klap::differential

#define KLAP_CASE(name, about)                                                                              \
  static void fill_##name(::klap::differential::Builder&);                                                  \
  static const ::klap::differential::Registration registration_##name(#name, __FILE__, about, fill_##name); \
  static void fill_##name([[maybe_unused]] ::klap::differential::Builder& c)

#endif  // __CUDACC__
