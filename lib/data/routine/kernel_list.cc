// SPDX-License-Identifier: Apache-2.0
//
// Every op with a routine kernel, sorted: ops in routine form alone, then, for dtype bytes, some that also have a
// program form. What is not here is refused when a map is planned.
#include <algorithm>
#include <iterator>

#include "data/routine/kernels.h"

namespace tutti::impl::data {
namespace {

struct KernelEntry {
  std::string_view op;
  RoutineKernelFactory factory;
};

constexpr KernelEntry kKernels[] = {
    {"decode_jpeg", make_decode_jpeg}, {"identity", make_view},      {"reshape", make_view},
    {"resize", make_resize},           {"stop_gradient", make_view},
};

}  // namespace

RoutineKernelFactory find_routine_kernel(std::string_view op) {
  const auto *const found =
      std::lower_bound(std::begin(kKernels), std::end(kKernels), op,
                       [](const KernelEntry &entry, std::string_view name) { return entry.op < name; });
  return found != std::end(kKernels) && found->op == op ? found->factory : nullptr;
}

}  // namespace tutti::impl::data
