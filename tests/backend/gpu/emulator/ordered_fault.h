// SPDX-License-Identifier: Apache-2.0
//
// What the emulated NCCL is ordered to do wrong (tutti_nccl.h says what there is).
#ifndef TUTTI_TESTS_BACKEND_GPU_EMULATOR_ORDERED_FAULT_H_
#define TUTTI_TESTS_BACKEND_GPU_EMULATOR_ORDERED_FAULT_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace tutti_gpu_emulator {

/// What the environment orders: "stall 1 5".
struct Fault {
  std::string kind;
  int rank = -1;
  int64_t number = -1;
};

inline Fault ordered_fault() {
  Fault fault;
  const char *const text = std::getenv("TUTTI_EMULATED_NCCL");
  char kind[16] = "";
  long long number = -1;
  if (text != nullptr && std::sscanf(text, "%15s %d %lld", kind, &fault.rank, &number) >= 1) fault.kind = kind;
  fault.number = number;
  return fault;
}

}  // namespace tutti_gpu_emulator

#endif  // TUTTI_TESTS_BACKEND_GPU_EMULATOR_ORDERED_FAULT_H_
