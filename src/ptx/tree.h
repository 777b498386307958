// A lossless token tree of a PTX module, with typed views over the parts that klap_jit rewrites.
//
// PTX grows with every toolkit, so the tree understands structure only: module items, function headers and
// parameters, nested scopes, labels, directives, and instructions as opcode, modifiers and operands. An
// opcode that is not known is an instruction like any other; nothing is dropped or reformatted. Nodes hold
// ranges of token indices into Module::tokens, and tokens hold offsets into Module::source, so the text of
// any node is a slice.
//
// A module owns its statements and operands, in pools; the nodes hold views. So a module can be moved, with
// every statement staying where it is, but not copied. A statement must not outlive its module.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/pool.h"
#include "ptx/token.h"
#include "support/error.h"

namespace klap::ptx {

struct TokenRange {
  uint32_t first = 0, last = 0;  // half open
  [[nodiscard]] bool empty() const { return first == last; }
  [[nodiscard]] uint32_t size() const { return last - first; }
};

enum class StatementKind : uint8_t { Instruction, Label, Directive, Block };

// One statement of a function body. Which members mean something depends on `kind`.
struct Statement {
  StatementKind kind = StatementKind::Instruction;
  TokenRange tokens;  // everything, including the final ';' or the braces

  // Instruction: [@ [!] predicate] opcode modifiers operands ;
  // Label and Directive: `head` is the label's name or the directive's first token.
  uint32_t head = 0;
  bool predicated = false, predicate_negated = false;
  uint32_t predicate = 0;
  TokenRange modifiers;
  View<TokenRange> operands;  // split at top-level commas

  View<Statement> body;  // Block
};

// A declared parameter of a kernel or function.
struct Parameter {
  std::string name;
  std::string type;     // ".u64", ".b8", ...
  uint32_t align = 0;   // bytes; the type's own size when not stated
  uint32_t bytes = 0;   // total size; 0 for an array of unstated length
  uint32_t offset = 0;  // in the parameter block
  bool is_array = false;
  TokenRange tokens;
};

enum class FunctionKind : uint8_t { Entry, Func };
enum class Linkage : uint8_t { Internal, Visible, Weak, Extern, Common };

struct Function {
  FunctionKind kind = FunctionKind::Func;
  Linkage linkage = Linkage::Internal;
  std::string name;
  uint32_t name_token = 0;
  TokenRange tokens;               // whole item
  TokenRange header;               // from the first token up to, not including, '{' or ';'
  std::vector<Parameter> results;  // of a .func
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;  // end of the last parameter in the parameter block
  TokenRange attributes;         // performance directives after the parameter list
  bool is_definition = false;
  Statement body;  // Block, when is_definition
};

struct Variable {
  std::string name;
  std::string space;  // ".global", ".const", ".shared", ".tex", ...
  Linkage linkage = Linkage::Internal;
  bool initialised = false;
  uint32_t range = 0;      // `name<3>` declares name0, name1 and name2
  TokenRange tokens;       // whole item with ';'
  TokenRange declaration;  // without linkage, initialiser and ';'; empty but for the first of `a, b, c`
};

enum class ItemKind : uint8_t { Version, Target, AddressSize, Function, Variable, Other };

struct Item {
  ItemKind kind = ItemKind::Other;
  TokenRange tokens;
  uint32_t index = 0;  // into Module::functions or, for the first that it declares, Module::variables
};

struct Module;

// Where the text of a module comes from that was made from another one, so that messages speak of the text
// that people know.
struct MadeFrom {
  struct Part {
    uint32_t begin = 0;   // in the text, up to the next part's
    uint32_t source = 0;  // offset in the other module's
    bool copied = false;  // byte for byte; else all of it stands for that one place
    std::string through;  // the call that it was inlined for: "f, called at line 12:2"
  };
  const Module* module = nullptr;  // it must outlive the one that was made from it
  std::vector<Part> parts;
};

struct Module {
  std::string name;    // file or unit name, for messages
  std::string source;  // owned text; all offsets refer to it
  std::vector<Token> tokens;
  std::vector<uint32_t> lines;  // where they begin
  std::vector<Item> items;
  std::vector<Function> functions;
  std::vector<Variable> variables;
  Pool<Statement> statements;  // scopes and instructions have views of these
  Pool<TokenRange> operands;
  std::string version;  // "9.0"
  std::string target;   // "sm_90", without further target options
  bool debug = false;   // ".target sm_90, debug"
  int address_size = 0;
  MadeFrom made_from;
  // Variables for constants that another unit of the program fills otherwise
  // (analysis/graph/module_constants.h).
  std::set<std::string, std::less<>> disputed;

  [[nodiscard]] std::string_view text(uint32_t token) const {
    const Token& t = tokens[token];
    return {source.data() + t.begin, t.end - t.begin};
  }
  // Source text from the first to the last token of the range, with the trivia in between.
  [[nodiscard]] std::string_view text(TokenRange range) const;
  // Like text(), but every run of trivia is one blank or nothing: for comparing and for messages.
  [[nodiscard]] std::string compact(TokenRange range) const;
  [[nodiscard]] bool is(uint32_t token, std::string_view what) const { return text(token) == what; }
  [[nodiscard]] int line(uint32_t token) const;
  // In the module that this one was made from, if it was, or that one from another.
  [[nodiscard]] Position position(uint32_t token) const;
  [[nodiscard]] Position position_at(uint32_t offset) const;
  // MadeFrom::Part::through of the part that the token belongs to.
  [[nodiscard]] std::string_view through(uint32_t token) const;
  // "line 41:2", for messages.
  [[nodiscard]] std::string place(uint32_t token) const { return ptx::place(position(token)); }

  // The definition of a function if there is one, else its declaration, else null.
  [[nodiscard]] const Function* find_function(std::string_view function) const;
  [[nodiscard]] const Variable* find_variable(std::string_view variable) const;

  // "ld.global.nc.u32": opcode with modifiers.
  [[nodiscard]] std::string full_opcode(const Statement& instruction) const;
  [[nodiscard]] bool has_modifier(const Statement& instruction, std::string_view modifier) const;

  // The error for something wrong at a token, with its place and line.
  [[nodiscard]] Error error_at(uint32_t token, const std::string& reason) const;
};

// Parses a module. Throws Error(Parse) with line, column and the line itself.
Module parse(std::string source, std::string name);

// Prints a module that nothing was edited in: its source, byte for byte.
inline const std::string& print(const Module& module) { return module.source; }

// Calls `visit(statement)` for every statement of a body in text order, entering nested scopes after the
// block itself.
template <typename Visit>
void for_each_statement(const Statement& block, Visit&& visit) {
  for (const Statement& statement : block.body) {
    visit(statement);
    if (statement.kind == StatementKind::Block) for_each_statement(statement, visit);
  }
}

// True if `name` is one of those that a declaration `prefix<count>` makes: prefix0 to prefix(count - 1).
bool in_range(std::string_view name, std::string_view prefix, uint64_t count);

// Size in bytes of a PTX type such as ".u32" or ".b64"; 0 for types without a fixed memory size.
uint32_t type_bytes(std::string_view type);

// The value of an integer literal token (decimal, hex, octal, binary, optional U); nothing for anything else.
std::optional<uint64_t> integer_value(std::string_view literal);

}  // namespace klap::ptx
