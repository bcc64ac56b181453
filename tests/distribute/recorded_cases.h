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

inline NetworkCase network_of(DType dtype, Optimizer optimizer, Loss loss, bool batch_norm, bool dropout, double clip) {
  NetworkCase network;
  network.dtype = dtype;
  network.optimizer = optimizer;
  network.loss = loss;
  network.batch_norm = batch_norm;
  network.dropout = dropout;
  network.clip = clip;
  return network;
}

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
      {"plain", network_of(DType::f32, Optimizer::sgd, Loss::mean, false, false, 0), 61, 7},
      {"normalised", network_of(DType::f32, Optimizer::adam, Loss::weighted_mean, true, true, 0.1), 29, 9},
      {"one_bucket", network_of(DType::f64, Optimizer::momentum, Loss::mean_with_penalty, true, false, 0), 40, 16,
       false, 1, 1 << 20},
      {"own", network_of(DType::f64, Optimizer::adam, Loss::weighted_mean_with_penalty, true, true, 0), 0, 5, true},
      {"accumulated", network_of(DType::f32, Optimizer::sgd, Loss::mean, false, false, 0), 61, 7, false, 3},
  };
  return all;
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DISTRIBUTE_RECORDED_CASES_H_
