#include "transform/text/lifted_computations.h"

#include <string>

#include "ptx/edit.h"
#include "transform/text/made_text.h"

namespace klap::transform {

ptx::Module with_lifted_computations(const ptx::Module& module,
                                     const std::vector<analysis::SunkComputation>& computations) {
  ptx::Edits edits(module);
  MadeText made;
  for (const analysis::SunkComputation& moved : computations) {
    const ptx::TokenRange tokens = moved.instruction->tokens;
    const uint32_t begin = module.tokens[tokens.first].begin, end = module.tokens[tokens.last - 1].end;
    const uint32_t scope = moved.scope->tokens.first;
    edits.insert_before(scope, made.mark(begin, false, "") + std::string(module.text(tokens)) + "\n\t" +
                                   made.mark(module.tokens[scope].begin, true, ""));
    edits.replace(tokens, made.mark(begin, false, "") + made.mark(end, true, ""));
  }
  return made.edited(module, edits);
}

}  // namespace klap::transform
