// SPDX-License-Identifier: Apache-2.0
//
// Forward passes on all devices of a strategy, of whatever backends. Weights come as immutable versions; each device
// packs its own copy once per version, in the layout of its kind. Rows of a call are split over the devices, results
// come back in row order.
//
// Equal devices get equal parts of a call, and whole batches of a stream, whichever is free first; of a call that is
// large, where rows are copied, several parts each (row_buckets.h), one of which is copied while another is computed.
// Those of several kinds, and unequal ones of one kind as soon as that is known, take pieces by their speed at level
// fast (row_queue.h).
// At level repeatable those of several kinds get fixed parts: share i of a call, batches i, i + n, ... of a stream, and
// so the same bits whoever is free. Level invariant is INVALID_ARGUMENT for several kinds. Evaluations likewise, but
// that devices of one kind get fixed shares of each batch there as long as they are equal. With several workers each
// deals its own rows so, whatever devices the others have; level invariant wants devices of one kind on all of them.
//
// Each number of rows has a program of its own on devices that compute in memory of the host, where that costs little.
// On others numbers are rounded up (row_buckets.h) where no row of the model depends on another: rows beyond those that
// there are repeat the first ones, and nothing of them comes back. Programs read the true numbers (run_scalar).
//
// A device that fails fails the call: what it was given is given to no other.
//
//   TUTTI_ASSIGN(auto engine, PredictEngine::open(predict_model, strategy, {}));
//   TUTTI_TRY(engine->set_weights(version));                          // swaps atomically; calls under way keep theirs
//   TUTTI_ASSIGN(std::vector<Tensor> outputs, engine->run({image}, token));
//   TUTTI_ASSIGN(auto stream, engine->stream(std::move(iterator), token));
//   for (PredictBatch batch; true;) {
//     TUTTI_ASSIGN(bool more, stream->next(batch));
//     if (!more) break;
//   }
//
// Threads: run, stream and set_weights may be called from any number of threads; one stream from one thread at a time.
// The engine has one thread per device, two where rows are copied to the device's memory: one batch is copied while
// another is computed. A stream may be destroyed early and keeps the engine alive.
#ifndef TUTTI_DISTRIBUTE_PREDICT_PREDICT_ENGINE_H_
#define TUTTI_DISTRIBUTE_PREDICT_PREDICT_ENGINE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/executable.h"
#include "base/cancel.h"
#include "base/json.h"
#include "base/status.h"
#include "checkpoint/weight_version.h"
#include "data/dataset/dataset.h"
#include "distribute/strategy/strategy.h"
#include "graph/model.h"
#include "monitor/shown_summary.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

/// With several workers: which rows a stream gives each of them.
enum class WorkerRows : int32_t {
  all = 1,  ///< those of all, in order
  own = 2   ///< those that it has computed itself; with input of its own, counted among these
};

struct PredictOptions {
  backend::Level level = backend::Level::fast;
  int32_t threads_per_replica = 1;
  /// Other than f32 only at level fast.
  backend::Precision precision = backend::Precision::f32;
  int32_t program_cache_size = 16;
  int64_t typical_rows = 64;
  /// Batches of a stream that may be under way or waiting to be taken; 0 = 2 per thread + 2.
  int32_t stream_depth = 0;
  /// While it is enabled, kernels and calls are traced. Null: never.
  base::Ref<base::Tracer> tracer = nullptr;
  /// With several workers: how long one waits for another.
  int64_t collective_timeout_ms = 600000;
  WorkerRows worker_rows = WorkerRows::all;
  /// Evaluations show the rows of the model's summaries. With several workers all say the same.
  bool shows_rows = false;
};

/// One batch of results: outputs by position of PredictEngine::output_names().
struct PredictBatch {
  std::vector<tensor::Tensor> outputs;
  int64_t first_row = 0;  ///< position of the first row in the stream
  int64_t rows = 0;
  int64_t step = 0;  ///< of the weight version that computed it
};

/// Results of one iterator, in its order.
class PredictStream {
 public:
  virtual ~PredictStream() = default;
  /// The next batch, or false at the end. An interrupt (base::is_interrupt) changes nothing: the next call goes on. Any
  /// other error ends the stream; of input, behind what is before it.
  virtual base::Result<bool> next(PredictBatch &batch) = 0;
};

struct PredictCounters {
  int64_t versions_packed = 0;  ///< per device
  int64_t programs_built = 0;
  int64_t calls = 0;
};

class PredictEngine : public std::enable_shared_from_this<PredictEngine> {
 public:
  static base::Result<std::shared_ptr<PredictEngine>> open(const graph::Model &predict_model, StrategyRef strategy,
                                                           const PredictOptions &options);
  virtual ~PredictEngine() = default;

  virtual const std::vector<std::string> &feature_names() const = 0;
  virtual const std::vector<std::string> &output_names() const = 0;

  /// The version that calls started from now on use. A variable of the model that it lacks, or has with other dims or
  /// dtype, is an error naming it, and the former version stays.
  virtual base::Status set_weights(const base::Ref<checkpoint::WeightVersion> &version) = 0;
  /// Features in order of feature_names(), equal rows; outputs in order of output_names(). Zero rows are legal.
  /// FAILED_PRECONDITION before the first set_weights.
  /// `step` (nullable) receives the step of the version that was used.
  virtual base::Result<std::vector<tensor::Tensor>> run(std::span<const tensor::Tensor> features,
                                                        const base::CancelToken *cancel, int64_t *step = nullptr) = 0;
  /// Before a walk over `dataset` is made with `context` for stream(): lets it leave the dataset's last map to the
  /// devices, as Trainer::leave_map() does.
  virtual std::string leave_map(const data::Dataset &dataset, data::IteratorContext &context) = 0;
  /// Predicts every element of `iterator`, whose labels and weights are left out. The whole stream uses the version
  /// that is current now. `cancel` (nullable) is the token in the iterator's context. With a strategy of several
  /// workers all call it, with the same weights, and read their streams to the end (worker_predict_stream.h).
  virtual base::Result<std::unique_ptr<PredictStream>> stream(std::unique_ptr<data::Iterator> iterator,
                                                              base::Ref<base::CancelToken> cancel) = 0;
  virtual PredictCounters counters() const = 0;
  /// A sentence about a device that has turned out to add next to nothing to the others; empty where there is none.
  virtual std::string advice() const = 0;
  virtual base::Json describe() const = 0;
  /// How `rows` rows are computed on the first device: {"step", "rows", "device", "computed_rows"} (row_buckets.h) and
  /// what describe_predict_plan (predict_plan.h) says; "others": the same of the first device of each further kind,
  /// where there are any. An error when a feature has another dim that varies. Compiles, so it takes its time.
  virtual base::Result<base::Json> plan(int64_t rows, int64_t timed_runs, const base::CancelToken *cancel) = 0;
};

struct EvaluateReport {
  std::vector<std::string> names;        ///< "loss" first when the model has one
  std::vector<double> values;            ///< NaN for a tensor
  std::vector<tensor::Tensor> elements;  ///< of those that are tensors, by position, else empty
  int64_t examples = 0;
  int64_t batches = 0;
  int64_t step = 0;  ///< of the weights
  /// Of the model's summaries: scalars and what else has no rows as metrics are; of what has rows, if they are shown,
  /// histograms of all rows, and images of the last batch, of several workers the first one's.
  std::vector<monitor::ShownSummary> summaries{};
};

/// Loss and metrics over a whole data set: sums over all batches and devices, the last formula once at the end, so the
/// loss is weighted by examples whatever the sizes of the batches.
///
/// With a strategy of several workers each has an evaluator, and all call run() with the same weights and numbers. They
/// meet for each run; each computes its batches (worker_rounds.h) and gets the report of all. An error of one ends the
/// run of all, and names it.
class Evaluator {
 public:
  static base::Result<std::unique_ptr<Evaluator>> open(const graph::Model &evaluate_model, StrategyRef strategy,
                                                       const PredictOptions &options);
  virtual ~Evaluator() = default;

  /// Before a walk over `dataset` is made with `context` for run(): lets it leave the dataset's last map to the
  /// devices, as Trainer::leave_map() does.
  virtual std::string leave_map(const data::Dataset &dataset, data::IteratorContext &context) = 0;
  /// Up to `max_batches` batches of the input, or of each worker's own (negative = all). INVALID_ARGUMENT when there is
  /// not one row.
  virtual base::Result<EvaluateReport> run(const checkpoint::WeightVersion &weights, data::Iterator &iterator,
                                           int64_t max_batches, const base::CancelToken *cancel) = 0;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_PREDICT_ENGINE_H_
