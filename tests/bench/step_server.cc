// SPDX-License-Identifier: Apache-2.0
#include "step_server.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "base/json.h"
#include "fma_ceiling.h"
#include "kernel_times.h"
#include "meters.h"
#include "runtime/backend_list.h"
#include "step_case.h"

namespace tutti::testing {

using impl::base::Json;
using impl::base::JsonArray;
using impl::base::JsonObject;
using impl::base::JsonReader;
using impl::base::Result;
using impl::base::Status;

namespace {

double megabytes(int64_t bytes) { return static_cast<double>(bytes) / 1e6; }

/// The largest of a number over the reports of a case, whose programs share one workspace.
Result<int64_t> largest_of_reports(const StepCase &one, const char *key) {
  int64_t largest = 0;
  for (const std::string &text : one.reports()) {
    TUTTI_ASSIGN(const Json report, Json::parse(text));
    TUTTI_ASSIGN(const int64_t value, JsonReader(report, "report").get_integer(key));
    largest = std::max(largest, value);
  }
  return largest;
}

/// One array: a line "<name> <type> <dim>...", then its bytes.
template <typename T>
void write_array(std::ostream &out, const std::string &name, const char *type, const std::vector<int64_t> &dims,
                 const std::vector<T> &values) {
  out << name << ' ' << type;
  for (int64_t dim : dims)
    out << ' ' << dim;
  out << '\n';
  out.write(reinterpret_cast<const char *>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(values[0])));
}

/// The start of a training, the losses of its first steps, and what is predicted from that start, for another
/// implementation to check against.
Result<Json> write_values(const std::string &backend_name, const CaseSpec &spec, const std::string &path) {
  TUTTI_ASSIGN(const auto backend, impl::runtime::open_backend(backend_name, "{}", {}));
  TUTTI_ASSIGN(const StepModel model, make_step_model(spec.model));
  TUTTI_ASSIGN(StepTrainer trainer, StepTrainer::create(backend, model, spec.batch));
  TUTTI_ASSIGN(StepPredictor predictor, StepPredictor::create(backend, model, spec.batch));
  std::ofstream out(path, std::ios::binary);
  for (const StepVariable &variable : model.variables) {
    TUTTI_ASSIGN(const std::vector<float> values, trainer.values("weight/", variable.name));
    write_array(out, variable.name, "f32", variable.dims, values);
  }
  std::vector<int64_t> image = model.image, label = model.label;
  image.insert(image.begin(), spec.batch);
  label.insert(label.begin(), spec.batch);
  write_array(out, "image", "f32", image, trainer.images());
  write_array(out, "label", "i64", label, trainer.labels());
  TUTTI_TRY(predictor.predict());
  label.push_back(model.classes);
  write_array(out, "logits", "f32", label, predictor.logits());
  JsonArray losses;
  for (int i = 0; i < 4; ++i) {
    TUTTI_TRY(trainer.step());
    losses.push_back(trainer.loss());
  }
  if (!out.flush()) return impl::base::internal_error("cannot write '", path, "'");
  return Json(JsonObject{{"losses", std::move(losses)}});
}

class Server {
 public:
  explicit Server(std::string backend) : backend_(std::move(backend)) {}

  Result<Json> answer(const std::string &line) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "calibrate") return calibrate(words);
    if (what == "ceiling") return ceiling(words);
    if (what == "drop") {
      current_.reset();
      return Json(JsonObject());
    }
    CaseSpec spec;
    words >> spec.form >> spec.model >> spec.batch;
    if (what == "measure") return measure(words, spec);
    current_.reset();
    if (what == "kernels") return kernels(spec);
    if (what == "overhead") return overhead(spec);
    std::string path;
    words >> path;
    if (what == "dump" && words) return write_values(backend_, spec, path);
    return impl::base::invalid_argument("'", line, "' is no request");
  }

 private:
  Result<Json> measure(std::istream &words, CaseSpec &spec) {
    std::string configuration;
    double seconds = 0;
    words >> spec.threads >> configuration >> seconds;
    std::istringstream parts(configuration);
    for (std::string part; std::getline(parts, part, '+');) {
      if (part == "bf16") spec.flags |= TUTTI_COMPILE_BF16_WHERE_FASTER;
      if (part == "bucketed") spec.bucketed = true;
      if (part == "latency") spec.waits = true;
    }
    if (!words) return impl::base::invalid_argument("measure FORM MODEL BATCH THREADS CONFIGURATION SECONDS");
    if (!current_ || !(current_->spec() == spec)) {
      current_.reset();
      TUTTI_ASSIGN(current_, StepCase::create(backend_, spec));
      TUTTI_TRY(current_->measure(0.2, 2));
    }
    TUTTI_ASSIGN(const Measured cost, current_->measure(seconds));
    TUTTI_ASSIGN(const int64_t lower_bound, largest_of_reports(*current_, "workspace_lower_bound_bytes"));
    return Json(JsonObject{{"cpu_ms", cost.cpu_ms},
                           {"wall_ms", cost.wall_ms},
                           {"steps", cost.steps},
                           {"waits", cost.waits},
                           {"gflops", current_->flops() / cost.cpu_ms * 1e-6},
                           {"build_ms", current_->build_seconds() * 1e3},
                           {"peak_mb", megabytes(peak_memory_bytes())},
                           {"workspace_mb", megabytes(current_->workspace_bytes())},
                           {"lower_bound_mb", megabytes(lower_bound)},
                           {"state_mb", megabytes(current_->state_bytes())},
                           {"issue_us", cost.issue_ms * 1e3},
                           {"device_mb", megabytes(current_->device_bytes())}});
  }

  static Result<Json> calibrate(std::istream &words) {
    int32_t threads = 1;
    double seconds = 0.05;
    words >> threads >> seconds;
    return Json(JsonObject{{"gflops", fma_gflops_wall(threads, seconds)}});
  }

  static Result<Json> ceiling(std::istream &words) {
    double seconds = 0.5;
    words >> seconds;
    return Json(JsonObject{{"gflops", fma_gflops(seconds)}, {"target", fma_target_name()}});
  }

  Result<Json> kernels(const CaseSpec &spec) const {
    TUTTI_ASSIGN(const std::vector<KernelTime> times, kernel_times(backend_, spec));
    JsonArray list;
    for (const KernelTime &time : times)
      list.push_back(JsonArray{time.name, time.ms});
    return Json(JsonObject{{"kernels", std::move(list)}});
  }

  Result<Json> overhead(const CaseSpec &spec) const {
    TUTTI_ASSIGN(const Overhead found, executor_overhead(backend_, spec));
    return Json(JsonObject{
        {"step_us", found.step_us}, {"executor_us", found.executor_us()}, {"kernel_calls", found.kernel_calls}});
  }

  std::string backend_;
  std::optional<StepCase> current_;
};

}  // namespace

void serve_steps(const std::string &backend) {
  Server server(backend);
  std::cout << Json(JsonObject{{"name", "tutti " + backend}}).dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const Result<Json> answer = server.answer(line);
    const Json text = answer.ok() ? *answer : Json(JsonObject{{"error", answer.status().to_string()}});
    std::cout << text.dump() << std::endl;
  }
}

}  // namespace tutti::testing
