#include "runtime/launch/launch_range.h"

#include <nvtx3/nvToolsExt.h>

#include "runtime/parents/parent_kernel.h"

namespace klap::runtime {
namespace {

nvtxDomainHandle_t domain() {
  static nvtxDomainHandle_t made = nvtxDomainCreateA("klap_jit");
  return made;
}

}  // namespace

LaunchRange::LaunchRange(const ParentKernel& parent) noexcept : is_begun_(!parent.range_name().empty()) {
  if (!is_begun_) return;
  nvtxEventAttributes_t range{};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = parent.range_name().c_str();
  nvtxDomainRangePushEx(domain(), &range);
}

LaunchRange::~LaunchRange() {
  if (is_begun_) nvtxDomainRangePop(domain());
}

}  // namespace klap::runtime
