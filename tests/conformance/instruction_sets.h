// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets that vector kernels of this process are compiled for. Two files define it: one for programs that
// test any backend, one for those of the CPU backend.
#ifndef TUTTI_TESTS_CONFORMANCE_INSTRUCTION_SETS_H_
#define TUTTI_TESTS_CONFORMANCE_INSTRUCTION_SETS_H_

#include <functional>

namespace tutti::impl::conformance {

/// Runs `body` with each instruction set that the processor has, or once where there is no choice. Gives it the name.
void on_instruction_sets(const std::function<void(const char *name)> &body);

}  // namespace tutti::impl::conformance

#endif  // TUTTI_TESTS_CONFORMANCE_INSTRUCTION_SETS_H_
