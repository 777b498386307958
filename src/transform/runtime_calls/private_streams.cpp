#include "transform/runtime_calls/private_streams.h"

#include <fmt/format.h>

#include "analysis/facts/stream_order.h"

namespace klap::transform {

Surroundings without_private_streams(const analysis::FunctionFacts& kernel, const std::string& body_prefix) {
  Surroundings out;
  if (kernel.private_streams.calls.empty()) return out;
  const uint64_t stand_in = analysis::private_stream_stand_in(kernel);
  for (const analysis::StreamCall& call : kernel.private_streams.calls) {
    // A label before the call needs a statement behind it, even if no code reads the result.
    std::string text = "{\n\t.reg .b64 %klap_stream;\n";
    text += fmt::format("\tmov.b64 %klap_stream, {};\n", stand_in);
    if (call.creates)
      text += fmt::format("\tst.b64 [{}], %klap_stream;\n", with_prefix(call.operand, body_prefix));
    if (!call.result.empty())
      text += fmt::format("\tmov.b32 {}, 0;\n", with_prefix(call.result, body_prefix));
    out[call.scope] = {text + "\t}\n", "", true};
  }
  return out;
}

}  // namespace klap::transform
