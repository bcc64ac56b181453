// SPDX-License-Identifier: Apache-2.0
//
// What workers train whose steps are launched at once.
#ifndef TUTTI_TESTS_DISTRIBUTE_RECORDED_CASES_H_
#define TUTTI_TESTS_DISTRIBUTE_RECORDED_CASES_H_

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "distribute/training_case.h"

namespace tutti::testing {

inline bool has_real_gpus() { return getenv("TUTTI_TEST_REAL_GPUS") != nullptr; }

struct Case {
  const char *name;
  NetworkCase network;
  int64_t rows, batch;
  bool own_input = false;
  int32_t accumulation = 1;
  int64_t bucket_bytes = 100;
};

inline const std::vector<Case> &cases() {
  static const std::vector<Case> all = {
      {"plain", {}, 61, 7},
      // Libraries of real GPUs add in other orders from process to process. The gradient of a bias in front of a
      // normalisation is rounding alone: Adam makes whole steps of that of f32.
      {"normalised",
       {.dtype = has_real_gpus() ? DType::f64 : DType::f32,
        .loss = Loss::weighted_mean,
        .optimizer = Optimizer::adam,
        .batch_norm = true,
        .dropout = true,
        .clip = 0.1},
       29,
       9},
      {"one_bucket",
       {.dtype = DType::f64, .loss = Loss::mean_with_penalty, .optimizer = Optimizer::momentum, .batch_norm = true},
       40,
       16,
       false,
       1,
       1 << 20},
      {"own",
       {.dtype = DType::f64,
        .loss = Loss::weighted_mean_with_penalty,
        .optimizer = Optimizer::adam,
        .batch_norm = true,
        .dropout = true},
       0,
       5,
       true},
      {"accumulated", {}, 61, 7, false, 3},
  };
  return all;
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DISTRIBUTE_RECORDED_CASES_H_
