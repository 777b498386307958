// The argument stores of a launch, rewritten for the records that they fill.
#pragma once

#include <string>
#include <vector>

#include "analysis/launches/sites.h"
#include "ptx/tree.h"
#include "transform/text/record_layout.h"

namespace klap::transform {

class ArgumentStores {
 public:
  // Tells whether another thread may store the arguments that are passed once at the same time.
  enum class Once { ByTwo, ByOne };

  // The buffer's register of the site holds the address that the layout's offsets count from. `once` is the
  // register with the address of the arguments that are passed once. `is_first` is the predicate of the
  // thread that stores them.
  ArgumentStores(const ptx::Module& module, const analysis::Site& site, const RecordLayout& layout,
                 std::string once, std::string is_first, Once by = Once::ByTwo);

  // All stores of the site in text order, a vector store once.
  [[nodiscard]] std::vector<const ptx::Statement*> in_order() const;
  // The text that replaces a store; empty if no thread reads the stored bytes.
  [[nodiscard]] std::string text(const ptx::Statement& store) const;

 private:
  struct Part {
    const analysis::Argument* argument = nullptr;
    const ArgumentPlace* place = nullptr;
    uint32_t at = 0;
  };
  [[nodiscard]] std::vector<Part> parts(const ptx::Statement& store) const;
  [[nodiscard]] bool stays_whole(const ptx::Statement& store, const std::vector<Part>& parts) const;
  [[nodiscard]] std::string store_to(const ptx::Statement& store, std::string_view dropped, uint32_t at,
                                     std::string_view source) const;
  [[nodiscard]] std::string store_once(const ptx::Statement& store, const Part& part) const;

  const ptx::Module& m_;
  const analysis::Site& site_;
  const RecordLayout& layout_;
  std::string once_, is_first_;
  Once by_;
};

}  // namespace klap::transform
