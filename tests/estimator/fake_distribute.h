// SPDX-License-Identifier: Apache-2.0
//
// Stands in for distribute/ in tests of loops: Trainer, Evaluator and PredictEngine that need no backend, and do as
// told.
//
// The model of all three: a feature "x" f32[batch, 1] and a variable "w" f32[1]. A step sets
// w = 0.9 w + 0.1 mean(x) + step / 1000; its loss is |w|. Evaluation: loss = mean |x - w|. Prediction: "y" = x + w.
#ifndef TUTTI_TESTS_ESTIMATOR_FAKE_DISTRIBUTE_H_
#define TUTTI_TESTS_ESTIMATOR_FAKE_DISTRIBUTE_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "distribute/strategy/strategy.h"
#include "distribute/train/step_times.h"
#include "estimator/estimator.h"

namespace tutti::impl::estimator {

/// What the fakes of this process do, and did.
struct FakeOrders {
  std::atomic<int64_t> fail_at_step{-1};     // run() fails instead of making this step
  std::atomic<int64_t> stop_token_at{-1};    // raises `token` to stop after this step
  std::atomic<int64_t> cancel_token_at{-1};  // raises `token` to cancel after this step
  base::Ref<base::CancelToken> token;
  std::atomic<int64_t> step_time_us{0};
  std::vector<distribute::StepTimes> step_times;  // that each replica reports of each step
  std::atomic<int64_t> trainers_opened{0};
  std::atomic<int64_t> initialized{0};
  std::atomic<int64_t> runs{0};
  std::atomic<int64_t> published{0};  // versions of weights
  std::vector<std::string> left_for;  // what other workers were told
  std::atomic<bool> takes_samples{false};
};
FakeOrders &fake_orders();
void reset_fake_orders();

/// `workers`: as the first of so many, none of which is there.
distribute::StrategyRef fake_strategy(int32_t workers = 1);

/// Counts its calls per mode in `calls` (train, evaluate, predict), when that is not null.
ModelFunction fake_model_function(std::atomic<int64_t> *calls = nullptr);

/// `rows` rows x = 0, 1, 2, ... in batches, shuffled when `shuffled`.
data::DatasetRef fake_dataset(int64_t rows, int64_t batch_size, bool shuffled = false);

}  // namespace tutti::impl::estimator

#endif  // TUTTI_TESTS_ESTIMATOR_FAKE_DISTRIBUTE_H_
