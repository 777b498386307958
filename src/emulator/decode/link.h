// Linking: which definition each name means, and where variables lie.
//
// A name means the definition that its own unit keeps to itself. If there is none, it means the one that the
// units share, else the machine's own function of that name. Shared definitions are chosen as nvlink does.
// One strong definition beats weak ones, the first of several weak ones stays, and two strong ones are an
// error. Function bodies are decoded (decode_function.h) once every name has its meaning.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/decode/code.h"
#include "emulator/decode/decode_declaration.h"
#include "emulator/memory_model/memory.h"

namespace klap::emulator {

struct Symbol {
  enum class Kind : uint8_t { None, Function, Variable, Shared, Texture } kind = Kind::None;
  uint32_t index = 0;  // into the image's list of its kind
};

class Linker {
 public:
  Linker(const std::vector<const ptx::Module*>& units, Memory& memory);
  // Gives every name outside of functions its meaning. To be called once.
  void run();
  // Gives all memory back, where linking or decoding fails.
  void free_all();

  // ---- for decoding ----
  struct Body {
    const ptx::Module* unit = nullptr;
    const ptx::Function* function = nullptr;
    Function* out = nullptr;
  };
  // The functions to decode, unit by unit.
  [[nodiscard]] std::vector<Body> bodies() const;
  [[nodiscard]] const Image& image() const { return *image_; }
  [[nodiscard]] const std::shared_ptr<Image>& shared_image() const { return image_; }
  // The meaning of a name in a unit, outside of its functions. Throws Error(Link) if nothing defines it;
  // `token` is where it is used.
  Symbol find(const ptx::Module& unit, std::string_view name, uint32_t token);
  // Variables that are declared inside a function.
  Symbol declare_in_function(const ptx::Module& unit, const Declaration& declaration,
                             const DeclaredVariable& variable);
  // "Addresses" of functions; a called function is from then on one that an indirect call may reach.
  uint64_t address_of_function(uint32_t function);

 private:
  struct Definition {
    std::string name;
    const ptx::Module* unit = nullptr;
    ptx::Linkage linkage = ptx::Linkage::Internal;
    uint32_t token = 0;
    // One of these:
    const ptx::Function* function = nullptr;
    const Declaration* declaration = nullptr;
    std::string_view alias_of{};

    const DeclaredVariable* variable = nullptr;  // of `declaration`
    Symbol symbol{};
    bool dropped = false;  // another one is taken
  };
  using Table = std::map<std::string, Definition*, std::less<>>;

  void collect(const ptx::Module& unit);
  void collect_variables(const ptx::Module& unit, ptx::TokenRange item);
  void collect_alias(const ptx::Module& unit, ptx::TokenRange item);
  void add(Definition definition);
  void make_symbols();
  void make_symbol(Definition& definition);
  void name_for_host(const Definition& definition);
  Symbol make_variable(const Definition& definition);
  Symbol builtin(const ptx::Module& unit, std::string_view name);
  void initialise(const ptx::Module& unit, const DeclaredVariable& variable, uint64_t address);

  std::vector<const ptx::Module*> units_;
  Memory& memory_;
  std::shared_ptr<Image> image_ = std::make_shared<Image>();
  std::deque<Declaration> declarations_;
  std::deque<Definition> definitions_;
  Table shared_names_;  // between units
  std::map<const ptx::Module*, Table> own_names_, dynamic_shared_;
  std::map<int, uint32_t> builtins_;
  std::vector<bool> address_taken_;  // by function
  std::vector<std::pair<uint64_t, Owner>> allocated_;
  std::map<std::string, uint32_t, std::less<>> host_variables_;
};

}  // namespace klap::emulator
