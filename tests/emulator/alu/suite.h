// The instruction suite: one instruction with its operands a line, and the hardware's results.
//
// A line of suite.txt is
//   INSTRUCTION | DESTINATIONS | SOURCES | VALUES | RESULTS
//   setp.lt.and.f32 | p+p | 32 32 !p | 3f800000 7fc00000 1 | 0 1
// with the operands as the widths of their registers: 16, 32, 64, 128, p (a predicate), !p (negated), {32,32}
// (a vector), 32+p (`d|p`), imm (the value itself stands in the instruction), cc (the carry, set before or
// read after). Values and results are hexadecimal, one for each register. RESULTS is missing until it was
// recorded.
//
// The test of the emulator and the program that records share this file, which knows the format and how a
// case is written in PTX. It is read by nvcc's host compiler too, hence C++17.
#pragma once

#include <algorithm>
#include <cstdint>
#include <istream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace suite {

struct Value {
  uint64_t low = 0, high = 0;
  bool operator==(const Value& other) const { return low == other.low && high == other.high; }
};

// One register of a case, or an immediate value.
struct Register {
  int bits = 0;  // 1 for a predicate
  bool negated = false, immediate = false, carry = false;
};
// An operand between two commas of the instruction: a register, a vector, `d|p`.
struct Operand {
  std::vector<Register> registers;
  char joint = 0;  // '{' for a vector, '+' for d|p
};

struct Case {
  int line = 0;
  std::string text;  // without RESULTS
  std::string instruction;
  std::vector<Operand> destinations, sources;
  std::vector<Value> values, results;
};

inline std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (separator != ' ' || !part.empty()) parts.push_back(trimmed(part));
  }
  return parts;
}

inline Register parse_register(std::string word) {
  Register result;
  result.negated = word[0] == '!';
  if (result.negated) word.erase(0, 1);
  result.immediate = word == "imm";
  result.carry = word == "cc";
  if (word == "p") {
    result.bits = 1;
  } else if (result.immediate || result.carry) {
    result.bits = 32;
  } else {
    result.bits = std::stoi(word);
  }
  return result;
}

inline std::vector<Operand> parse_operands(const std::string& text) {
  std::vector<Operand> operands;
  for (std::string word : split(text, ' ')) {
    Operand operand;
    if (word[0] == '{') {
      operand.joint = '{';
      word = word.substr(1, word.size() - 2);
    } else if (word.find('+') != std::string::npos) {
      operand.joint = '+';
    }
    for (const std::string& part : split(word, operand.joint == '+' ? '+' : ',')) {
      operand.registers.push_back(parse_register(part));
    }
    operands.push_back(operand);
  }
  return operands;
}

inline std::vector<Value> parse_values(const std::string& text) {
  std::vector<Value> values;
  for (const std::string& word : split(text, ' ')) {
    const size_t high = word.size() > 16 ? word.size() - 16 : 0;
    Value value;
    value.low = std::stoull(word.substr(high), nullptr, 16);
    if (high != 0) value.high = std::stoull(word.substr(0, high), nullptr, 16);
    values.push_back(value);
  }
  return values;
}

// Prints a value with as many digits as the register has.
inline std::string print_value(Value value, int bits) {
  std::string text;
  const int digits = std::max(bits / 4, 1);
  for (int i = digits - 1; i >= 0; --i) {
    const uint64_t word = i >= 16 ? value.high : value.low;
    text += "0123456789abcdef"[word >> (4 * (i % 16)) & 15];
  }
  return text;
}

inline std::vector<Register> all_registers(const std::vector<Operand>& operands) {
  std::vector<Register> all;
  for (const Operand& operand : operands) {
    all.insert(all.end(), operand.registers.begin(), operand.registers.end());
  }
  return all;
}

inline Case parse_case(const std::string& line, int number) {
  const std::vector<std::string> parts = split(line, '|');
  if (parts.size() != 4 && parts.size() != 5) {
    throw std::runtime_error("line " + std::to_string(number) + " has not the parts of a case: " + line);
  }
  Case result;
  result.line = number;
  result.text = trimmed(line.substr(0, parts.size() == 5 ? line.rfind('|') : line.size()));
  result.instruction = parts[0];
  result.destinations = parse_operands(parts[1]);
  result.sources = parse_operands(parts[2]);
  result.values = parse_values(parts[3]);
  if (parts.size() == 5) result.results = parse_values(parts[4]);
  if (result.values.size() != all_registers(result.sources).size() ||
      (!result.results.empty() && result.results.size() != all_registers(result.destinations).size())) {
    throw std::runtime_error("line " + std::to_string(number) +
                             " has not a value for every register: " + line);
  }
  return result;
}

// Lines that are empty or begin with '#' are not cases.
inline std::vector<Case> parse_suite(std::istream& stream) {
  std::vector<Case> cases;
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    if (!line.empty() && line[0] != '#') cases.push_back(parse_case(line, number));
  }
  return cases;
}

// In memory, each case has these numbers of 16-byte cells.
constexpr int kInputs = 8, kOutputs = 4, kCell = 16;

// Writes the PTX of one case: a scope of its own that loads the operands, runs the instruction and stores.
class CaseWriter {
 public:
  CaseWriter(const Case& of, size_t index) : case_(of), index_(index) {}

  std::string write() {
    std::string operands;
    for (const Operand& operand : case_.destinations) append(operands, destination(operand));
    for (const Operand& operand : case_.sources) append(operands, source(operand));
    return "{\n" + before_ + "  " + case_.instruction + " " + operands + ";\n" + after_ + "}\n";
  }

 private:
  static void append(std::string& list, const std::string& operand) {
    if (operand.empty()) return;
    if (!list.empty()) list += ", ";
    list += operand;
  }

  static std::string join(const Operand& operand, const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
      if (!text.empty()) text += operand.joint == '{' ? ", " : "|";
      text += name;
    }
    return operand.joint == '{' ? "{" + text + "}" : text;
  }

  std::string declare(char prefix, int number, int bits) {
    std::string name = "%" + std::string(1, prefix) + std::to_string(number);
    before_ += "  .reg " + (bits == 1 ? ".pred " : ".b" + std::to_string(bits) + " ") + name + ";\n";
    return name;
  }

  std::string source(const Operand& operand) {
    std::vector<std::string> names;
    for (const Register& each : operand.registers) {
      const int number = inputs_++;
      if (each.immediate) {
        names.push_back("0x" + print_value(case_.values[static_cast<size_t>(number)], 32));
        continue;
      }
      std::string name = load(each, number);
      if (!each.carry) names.push_back((each.negated ? "!" : "") + name);
    }
    return names.empty() ? "" : join(operand, names);
  }

  std::string load(const Register& each, int number) {
    std::string name = declare('s', number, each.bits);
    const std::string cell =
        "[%in + " + std::to_string((index_ * kInputs + static_cast<size_t>(number)) * kCell) + "]";
    if (each.bits == 1) {
      const std::string word = declare('w', number, 32);
      before_ +=
          "  ld.global.b32 " + word + ", " + cell + ";\n  setp.ne.u32 " + name + ", " + word + ", 0;\n";
    } else if (each.bits == 128) {
      const std::string low = declare('l', number, 64), high = declare('h', number, 64);
      before_ += "  ld.global.v2.b64 {" + low + ", " + high + "}, " + cell + ";\n  mov.b128 " + name + ", {" +
                 low + ", " + high + "};\n";
    } else {
      before_ += "  ld.global.b" + std::to_string(each.bits) + " " + name + ", " + cell + ";\n";
    }
    if (each.carry) before_ += "  add.cc.u32 " + name + ", " + name + ", 0xffffffff;\n";
    return name;
  }

  std::string destination(const Operand& operand) {
    std::vector<std::string> names;
    for (const Register& each : operand.registers) {
      const std::string name = store(each, outputs_++);
      if (!each.carry) names.push_back(name);
    }
    return names.empty() ? "" : join(operand, names);
  }

  std::string store(const Register& each, int number) {
    std::string name = declare('d', number, each.bits);
    const std::string cell =
        "[%out + " + std::to_string((index_ * kOutputs + static_cast<size_t>(number)) * kCell) + "]";
    if (each.carry) after_ = "  addc.u32 " + name + ", 0, 0;\n" + after_;
    if (each.bits == 1) {
      const std::string word = declare('x', number, 32);
      after_ += "  selp.u32 " + word + ", 1, 0, " + name + ";\n  st.global.b32 " + cell + ", " + word + ";\n";
    } else if (each.bits == 128) {
      const std::string low = declare('m', number, 64), high = declare('n', number, 64);
      after_ += "  mov.b128 {" + low + ", " + high + "}, " + name + ";\n  st.global.v2.b64 " + cell + ", {" +
                low + ", " + high + "};\n";
    } else {
      after_ += "  st.global.b" + std::to_string(each.bits) + " " + cell + ", " + name + ";\n";
    }
    return name;
  }

  const Case& case_;
  size_t index_;
  int inputs_ = 0, outputs_ = 0;
  std::string before_, after_;
};

// A module with one kernel, `cases`, that runs cases [first, last): operands from %in, results to %out. Both
// are indexed from `first`.
inline std::string write_module(const std::vector<Case>& cases, size_t first, size_t last) {
  std::string text =
      ".version 9.0\n.target sm_90\n.address_size 64\n"
      ".visible .entry cases(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b64 %in, %out;\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n"
      "cvta.to.global.u64 %in, %in;\ncvta.to.global.u64 %out, %out;\n";
  for (size_t i = first; i < last; ++i) text += CaseWriter(cases[i], i - first).write();
  return text + "ret;\n}\n";
}

}  // namespace suite
