// The values that the code of one kernel of a random program starts from: indices, parameters, addresses of
// words.
//
// Each value is computed once, at the top of the kernel, when the code first asks for it. Compilers give
// kernels this form, and the launch idioms are recognised in it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "random/print_expression.h"
#include "random/program.h"

namespace klap::differential::random {

// The PTX type as which a value is passed.
const char* type_of(Width width);

class KernelValues {
 public:
  KernelValues(const Program& of, const Layout& rooms, uint32_t which);
  KernelValues(const KernelValues&) = delete;
  KernelValues& operator=(const KernelValues&) = delete;

  [[nodiscard]] std::string parameter_name(uint32_t parameter) const {
    return fmt::format("{}_param_{}", name, parameter);
  }
  // A register or an immediate.
  std::string print(const Expression& e) { return expressions_.print(e); }
  // Whether code chooses between two values by a branch.
  void use_branches(bool uses) { expressions_.use_branches(uses); }
  // The registers of a special register such as tid.x, and of indices and extents made of those.
  std::string special(const char* what, uint32_t axis);
  // The index counted through: (z * extent_y + y) * extent_x + x
  std::string linear_index(const char* index, const char* extent);
  std::string thread() { return linear_index("tid", "ntid"); }
  std::string threads_of_block();
  std::string linear();
  // A pointer parameter as it was passed, as a global address, and a parameter that is a number.
  std::string pointer(Role role);
  std::string global(Role role);
  std::string number(Role role);
  // The thread's own words, in global memory.
  std::string own_words();
  // Address of word `index % count`.
  std::string element(const std::string& base, const Expression& index, uint32_t count, uint32_t bytes = 4);
  // A register that holds what may be an immediate.
  std::string in_register(const std::string& operand);
  // low + of % spread; an immediate if that is constant.
  std::string extent(const Extent& e);

  // The text that computes the values.
  [[nodiscard]] const std::string& inputs() const { return inputs_; }

  const Program& program;
  const Layout& layout;
  const uint32_t number_of_kernel;
  const Kernel& kernel;
  const std::string name;
  const Signature signature;
  Code code;                            // of everything behind these values
  std::vector<std::string> variables;   // the registers of the kernel's variables
  std::vector<const Statement*> loops;  // those around what is being printed, outermost first
  int calls = 0;                        // number of the next call

 private:
  // The register of a value, which `compute` puts there when it is first asked for.
  std::string once(const std::string& key, char kind, const std::function<void(const std::string&)>& compute);
  std::string value(uint32_t value);
  void load_value(const std::string& into, uint32_t value);
  std::string leaf(const Expression& e);
  std::string load(const char* opcode, const std::string& address);

  ExpressionPrinter expressions_;
  std::string inputs_;
  std::map<std::string, std::string> inputs_by_key_;
};

}  // namespace klap::differential::random
