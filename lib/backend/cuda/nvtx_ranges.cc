// SPDX-License-Identifier: Apache-2.0
//
// Ranges by NVTX, a header that looks for a tool on its first call and does nothing without one.
#include <nvtx3/nvToolsExt.h>

#include "backend/gpu/runtime/ranges.h"

namespace tutti::impl::backend::gpu {

namespace {

/// Null without a tool.
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t tutti = nvtxDomainCreateA("tutti");
  return tutti;
}

}  // namespace

RangeName register_range(const std::string &text) {
  return domain() == nullptr ? nullptr : nvtxDomainRegisterStringA(domain(), text.c_str());
}

void begin_range(RangeName name, int64_t number) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = number;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = static_cast<nvtxStringHandle_t>(name);
  (void)nvtxDomainRangePushEx(domain(), &attributes);
}

void end_range() { (void)nvtxDomainRangePop(domain()); }
static_assert(NVTX_VERSION == 3);
const char *describe_ranges() { return "3"; }

}  // namespace tutti::impl::backend::gpu
