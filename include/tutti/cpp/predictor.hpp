// SPDX-License-Identifier: Apache-2.0
//
// Predictors and streams of predictions in C++.
#ifndef TUTTI_CPP_PREDICTOR_HPP_
#define TUTTI_CPP_PREDICTOR_HPP_

#include <tutti/predictor.h>
#include <tutti/cpp/estimator.hpp>

#include <string>
#include <utility>
#include <vector>

namespace tutti {

/// A batch of results.
class Batch : public detail::Handle<tutti_batch, tutti_batch_ref, tutti_batch_unref> {
 public:
  using Handle::Handle;
  int64_t first_row() const { return tutti_batch_get_first_row(get()); }
  int64_t row_count() const { return tutti_batch_get_row_count(get()); }
  std::vector<std::string> output_names() const {
    std::vector<std::string> names;
    for (int64_t i = 0; i < tutti_batch_get_output_count(get()); ++i)
      names.push_back(detail::copied(tutti_batch_get_output_name(get(), i)));
    return names;
  }
  /// Empty when there is no such output.
  Tensor output(const char *name) const { return Tensor::shared(tutti_batch_get_output(get(), name)); }
};

/// A trained model that answers; any number of threads may ask at a time.
class Predictor : public detail::Handle<tutti_predictor, tutti_predictor_ref, tutti_predictor_unref> {
 public:
  explicit Predictor(const Estimator &estimator) {
    detail::check([&](tutti_error **err) { return tutti_predictor_from_estimator(estimator, nullptr, out(), err); });
  }
  /// From a checkpoint or a model directory.
  explicit Predictor(const std::string &path, tutti_strategy *strategy = nullptr, tutti_context *context = nullptr,
                     const tutti_options *options = nullptr) {
    detail::check(
        [&](tutti_error **err) { return tutti_predictor_open(context, path.c_str(), strategy, options, out(), err); });
  }
  /// The rows of named tensors.
  Batch run(const std::vector<std::pair<std::string, Tensor>> &inputs, tutti_cancel *cancel = nullptr) {
    std::vector<const char *> names;
    std::vector<tutti_tensor *> tensors;
    for (const auto &[name, tensor] : inputs) {
      names.push_back(name.c_str());
      tensors.push_back(tensor);
    }
    const int64_t count = static_cast<int64_t>(inputs.size());
    return detail::make<Batch>([&](auto **out, auto **err) {
      return tutti_predictor_run(get(), names.data(), tensors.data(), count, cancel, out, err);
    });
  }
  Batch run_all(const Dataset &dataset, tutti_cancel *cancel = nullptr) {
    return detail::make<Batch>(
        [&](auto **out, auto **err) { return tutti_predictor_run_all(get(), dataset, cancel, out, err); });
  }
  /// To the weights of another checkpoint, "" = the newest of where it came from; calls in flight finish on the old.
  void reload(const std::string &path, tutti_cancel *cancel = nullptr) {
    detail::check([&](tutti_error **err) { return tutti_predictor_reload(get(), path.c_str(), cancel, err); });
  }
  int64_t step() const { return tutti_predictor_get_step(get()); }
  /// Inputs and outputs, as JSON.
  std::string signature() const { return detail::copied(tutti_predictor_get_signature(get())); }
  /// How `rows` rows are computed, kernel by kernel, as JSON; with times when `timed_runs` is not 0.
  std::string plan(int64_t rows, int64_t timed_runs = 0, tutti_cancel *cancel = nullptr) {
    const char *text = nullptr;
    detail::check(
        [&](tutti_error **err) { return tutti_predictor_describe_plan(get(), rows, timed_runs, cancel, &text, err); });
    return detail::copied(text);
  }
};

/// Predictions of a dataset, batch by batch: while (Batch batch = stream.next()) use(batch);
class PredictionStream
    : public detail::Handle<tutti_prediction_stream, tutti_prediction_stream_ref, tutti_prediction_stream_unref> {
 public:
  PredictionStream(const Predictor &predictor, const Dataset &dataset) {
    detail::check([&](tutti_error **err) { return tutti_prediction_stream_open(predictor, dataset, out(), err); });
  }
  /// Empty at the end.
  Batch next(tutti_cancel *cancel = nullptr) {
    return detail::make<Batch>(
        [&](auto **out, auto **err) { return tutti_prediction_stream_next(get(), cancel, out, err); });
  }
  void close(tutti_cancel *cancel = nullptr) {
    detail::check([&](tutti_error **err) { return tutti_prediction_stream_close(get(), cancel, err); });
  }
};

}  // namespace tutti

#endif  // TUTTI_CPP_PREDICTOR_HPP_
