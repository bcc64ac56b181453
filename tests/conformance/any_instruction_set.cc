// SPDX-License-Identifier: Apache-2.0
#include "instruction_sets.h"

namespace tutti::impl::conformance {

void on_instruction_sets(const std::function<void(const char *name)> &body) { body("best"); }

}  // namespace tutti::impl::conformance
