// SPDX-License-Identifier: Apache-2.0
//
// A stream of predictions over several workers: in each round (worker_rounds.h) every worker predicts one batch, and
// all exchange what came out. Where all have the same input, its batches come out as they do in one process; where each
// has its own, a batch is made of one of each worker, a row of each in turn, which is the order of what shard() has
// dealt out.
//
//   auto turns = input_turns(strategy);       // told of each element that the own stream reads
//   TUTTI_ASSIGN(auto all, join_workers(strategy, options, state, outputs, {std::move(own), turns, cancel}));
//
// A worker's call waits for the others no longer than the limit. One that drops its stream before the end, fails or
// dies ends those of the others with an error that names it; what they got before stands.
//
// Threads: as PredictStream. One thread of the stream exchanges, so that an interrupt of a call changes nothing.
// Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_PREDICT_WORKER_PREDICT_STREAM_H_
#define TUTTI_DISTRIBUTE_PREDICT_WORKER_PREDICT_STREAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "data/element/element.h"
#include "distribute/predict/predict_engine.h"
#include "distribute/workers/worker_rounds.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

struct OutputSpec {
  std::string name;
  tensor::DType dtype;
  graph::Dims dims;
};

/// Which elements of an input that all workers have are predicted here. Threads: one.
class InputTurns {
 public:
  explicit InputTurns(BatchTurn turn) : turn_(turn) {}
  /// The next element, which was just read: is it this worker's?
  bool take(const data::Element &element);
  /// Of all elements that belong to a round. Those of earlier ones are forgotten.
  RoundRead of_round(int64_t round);

 private:
  const BatchTurn turn_;
  int64_t elements_ = 0, first_round_ = 0;
  std::deque<RoundRead> rounds_;  // from first_round_ on
};
/// Null where everything that is read is predicted here.
std::shared_ptr<InputTurns> input_turns(const Strategy &strategy);

/// A stream of what is this worker's alone.
struct OwnStream {
  std::unique_ptr<PredictStream> stream;
  std::shared_ptr<InputTurns> turns;    ///< that it tells what it reads; null: all of it is this worker's
  base::Ref<base::CancelToken> cancel;  ///< that interrupts it; nullable
};

/// Meets the other workers, who must be in the same state and have the same options.
base::Result<std::unique_ptr<PredictStream>> join_workers(const Strategy &strategy, const PredictOptions &options,
                                                          WorkerState state, const std::vector<OutputSpec> &outputs,
                                                          OwnStream own);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_WORKER_PREDICT_STREAM_H_
