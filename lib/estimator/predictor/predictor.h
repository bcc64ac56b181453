// SPDX-License-Identifier: Apache-2.0
//
// A predictor: a predict graph, immutable weights, all devices of a strategy. It comes from a checkpoint, without the
// code of the model, or from an estimator.
//
//   TUTTI_ASSIGN(auto predictor, Predictor::open("run", strategy, {}, environment));      // newest good checkpoint
//   TUTTI_ASSIGN(ResultBatch batch, predictor->run({{"image", images}}, nullptr));        // one row per row
//   TUTTI_ASSIGN(auto stream, predictor->stream(dataset, nullptr));                       // ordered, bounded, closable
//   TUTTI_TRY(predictor->reload(nullptr));                                                // a newer checkpoint, if any
//
// Every input row gives exactly one output row, in input order. A call, and a whole stream, computes with one version
// of the weights: reload() takes effect for those that start after it; those under way keep theirs.
//
// With a strategy of several workers streams are of all of them (worker_predict_stream.h), and so is run_all(); run()
// works on this process alone.
//
// Threads: all functions may be called from any number of threads. The threads that compute belong to the predictor,
// one per device, however many callers there are; weights are packed once per device and version.
#ifndef TUTTI_ESTIMATOR_PREDICTOR_PREDICTOR_H_
#define TUTTI_ESTIMATOR_PREDICTOR_PREDICTOR_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/json.h"
#include "base/object.h"
#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/pipeline/sources.h"
#include "distribute/predict/predict_engine.h"
#include "estimator/environment.h"
#include "estimator/estimator.h"
#include "estimator/model_source.h"
#include "estimator/predictor/result_batch.h"
#include "estimator/warnings_given.h"

namespace tutti::impl::estimator::predictor {

struct PredictorOptions {
  backend::Level level = backend::Level::fast;
  int64_t threads_per_device = 1;
  /// What may be rounded while computing; other than f32 only at level fast.
  backend::Precision precision = backend::Precision::f32;
  /// The weights themselves are used where the optimizer kept moving averages of them; an estimator's run may ask for
  /// that, too.
  bool raw_weights = false;
  /// Programs kept per device, by number of rows.
  int64_t program_cache_size = 16;
  /// Batches of a stream that may be under way or wait to be taken; 0 = two per device and two more.
  int64_t look_ahead = 0;
  /// With several workers: which rows a stream gives each of them, and how long one waits for another; without a
  /// number as an estimator's run has it, else 600 s.
  distribute::WorkerRows worker_rows = distribute::WorkerRows::all;
  std::optional<int64_t> collective_timeout_ms;
  /// Outputs that are wanted; empty = all. An unknown one is an error.
  std::vector<std::string> outputs;

  /// INVALID_ARGUMENT naming the field.
  base::Status check() const;
};

/// Results over a dataset, in its order. Threads: one at a time. Destroying it ends the work that is under way.
class ResultStream {
 public:
  ResultStream(std::unique_ptr<distribute::PredictStream> stream, base::Ref<base::CancelToken> cancel,
               std::shared_ptr<const std::vector<std::string>> names);
  ~ResultStream();

  /// The next batch, or false at the end. As PredictStream::next(): interrupts change nothing, any other error ends
  /// the stream.
  base::Result<bool> next(ResultBatch &batch);

 private:
  base::Ref<base::CancelToken> cancel_;
  std::shared_ptr<const std::vector<std::string>> names_;
  std::unique_ptr<distribute::PredictStream> stream_;
};

class Predictor : public base::Object {
 public:
  /// From a checkpoint, or a directory of them (the newest good one).
  static base::Result<base::Ref<Predictor>> open(const std::string &path, distribute::StrategyRef strategy,
                                                 const PredictorOptions &options, const Environment &environment);
  /// From an estimator: its PREDICT model (`spec` declares the inputs if it is not built yet) and its weights: those of
  /// `checkpoint_path`, or the newest. reload() takes up what the estimator has trained or saved since.
  static base::Result<base::Ref<Predictor>> from_estimator(Estimator &estimator, const data::ElementSpec &spec,
                                                           const PredictorOptions &options,
                                                           const std::string &checkpoint_path = "");

  /// One batch: every feature of the model by name, with equal numbers of rows (zero is legal).
  base::Result<ResultBatch> run(const std::vector<data::NamedTensor> &features, const base::CancelToken *cancel) const;
  /// Every element of a batched dataset; labels and weights are left out. Workers open their streams in the same order.
  base::Result<std::unique_ptr<ResultStream>> stream(const data::DatasetRef &dataset,
                                                     base::Ref<base::CancelToken> cancel) const;
  /// The same at once. A dataset without rows gives outputs without rows.
  base::Result<ResultBatch> run_all(const data::DatasetRef &dataset, base::Ref<base::CancelToken> cancel) const;

  /// Takes up newer weights from where the predictor came from; true when there were some. On an error everything
  /// stays.
  base::Result<bool> reload();
  /// Takes up the weights, and the graph if it is another one, of a checkpoint, or of the newest good one of a
  /// directory. FAILED_PRECONDITION where it has other features or outputs. On an error everything stays.
  base::Status reload_from(const std::string &path);

  /// Names of outputs in the order of ResultBatch::tensors.
  std::vector<std::string> output_names() const;
  /// The features of the model: name, dtype, dims.
  std::vector<graph::InputSpec> features() const;
  /// The outputs in the order of output_names(): name, dtype, dims.
  std::vector<graph::InputSpec> outputs() const;
  /// The step of the weights that a call starting now would use.
  int64_t step() const;
  distribute::PredictCounters counters() const;
  /// How `rows` rows are computed, as PredictEngine::plan().
  base::Result<base::Json> plan(int64_t rows, int64_t timed_runs, const base::CancelToken *cancel) const;

 private:
  // What is swapped as one: an engine with its weights, and the model it was made from.
  struct Loaded;
  using LoadedRef = std::shared_ptr<const Loaded>;

  Predictor(distribute::StrategyRef strategy, PredictorOptions options, Environment environment);
  template <typename T, typename... A>
  friend base::Ref<T> base::make_ref(A &&...);

  /// What of a version is predicted with.
  base::Ref<checkpoint::WeightVersion> used_of(const base::Ref<checkpoint::WeightVersion> &version) const;
  base::Result<LoadedRef> load(graph::Model model, std::string graph_text,
                               base::Ref<checkpoint::WeightVersion> version) const;
  base::Result<LoadedRef> load_checkpoint(const std::string &path, const Loaded *current) const;
  LoadedRef loaded() const;
  ThreadShares thread_shares() const;
  void replace(LoadedRef loaded);
  base::Result<std::vector<tensor::Tensor>> zero_rows(const Loaded &loaded) const;

  const distribute::StrategyRef strategy_;
  const PredictorOptions options_;
  const Environment environment_;
  std::string path_;                     // of open()
  base::Ref<EstimatorState> estimator_;  // of from_estimator()
  mutable WarningsGiven warnings_;
  std::mutex reload_mutex_;  // one reload at a time
  mutable std::mutex mutex_;
  LoadedRef loaded_;  // guarded by mutex_
};

}  // namespace tutti::impl::estimator::predictor

#endif  // TUTTI_ESTIMATOR_PREDICTOR_PREDICTOR_H_
