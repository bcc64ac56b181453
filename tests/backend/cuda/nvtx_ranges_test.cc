// SPDX-License-Identifier: Apache-2.0
//
// Ranges reach a tool that attaches to NVTX: this program has one linked in.
#define NVTX_NO_IMPL  // the header is at work in nvtx_ranges.cc
#include <nvtx3/nvToolsExt.h>

#include <string>
#include <vector>

#include "backend/gpu/runtime/ranges.h"
#include "testing.h"

namespace {

using tutti::impl::backend::gpu::Range;
using tutti::impl::backend::gpu::RangeName;
using tutti::impl::backend::gpu::register_range;

/// What the tool was told, in order.
std::vector<std::string> &told() {
  static auto *const lines = new std::vector<std::string>;
  return *lines;
}
std::string domain_name;
std::string registered_name;

nvtxDomainHandle_t create_domain(const char *name) {
  domain_name = name;
  return reinterpret_cast<nvtxDomainHandle_t>(&domain_name);
}

nvtxStringHandle_t register_string(nvtxDomainHandle_t domain, const char *text) {
  assert_ptr_equal(domain, &domain_name);
  registered_name = text;
  return reinterpret_cast<nvtxStringHandle_t>(&registered_name);
}

int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *event) {
  assert_ptr_equal(domain, &domain_name);
  assert_int_equal(event->messageType, NVTX_MESSAGE_TYPE_REGISTERED);
  assert_int_equal(event->payloadType, NVTX_PAYLOAD_TYPE_INT64);
  const auto *const name = reinterpret_cast<const std::string *>(event->message.registered);
  told().push_back("push " + *name + " " + std::to_string(event->payload.llValue));
  return 0;
}

int pop(nvtxDomainHandle_t domain) {
  assert_ptr_equal(domain, &domain_name);
  told().emplace_back("pop");
  return 0;
}

template <typename Function>
void take_over(NvtxFunctionTable table, NvtxCallbackIdCore2 id, Function function) {
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

int attach(NvtxGetExportTableFunc_t get_export_table) {
  const auto *const callbacks = static_cast<const NvtxExportTableCallbacks *>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  take_over(table, NVTX_CBID_CORE2_DomainCreateA, create_domain);
  take_over(table, NVTX_CBID_CORE2_DomainRegisterStringA, register_string);
  take_over(table, NVTX_CBID_CORE2_DomainRangePushEx, push);
  take_over(table, NVTX_CBID_CORE2_DomainRangePop, pop);
  return 1;
}

void a_tool_sees_named_ranges(void **) {
  const RangeName name = register_range("segment 0: first/matmul .. loss");
  assert_non_null(name);
  assert_string_equal(domain_name.c_str(), "tutti");
  {
    const Range step(name, 17);
    const Range nothing(nullptr, 1);
  }
  assert_int_equal(told().size(), 2);
  assert_string_equal(told()[0].c_str(), "push segment 0: first/matmul .. loss 17");
  assert_string_equal(told()[1].c_str(), "pop");
  assert_string_equal(tutti::impl::backend::gpu::describe_ranges(), "3");
}

}  // namespace

extern "C" {
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = attach;
}

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(a_tool_sees_named_ranges)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
