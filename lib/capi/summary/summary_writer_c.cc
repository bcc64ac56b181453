// SPDX-License-Identifier: Apache-2.0
//
// The functions of <tutti/summary.h>.
#include <tutti/summary.h>

#include <limits>

#include "capi/context_c.h"
#include "capi/guard.h"
#include "capi/hook_c.h"
#include "capi/tensor_c.h"
#include "monitor/hyperparameters.h"
#include "monitor/precision_recall.h"
#include "monitor/projector.h"
#include "monitor/shown_summary.h"

using namespace tutti::impl;
using namespace tutti::impl::capi;

namespace {

constexpr int64_t kUsualImages = 3, kUsualThresholds = 201;

/// Adds what body(summary) fills in.
int32_t write_summary(tutti_summary_writer *writer, const char *name, int64_t step, tutti_error **err,
                      base::FunctionRef<Status(monitor::Summary &)> body) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<SummaryWriterObject> object, find(writer, summary_writer_handles, "writer"));
    TUTTI_TRY(require(name, "name"));
    if (*name == '\0') return base::invalid_argument("argument 'name' is empty");
    monitor::Summary summary;
    const Status status = body(summary);
    if (!status.ok()) return status.wrap(base::concat("summary ", base::quoted(name)));
    object->writer->add(step, summary);
    return Status();
  });
}

Result<base::Json> parse_json(const char *text, std::string_view argument) {
  Result<base::Json> json = base::Json::parse(text);
  if (json.ok()) return json;
  return json.status().wrap(base::concat("argument '", argument, "' is no JSON"));
}

Result<std::vector<std::string>> names_in(const char *json) {
  std::vector<std::string> names;
  if (json == nullptr || *json == '\0') return names;
  TUTTI_ASSIGN(const base::Json list, parse_json(json, "metrics_json"));
  TUTTI_ASSIGN(const std::vector<base::JsonReader> elements, base::JsonReader(list, "metrics_json").elements());
  for (const base::JsonReader &element : elements) {
    TUTTI_ASSIGN(std::string name, element.as_string());
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

int32_t tutti_summary_writer_create(tutti_context *context, const char *folder, int64_t flush_secs,
                                    tutti_summary_writer **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<ContextObject> owner, find_context(context));
    TUTTI_TRY(require(folder, "folder"));
    if (*folder == '\0') return base::invalid_argument("argument 'folder' is empty");
    if (flush_secs < 0) return base::invalid_argument("argument 'flush_secs' must be 0 or more, got ", flush_secs);
    auto object = base::make_ref<SummaryWriterObject>(
        base::make_ref<monitor::FolderWriter>(folder, static_cast<double>(flush_secs), owner->core()->logger));
    return emit(std::move(object), summary_writer_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(summary_writer, summary_writer_handles)

const char *tutti_summary_writer_get_folder(const tutti_summary_writer *writer) {
  const Ref<SummaryWriterObject> object = peek(writer, summary_writer_handles);
  return object ? object->writer->folder().c_str() : nullptr;
}

int32_t tutti_summary_writer_flush(tutti_summary_writer *writer, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<SummaryWriterObject> object, find(writer, summary_writer_handles, "writer"));
    object->writer->flush();
    return Status();
  });
}

int32_t tutti_summary_writer_add_scalar(tutti_summary_writer *writer, const char *name, double value, int64_t step,
                                        tutti_error **err) {
  return write_summary(writer, name, step, err, [&](monitor::Summary &summary) {
    summary.add_scalar(name, value);
    return Status();
  });
}

int32_t tutti_summary_writer_add_histogram(tutti_summary_writer *writer, const char *name, const tutti_tensor *values,
                                           int64_t step, tutti_error **err) {
  return write_summary(writer, name, step, err, [&](monitor::Summary &summary) -> Status {
    TUTTI_ASSIGN(const tensor::Tensor tensor, find_tensor(values, "values"));
    monitor::Histogram histogram;
    TUTTI_TRY(histogram.add(tensor));
    summary.add_histogram(name, histogram);
    return Status();
  });
}

int32_t tutti_summary_writer_add_image(tutti_summary_writer *writer, const char *name, const tutti_tensor *images,
                                       int64_t max_images, int64_t step, tutti_error **err) {
  return write_summary(writer, name, step, err, [&](monitor::Summary &summary) -> Status {
    TUTTI_ASSIGN(const tensor::Tensor tensor, find_tensor(images, "images"));
    if (max_images < 0) return base::invalid_argument("argument 'max_images' must be 0 or more, got ", max_images);
    TUTTI_TRY(monitor::check_images(tensor));
    TUTTI_ASSIGN(const std::vector<std::string> files,
                 monitor::png_files(tensor, max_images == 0 ? kUsualImages : max_images));
    if (!files.empty()) summary.add_images(name, tensor.shape()[1], tensor.shape()[2], files);
    return Status();
  });
}

int32_t tutti_summary_writer_add_text(tutti_summary_writer *writer, const char *name, const char *text, int64_t step,
                                      tutti_error **err) {
  return write_summary(writer, name, step, err, [&](monitor::Summary &summary) -> Status {
    TUTTI_TRY(require(text, "text"));
    summary.add_text(name, text);
    return Status();
  });
}

int32_t tutti_summary_writer_add_pr_curve(tutti_summary_writer *writer, const char *name, const tutti_tensor *labels,
                                          const tutti_tensor *predictions, const tutti_tensor *weights,
                                          int64_t thresholds, int64_t step, tutti_error **err) {
  return write_summary(writer, name, step, err, [&](monitor::Summary &summary) -> Status {
    TUTTI_ASSIGN(const tensor::Tensor truths, find_tensor(labels, "labels"));
    TUTTI_ASSIGN(const tensor::Tensor scores, find_tensor(predictions, "predictions"));
    tensor::Tensor factors;
    if (weights != nullptr) {
      TUTTI_ASSIGN(factors, find_tensor(weights, "weights"));
    }
    return monitor::add_precision_recall(summary, name, truths, scores, factors,
                                         thresholds == 0 ? kUsualThresholds : thresholds);
  });
}

int32_t tutti_summary_writer_add_embedding(tutti_summary_writer *writer, const char *name, const tutti_tensor *points,
                                           const char *metadata, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<SummaryWriterObject> object, find(writer, summary_writer_handles, "writer"));
    TUTTI_TRY(require(name, "name"));
    TUTTI_ASSIGN(const tensor::Tensor tensor, find_tensor(points, "points"));
    const std::string_view lines = metadata != nullptr ? metadata : "";
    const std::string what = base::concat("embedding ", base::quoted(name));
    if (const Status status = monitor::check_embedding(tensor, lines); !status.ok()) return status.wrap(what);
    static std::mutex one_at_a_time;  // writers of one folder share a file
    const std::lock_guard lock(one_at_a_time);
    const Status written = monitor::write_embedding(object->writer->folder(), name, tensor, lines);
    return written.ok() ? written : written.wrap(what);
  });
}

int32_t tutti_summary_writer_add_hyperparameters(tutti_summary_writer *writer, const char *settings_json,
                                                 const char *metrics_json, tutti_error **err) {
  return write_summary(writer, "hyper-parameters", 0, err, [&](monitor::Summary &summary) -> Status {
    TUTTI_TRY(require(settings_json, "settings_json"));
    TUTTI_ASSIGN(const base::Json settings, parse_json(settings_json, "settings_json"));
    if (!settings.is_object()) return base::invalid_argument("argument 'settings_json': expected a JSON object");
    TUTTI_ASSIGN(const std::vector<std::string> metrics, names_in(metrics_json));
    monitor::add_hyperparameters(summary, settings.object(), metrics, monitor::wall_time_ns());
    return Status();
  });
}
