// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/predict_plan.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "backend/span_times.h"
#include "distribute/plan/row_buckets.h"
#include "graph/dim.h"

namespace tutti::impl::distribute {

using base::Json;
using base::Result;
using base::Status;

namespace {

/// Buffers for the inputs or outputs of a program, zeroed.
struct Ports {
  std::vector<backend::Buffer> buffers;
  std::vector<void *> pointers;

  static Result<Ports> allocate(backend::Device &device, const std::vector<backend::PortDescription> &list) {
    Ports ports;
    for (const backend::PortDescription &port : list) {
      TUTTI_ASSIGN(backend::Buffer buffer, device.allocate(port.bytes));
      TUTTI_TRY(buffer.fill_zero(0, port.bytes));
      ports.pointers.push_back(buffer.device_pointer());
      ports.buffers.push_back(std::move(buffer));
    }
    return ports;
  }
};

/// The least time of each kernel over some runs after one to warm up; empty when the backend shows no spans.
Result<std::vector<double>> time_kernels(const backend::Executable &executable, LoadedWeights &loaded, int64_t rows,
                                         int64_t runs) {
  const backend::ExecutableDescription &description = executable.description();
  TUTTI_ASSIGN(const Ports inputs, Ports::allocate(*loaded.device, description.inputs));
  TUTTI_ASSIGN(const Ports outputs, Ports::allocate(*loaded.device, description.outputs));
  TUTTI_ASSIGN(const backend::Buffer workspace,
               loaded.device->allocate(description.workspace_bytes, description.workspace_alignment));
  TUTTI_ASSIGN(backend::Program program,
               executable.bind(*loaded.device, loaded.programs->arenas(), workspace.device_pointer()));
  backend::RunScalars scalars;
  scalars.set(backend::RunScalar::local_rows, rows).set(backend::RunScalar::step_rows, rows);
  const std::vector<const void *> read(inputs.pointers.begin(), inputs.pointers.end());
  std::vector<double> least;
  for (int64_t run = 0; run <= runs; ++run) {
    const backend::SpanTimes times;
    const backend::RunArguments arguments{read.data(), outputs.pointers.data(), scalars.data()};
    TUTTI_TRY(loaded.stream.finish(program.run(0, arguments, loaded.stream)));
    if (run <= 1) least = times.seconds();
    for (size_t i = 0; i < std::min(least.size(), times.seconds().size()); ++i)
      least[i] = std::min(least[i], times.seconds()[i]);
  }
  return least;
}

/// {"workspace_bytes", "seconds", "kernels"}. On the thread of a lane.
Result<Json> describe_program(const GraphSource &source, const graph::SymbolBindings &bindings, LoadedWeights &loaded,
                              int64_t rows, int64_t timed_runs) {
  TUTTI_ASSIGN(const backend::ExecutableRef executable,
               backend::Executable::compile(*loaded.device, compile_request(source, bindings, timed_runs > 0)));
  const backend::ExecutableDescription &description = executable->description();
  TUTTI_ASSIGN(const Json report, Json::parse(description.report_json));
  const Json *listed = report.find("kernels");
  Json kernels = listed != nullptr && listed->is_array() ? *listed : Json(base::JsonArray());
  Json plan = base::JsonObject{{"workspace_bytes", description.workspace_bytes}};
  if (timed_runs > 0) {
    TUTTI_ASSIGN(const std::vector<double> seconds, time_kernels(*executable, loaded, rows, timed_runs));
    if (seconds.size() == kernels.size()) {
      plan.set("seconds", std::accumulate(seconds.begin(), seconds.end(), 0.0));
      for (size_t i = 0; i < seconds.size(); ++i)
        kernels.array()[i].set("seconds", seconds[i]);
    }
  }
  if (const Json *library = report.find("library"); library != nullptr) plan.set("library", *library);
  if (const Json *programs = report.find("segments"); programs != nullptr) plan.set("programs", *programs);
  plan.set("kernels", std::move(kernels));
  return plan;
}

graph::SymbolBindings of_rows(int64_t rows) { return {{std::string(graph::kBatchSymbol), rows}}; }

Result<Json> plan_on(int32_t device, const PredictPrograms &programs, DevicePool &pool,
                     const std::shared_ptr<const LoadedVersion> &version, int64_t rows, int64_t timed_runs,
                     const base::CancelToken *cancel) {
  const KindPrograms &of = programs.of(device);
  const int64_t computed = rows_to_compute(rows, of.rounds_rows ? 0 : rows);
  struct Answer {
    JobGroup job;
    Json plan;
  };
  const auto answer = std::make_shared<Answer>();
  answer->job.add(1);
  pool.submit(device, [&of, version, answer, computed, rows, timed_runs](int32_t lane) {
    LoadedWeights &loaded = *version->lanes[static_cast<size_t>(lane)];
    Result<Json> plan = describe_program(of.source, of_rows(computed), loaded, rows, timed_runs);
    if (plan.ok()) answer->plan = std::move(plan).value();
    answer->job.done(plan.status());
  });
  TUTTI_TRY(answer->job.wait(cancel));
  Json whole = base::JsonObject{{"device", programs.devices()[static_cast<size_t>(device)]->name()},
                                {"computed_rows", computed}};
  for (auto &[key, value] : answer->plan.object())
    whole.set(key, std::move(value));
  return whole;
}

}  // namespace

Status check_plan(const graph::Model &model, int64_t rows, int64_t timed_runs) {
  if (rows < 1 || timed_runs < 0)
    return base::invalid_argument("a plan is for 1 row or more, got ", rows, ", with 0 timed runs or more, got ",
                                  timed_runs);
  for (const graph::InputSpec &feature : model.features) {
    const auto dims = graph::evaluate(feature.dims, of_rows(rows));
    if (!dims.ok()) return dims.status().wrap(base::concat("feature '", feature.name, "'"));
  }
  return Status();
}

Result<Json> describe_predict_plan(const PredictPrograms &programs, DevicePool &pool,
                                   const std::shared_ptr<const LoadedVersion> &version, int64_t rows,
                                   int64_t timed_runs, const base::CancelToken *cancel) {
  Json whole = base::JsonObject{{"step", version->step}, {"rows", rows}};
  base::JsonArray others;
  for (const size_t first : programs.kinds().first_devices) {
    TUTTI_ASSIGN(Json plan, plan_on(static_cast<int32_t>(first), programs, pool, version, rows, timed_runs, cancel));
    if (first > 0) {
      others.push_back(std::move(plan));
      continue;
    }
    for (auto &[key, value] : plan.object())
      whole.set(key, std::move(value));
  }
  if (!others.empty()) whole.set("others", std::move(others));
  return whole;
}

}  // namespace tutti::impl::distribute
