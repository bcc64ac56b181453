// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/predict_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "backend/span_times.h"

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
    TUTTI_TRY(program.run(0, {read.data(), outputs.pointers.data(), scalars.data()}, loaded.stream));
    TUTTI_TRY(loaded.stream.synchronize());
    if (run <= 1) least = times.seconds();
    for (size_t i = 0; i < std::min(least.size(), times.seconds().size()); ++i)
      least[i] = std::min(least[i], times.seconds()[i]);
  }
  return least;
}

}  // namespace

Result<Json> describe_predict_plan(const GraphSource &source, const graph::SymbolBindings &bindings,
                                   LoadedWeights &loaded, int64_t rows, int64_t timed_runs) {
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
  plan.set("kernels", std::move(kernels));
  return plan;
}

}  // namespace tutti::impl::distribute
