// How the parser's fuzzer changes a text: in half of the cases by tokens.
//
// Flipped bytes mostly give texts that the lexer refuses. Cutting a text off after a token, and removing,
// repeating, moving and exchanging runs of tokens, gives texts that get as far as the parser's and the
// analyses' own checks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/token.h"
#include "support/error.h"

// libFuzzer's own mutations.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace klap::fuzz {
namespace {

class TokenMutator {
 public:
  TokenMutator(std::string_view text, uint32_t seed)
      : text_(text), tokens_(ptx::tokenize(text, "input")), random_(seed) {}

  std::string mutate() {
    if (tokens_.size() < 2) return std::string(text_);
    const Run a = any_run(), b = any_run();
    switch (random_() % 6) {
      case 0:  // cut off
        return std::string(text_.substr(0, a.begin));
      case 1:  // remove
        return with(a, "");
      case 2:  // repeat elsewhere
        return with({b.begin, b.begin}, " " + std::string(of(a)) + " ");
      case 3:  // put in the place of another
        return with(b, of(a));
      case 4:  // keep one run and what surrounds modules
        return ".version 9.0 .target sm_90 " + std::string(of(a));
      default: {  // repeat many times
        std::string many;
        for (uint32_t times = 2 + random_() % 30; times > 0; --times) many += " " + std::string(of(a));
        return with(a, many);
      }
    }
  }

 private:
  struct Run {
    size_t begin, end;  // offsets
  };
  [[nodiscard]] std::string_view of(Run run) const { return text_.substr(run.begin, run.end - run.begin); }
  [[nodiscard]] std::string with(Run run, std::string_view replacement) const {
    return std::string(text_.substr(0, run.begin)).append(replacement).append(text_.substr(run.end));
  }
  // Mostly short runs, now and then one of any length.
  Run any_run() {
    const size_t count = tokens_.size() - 1;
    const size_t first = random_() % count;
    const size_t longest = random_() % 4 == 0 ? count : 8;
    const size_t last = std::min(count - 1, first + random_() % longest);
    return {tokens_[first].begin, tokens_[last].end};
  }

  std::string_view text_;
  std::vector<ptx::Token> tokens_;
  std::minstd_rand random_;
};

}  // namespace
}  // namespace klap::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned int seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::string mutated = klap::fuzz::TokenMutator(text, seed).mutate();
    const size_t kept = std::min(mutated.size(), most);
    std::copy_n(mutated.begin(), kept, data);
    return kept;
  } catch (const klap::Error&) {
    return LLVMFuzzerMutate(data, size, most);  // it has no tokens
  }
}
