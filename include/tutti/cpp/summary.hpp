// SPDX-License-Identifier: Apache-2.0
//
// What people and other programs see of a training: summaries for TensorBoard, values for Prometheus. Part of
// <tutti/tutti.hpp>.
#ifndef TUTTI_CPP_SUMMARY_HPP_
#define TUTTI_CPP_SUMMARY_HPP_

#include <tutti/hook.h>
#include <tutti/summary.h>
#include <tutti/cpp/handle.hpp>

#include <string>

namespace tutti {

/// Writes curves and others for TensorBoard into a folder (summary.h).
class SummaryWriter
    : public detail::Handle<tutti_summary_writer, tutti_summary_writer_ref, tutti_summary_writer_unref> {
 public:
  using Handle::Handle;
  explicit SummaryWriter(const std::string &folder, int64_t flush_secs = 10, tutti_context *context = nullptr) {
    detail::check([&](tutti_error **err) {
      return tutti_summary_writer_create(context, folder.c_str(), flush_secs, out(), err);
    });
  }
  /// That of the run whose event a hook sees; empty where the run writes none.
  static SummaryWriter of(const tutti_hook_event *event) {
    tutti_summary_writer *const lent = tutti_hook_event_get_summary_writer(event);
    tutti_summary_writer_ref(lent);
    return SummaryWriter(lent);
  }
  std::string folder() const { return detail::copied(tutti_summary_writer_get_folder(get())); }
  SummaryWriter &flush() {
    return call([&](tutti_error **err) { return tutti_summary_writer_flush(get(), err); });
  }
  SummaryWriter &add_scalar(const char *name, double value, int64_t step) {
    return call([&](tutti_error **err) { return tutti_summary_writer_add_scalar(get(), name, value, step, err); });
  }
  SummaryWriter &add_histogram(const char *name, const tutti_tensor *values, int64_t step) {
    return call([&](tutti_error **err) { return tutti_summary_writer_add_histogram(get(), name, values, step, err); });
  }
  SummaryWriter &add_image(const char *name, const tutti_tensor *images, int64_t step, int64_t max_images = 3) {
    return call(
        [&](tutti_error **err) { return tutti_summary_writer_add_image(get(), name, images, max_images, step, err); });
  }
  SummaryWriter &add_text(const char *name, const char *text, int64_t step) {
    return call([&](tutti_error **err) { return tutti_summary_writer_add_text(get(), name, text, step, err); });
  }
  SummaryWriter &add_pr_curve(const char *name, const tutti_tensor *labels, const tutti_tensor *predictions,
                              int64_t step, const tutti_tensor *weights = nullptr, int64_t thresholds = 0) {
    return call([&](tutti_error **err) {
      return tutti_summary_writer_add_pr_curve(get(), name, labels, predictions, weights, thresholds, step, err);
    });
  }
  SummaryWriter &add_embedding(const char *name, const tutti_tensor *points, const char *metadata = nullptr) {
    return call(
        [&](tutti_error **err) { return tutti_summary_writer_add_embedding(get(), name, points, metadata, err); });
  }
  /// JSON: an object of settings, an array of names of curves.
  SummaryWriter &add_hyperparameters(const char *settings, const char *metrics = nullptr) {
    return call(
        [&](tutti_error **err) { return tutti_summary_writer_add_hyperparameters(get(), settings, metrics, err); });
  }

 private:
  template <typename Call>
  SummaryWriter &call(Call &&call) {
    detail::check(call);
    return *this;
  }
};

/// The newest values of trainings for monitoring by Prometheus.
class Prometheus : public detail::Handle<tutti_prometheus, tutti_prometheus_ref, tutti_prometheus_unref> {
 public:
  Prometheus() {
    detail::check([&](tutti_error **err) { return tutti_prometheus_create(out(), err); });
  }
  /// In its text format 0.0.4.
  std::string text() const {
    const Tensor bytes =
        detail::make<Tensor>([&](auto **out, auto **err) { return tutti_prometheus_read(get(), out, err); });
    return std::string(bytes.data<char>(), static_cast<size_t>(tutti_tensor_get_element_count(bytes)));
  }
};

}  // namespace tutti

#endif  // TUTTI_CPP_SUMMARY_HPP_
