// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/row_computation.h"

#include <algorithm>

#include "base/exceptions.h"
#include "distribute/plan/row_buckets.h"

namespace tutti::impl::distribute {

using base::Status;
using tensor::Tensor;

Status RowComputation::run(PredictCall &call, const InputBinding &binding, RowRange rows, int32_t lane) {
  // What a map on devices gives has room for whole batches.
  const bool is_exact = call.map != nullptr || !programs_.of(pool_.device_of(lane)).rounds_rows;
  const int64_t computed = rows_to_compute(rows.rows(), is_exact ? rows.rows() : call.usual_rows);
  const Status status = run(call, binding, rows, computed, lane);
  // There may be memory for these rows where there is none for more.
  if (status.code() != base::Code::resource_exhausted || computed == rows.rows()) return status;
  return run(call, binding, rows, rows.rows(), lane);
}

Status RowComputation::run(PredictCall &call, const InputBinding &binding, RowRange rows, int64_t computed,
                           int32_t lane) {
  LoadedWeights &loaded = *call.version->lanes[static_cast<size_t>(lane)];
  follow_trace(loaded, tracer_, "predictions", lane);
  ShapeKey key;
  binding.fill_key(call.batch, computed, key);
  const int32_t device = pool_.device_of(lane);
  const GraphSource *source = &programs_.of(device).source;
  BoundProgram *program = nullptr;
  const int64_t built = loaded.programs->built();
  TUTTI_TRY(loaded.programs->prepare({&source, 1}, key, [&] { return binding.bindings(key); }, {&program, 1}));
  TUTTI_ASSIGN(const std::vector<int32_t> components, binding.components_of(program->description()));
  std::vector<const void *> inputs;
  MappedLane &mapped = mapped_[static_cast<size_t>(lane)];
  if (call.map != nullptr)
    TUTTI_TRY(mapped.run(call.map, call.seed, call.unmapped, rows, loaded.device, loaded.stream));
  for (const int32_t component : components) {
    inputs.push_back(call.map != nullptr ? mapped.rows(component)
                                         : InputBinding::row_pointer(call.batch, component, rows.begin));
  }
  std::vector<void *> outputs;
  for (const backend::PortDescription &port : program->description().outputs) {
    const auto at = std::find(output_names_.begin(), output_names_.end(), port.name) - output_names_.begin();
    const Tensor &tensor = call.outputs[static_cast<size_t>(at)];
    const int64_t row_bytes = tensor.rows() == 0 ? 0 : tensor.size_bytes() / call.rows;
    outputs.push_back(tensor.mutable_data_as<std::byte>() + rows.begin * row_bytes);
  }
  backend::RunScalars scalars;
  scalars.set(backend::RunScalar::step, call.version->step)
      .set(backend::RunScalar::row_offset, rows.begin)
      .set(backend::RunScalar::local_rows, rows.rows())
      .set(backend::RunScalar::step_rows, call.rows);
  const base::TraceSpan span(tracer_, "step", "predict");
  const auto place = call.map != nullptr ? StagedIo::Inputs::on_device : StagedIo::Inputs::in_host_memory;
  const int64_t begin_ns = base::now_ns();
  TUTTI_TRY(loaded.io->run(program->program, inputs, outputs, scalars, loaded.stream, place, {computed, rows.rows()}));
  pool_.speeds().add(device, rows.rows(), static_cast<double>(base::now_ns() - begin_ns) * 1e-9,
                     loaded.programs->built() != built);
  return Status();
}

void RowJob::operator()(int32_t lane, RowRange rows, int64_t jobs) const {
  PredictCall &call = *call_;
  const bool wanted = !call.abandoned.load();
  const Status status = base::without_exceptions([&] {
    return wanted ? computation_.run(call, *binding_, rows, lane) : base::cancelled("the call was abandoned");
  });
  call.jobs.done(status, jobs);
  if (!status.ok()) call.abandoned.store(true);
  if (call.reading != nullptr && call.jobs.is_done()) call.reading->set_deadline(base::Deadline::after_ms(0));
}

}  // namespace tutti::impl::distribute
