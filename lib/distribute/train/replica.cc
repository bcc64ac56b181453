// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/replica.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "distribute/train/replica_contributor.h"
#include "distribute/weights/weight_store.h"
#include "distribute/workers/plan_agreement.h"

namespace tutti::impl::distribute {

using backend::RunScalar;
using base::Result;
using base::Status;
using collective::Operation;

Replica::Replica(const TrainProgramSet &programs, const StatePlan &plan, backend::DeviceRef device, size_t place)
    : programs_(programs),
      plan_(plan),
      device_(std::move(device)),
      place_(place),
      kept_keys_(static_cast<size_t>(programs.accumulation)),
      scale_entry_(plan.find(loss_scale_entry)) {}

// The group may still be copying from and to the contributors' memory.
Replica::~Replica() { drop_group(); }

Result<std::unique_ptr<Replica>> Replica::create(const TrainProgramSet &programs, const StatePlan &plan,
                                                 ExecutableCache &executables, backend::DeviceRef device, size_t place,
                                                 const ArenaPointers &arenas, int32_t parts, size_t cache_capacity) {
  std::unique_ptr<Replica> replica(new Replica(programs, plan, std::move(device), place));
  TUTTI_ASSIGN(replica->stream_, replica->device_->create_stream());
  TUTTI_TRY(replica->reports_.open(plan, *replica->device_, programs.steps_in_flight));
  for (int32_t p = 0; p < parts; ++p)
    TUTTI_TRY(replica->add_contributor(executables, arenas, cache_capacity));
  replica->plan_collectives();
  return replica;
}

Status Replica::add_contributor(ExecutableCache &executables, ArenaPointers arenas, size_t cache_capacity) {
  auto contributor = std::make_unique<Contributor>();
  contributor->arguments.resize(static_cast<size_t>(reports_.in_flight() * programs_.accumulation));
  if (programs_.keeps_outputs) contributor->outputs = std::make_unique<KeptOutputs>(programs_.accumulation);
  const int64_t bytes_of_partials = std::max<int64_t>(plan_.arena_bytes(Arena::partials), 64);
  TUTTI_ASSIGN(contributor->partials, programs_.contributors > 1 ? device_->allocate_shared(bytes_of_partials)
                                                                 : device_->allocate(bytes_of_partials));
  TUTTI_TRY(contributor->partials.fill_zero(0, bytes_of_partials));
  TUTTI_ASSIGN(contributor->report, allocate_zeros(*device_, plan_.arena_bytes(Arena::report)));
  if (const int64_t bytes = plan_.arena_bytes(Arena::accumulated); bytes > 0) {
    TUTTI_ASSIGN(contributor->accumulated, allocate_zeros(*device_, bytes));
    arenas[static_cast<size_t>(Arena::accumulated)] = contributor->accumulated.device_pointer();
  }
  arenas[static_cast<size_t>(Arena::partials)] = contributor->partials.device_pointer();
  arenas[static_cast<size_t>(Arena::report)] = contributor->report.device_pointer();
  if (workspaces_.empty() || programs_.parts_alternate)
    workspaces_.push_back(std::make_unique<Workspace>(device_, stream_));
  contributor->accumulate_programs =
      std::make_unique<ProgramCache>(executables, device_, *workspaces_.back(), cache_capacity);
  contributor->accumulate_programs->set_arenas(arenas);
  contributor->finish_programs = std::make_unique<ProgramCache>(executables, device_, *workspaces_.back(),
                                                                programs_.factors.empty() ? 1 : cache_capacity);
  contributor->finish_programs->set_arenas(arenas);
  contributors_.push_back(std::move(contributor));
  return Status();
}

void Replica::plan_collectives() {
  const std::vector<Bucket> &buckets = plan_.buckets();
  bucket_buffers_.resize(buckets.size());
  for (size_t b = 0; b < buckets.size(); ++b) {
    if (programs_.sums_in_finish && buckets[b].sliced) continue;
    for (const auto &contributor : contributors_) {
      auto *base = static_cast<std::byte *>(contributor->partials.device_pointer());
      bucket_buffers_[b].push_back(base + buckets[b].offset);
    }
    Operation operation;
    operation.kind = buckets[b].sliced ? collective::Kind::reduce_scatter : collective::Kind::all_reduce;
    operation.dtype = buckets[b].dtype;
    operation.buffers = bucket_buffers_[b].data();
    operation.count = buckets[b].elements;
    operation.slices = plan_.slices(b).data();
    operation.slice_count = static_cast<int32_t>(plan_.slices(b).size());
    operation.label = buckets[b].sliced ? "gradient bucket" : "sums";
    operation.stream = device_stream();
    bucket_operations_.push_back(operation);
  }
  if (bucket_operations_.empty() && programs_.sums_in_finish) {
    // Finish reads what all have written.
    Operation barrier;
    barrier.kind = collective::Kind::barrier;
    barrier.label = "gradients";
    bucket_operations_.push_back(barrier);
  }
  external_buffers_.resize(contributors_.size());
  rows_ = StepRows(programs_.workers, programs_.divides_input, programs_.accumulation);
  words_per_part_ = word_count + rows_.word_count();
  words_.resize(contributors_.size() * static_cast<size_t>(words_per_part_));
  for (size_t c = 0; c < contributors_.size(); ++c)
    word_pointers_.push_back(&words_[c * static_cast<size_t>(words_per_part_)]);
}

std::vector<void *> Replica::partials() const {
  std::vector<void *> pointers;
  for (const auto &contributor : contributors_)
    pointers.push_back(contributor->partials.device_pointer());
  return pointers;
}

void Replica::see_partials(std::span<void *const> partials) {
  for (const auto &contributor : contributors_) {
    ArenaPointers arenas = contributor->finish_programs->arenas();
    std::copy(partials.begin(), partials.end(), arenas.begin() + arena_count);
    contributor->finish_programs->set_arenas(arenas);
  }
}

void Replica::set_group(std::unique_ptr<collective::Group> group) {
  drop_group();
  group_ = std::move(group);
  for (size_t p = 0; p < contributors_.size(); ++p) {
    contributors_[p]->index = group_->rank() * group_->parts() + static_cast<int32_t>(p);
  }
  next_bucket_ = 0;
  plan_agreed_ = false;
  recorded_.open(check_recording());
  const int64_t bytes = plan_.arena_bytes(Arena::partials);
  if (device_stream() == nullptr || bytes == 0) return;
  for (const auto &contributor : contributors_)
    group_->register_memory(contributor->partials.device_pointer(), bytes);
}

Status Replica::read_partials(int32_t part, int64_t offset, int64_t bytes, void *destination) const {
  return contributors_[static_cast<size_t>(part)]->partials.read(offset, destination, bytes);
}

int64_t Replica::programs_built() const {
  int64_t built = 0;
  for (const auto &contributor : contributors_) {
    built += contributor->accumulate_programs->built() + contributor->finish_programs->built();
  }
  return built;
}

backend::Buffer &Replica::report() { return contributors_.front()->report; }

Status Replica::begin_run(const RunCommand &command) {
  step_ = command.step;
  batch_counter_ = command.batch_counter;
  begun_ = applied_ = 0;
  for (const auto &contributor : contributors_) {
    for (Contributor::Arguments &arguments : contributor->arguments)
      arguments.scalars.set(RunScalar::seed, command.seed);
    if (programs_.steps_in_flight > 1) TUTTI_TRY(reports_.begin(contributor->report));
  }
  if (!plan_agreed_) TUTTI_TRY(check_same_plan(*group_, plan_.hash()));
  plan_agreed_ = true;
  return Status();
}

Status Replica::set_traced(bool traced) {
  TUTTI_TRY(stream_.synchronize());
  drop_recordings();  // of programs that go
  is_traced_ = traced;
  if (traced)
    tracer()->name_row(device_stream() == nullptr ? device_->name()
                                                  : base::concat("replica ", place_, " on ", device_->name()));
  for (const auto &contributor : contributors_) {
    contributor->accumulate_programs->set_traced(traced);
    contributor->finish_programs->set_traced(traced);
    contributor->finish = nullptr;
  }
  last_binding_ = -1;
  return Status();
}

Status Replica::write_loss_scale(int64_t scale) {
  if (scale_entry_ == nullptr || scale == written_scale_) return Status();
  const auto value = static_cast<float>(scale);
  for (const auto &contributor : contributors_)
    TUTTI_TRY(contributor->report.write(scale_entry_->offset, &value, sizeof(value)));
  written_scale_ = scale;
  return Status();
}

Status Replica::run_step(const StepInput &input, StepFeeder &feeder, const LossScaleState &scale) {
  TUTTI_TRY(write_loss_scale(scale.scale));
  iteration_ = step_ + 1 - scale.skipped_steps;
  next_bucket_ = 0;
  last_ticket_ = -1;
  launched_ = nullptr;
  has_recorded_ = false;
  kept_batches_ = rows_.count();
  for (int32_t m = 0; m < rows_.count(); ++m)
    TUTTI_TRY(run_micro_batch(input, m, feeder));
  if (is_launched_at_once()) TUTTI_TRY(launch());
  if (launched_ != nullptr) return settle_launched();
  TUTTI_TRY(reduce_buckets(feeder));
  return finish(input);
}

Status Replica::point_to_rows(const StepInput &input, int32_t m, DeviceInputs *copies) {
  const data::Element &batch = input.batches[static_cast<size_t>(m)];
  const bool has_batch = m < input.count;
  if (copies != nullptr && has_batch) TUTTI_TRY(copies->wait(place_, input.slot, m, stream_));
  for (size_t p = 0; p < contributors_.size(); ++p) {
    Contributor &contributor = *contributors_[p];
    std::vector<const void *> &inputs = contributor.arguments[arguments_of(m)].inputs;
    inputs.resize(contributor.components.size());
    // Of no rows, nothing is read.
    if (!has_batch) std::ranges::fill(inputs, contributor.partials.device_pointer());
    for (size_t i = 0; has_batch && i < contributor.components.size(); ++i) {
      const int32_t component = contributor.components[i];
      inputs[i] = copies != nullptr ? copies->rows(place_, input.slot, m, p, component)
                                    : InputBinding::row_pointer(batch, component, contributor.rows.begin);
    }
  }
  return Status();
}

Status Replica::run_micro_batch(const StepInput &input, int32_t m, const StepFeeder &feeder) {
  const data::Element *const batch = m < input.count ? &input.batches[static_cast<size_t>(m)] : nullptr;
  const int64_t rows = rows_.own(m), first = rows_.first(m);
  micro_batch_ = m;
  for (const auto &contributor : contributors_) {
    contributor->rows = rows_.share(m, contributor->index, programs_.contributors);
    contributor->arguments[arguments_of(m)]
        .scalars.set(RunScalar::step, step_)
        .set(RunScalar::iteration, iteration_)
        .set(RunScalar::batch_counter, batch_counter_ + m)
        .set(RunScalar::row_offset, first + contributor->rows.begin)
        .set(RunScalar::local_rows, contributor->rows.rows())
        .set(RunScalar::step_rows, rows_.step_rows())
        .set(RunScalar::first_flag, contributor->index == 0 && m == 0 ? 1 : 0);
  }
  TUTTI_TRY(prepare_all(batch, rows, feeder.binding(), programs_.accumulate_position(m, rows_.count())));
  TUTTI_TRY(point_to_rows(input, m, feeder.device_inputs()));
  for (const auto &contributor : contributors_)
    point_to_results(*contributor, m);
  if (programs_.rounds_at_last && rows_.count() == 1) TUTTI_TRY(clear_accumulated());
  if (is_launched_at_once()) return Status();
  recorded_.note_pieces();
  const Status status = run_programs(false, m + 1 == rows_.count());
  return rows_.count() == 1 ? status : status.with_detail("micro_batch", std::to_string(m + 1));
}

/// The last micro-batch adds to what others left, and there are no others.
Status Replica::clear_accumulated() {
  for (const auto &contributor : contributors_)
    TUTTI_TRY(contributor->accumulated.fill_zero(0, contributor->accumulated.size_bytes(), &stream_));
  return Status();
}

Status Replica::prepare_all(const data::Element *batch, int64_t rows, const InputBinding &binding, size_t position) {
  if (batch == nullptr) clear_key(binding.symbols().size(), batch_key_);
  if (batch != nullptr) binding.fill_key(*batch, rows, batch_key_);
  const bool is_new = batch_key_ != last_batch_key_ || binding.number() != last_binding_ || !has_room_for_outputs();
  if (is_new) TUTTI_TRY(settle_building());
  for (const auto &contributor : contributors_)
    TUTTI_TRY(find_programs(*contributor, batch, binding));
  if (is_new) TUTTI_TRY(find_finish_programs(rows));
  for (const auto &contributor : contributors_)
    TUTTI_TRY(bind_programs(*contributor, binding, position));
  if (!is_new) return Status();
  if (programs_.keeps_outputs) TUTTI_TRY(reserve_outputs());
  if (factors_ != nullptr) {
    TUTTI_TRY(factors_->reserve(rows, *device_));
    for (const auto &contributor : contributors_)
      point_to_factors(*contributor, binding);
  }
  TUTTI_TRY(settle_building());
  last_batch_key_ = batch_key_;
  last_binding_ = binding.number();
  return Status();
}

Status Replica::find_programs(Contributor &contributor, const data::Element *batch, const InputBinding &binding) {
  if (batch == nullptr) clear_key(binding.symbols().size(), contributor.key);
  if (batch != nullptr) binding.fill_key(*batch, contributor.rows.rows(), contributor.key);
  if (contributor.binding == binding.number() && contributor.accumulate_programs->is_current(contributor.key))
    return Status();
  std::array<const GraphSource *, 3> sources{};
  const size_t variants = programs_.accumulate.size();
  for (size_t i = 0; i < variants; ++i)
    sources[i] = &programs_.accumulate[i];
  const auto bindings = [&] { return binding.bindings(contributor.key); };
  TUTTI_TRY(stream_.synchronize());  // the programs of another shape, or their memory, may go
  return contributor.accumulate_programs->find(std::span(sources).first(variants), contributor.key, bindings);
}

Status Replica::find_finish_programs(int64_t rows) {
  for (const auto &contributor : contributors_) {
    if (!finishes(*contributor)) continue;
    const size_t slice = programs_.finish.size() > 1 ? static_cast<size_t>(contributor->index) : 0;
    ShapeKey &key = contributor->finish_key;
    key = programs_.finish_keys[slice];
    if (factors_ != nullptr) key.push_back(rows);
    if (contributor->finish_programs->is_current(key)) continue;
    const auto bindings = [&] {
      graph::SymbolBindings values = programs_.finish_bindings[slice];
      if (factors_ != nullptr) values.emplace(graph::kBatchSymbol, rows);
      return values;
    };
    const GraphSource *source = &programs_.finish[slice];
    TUTTI_TRY(stream_.synchronize());
    TUTTI_TRY(contributor->finish_programs->find({&source, 1}, key, bindings));
  }
  return Status();
}

Status Replica::bind_programs(Contributor &contributor, const InputBinding &binding, size_t position) {
  TUTTI_TRY(
      contributor.accumulate_programs->bind(std::span(contributor.accumulate).first(programs_.accumulate.size())));
  contributor.current = contributor.accumulate[position];
  if (finishes(contributor)) TUTTI_TRY(contributor.finish_programs->bind({&contributor.finish, 1}));
  if (contributor.binding == binding.number()) return Status();
  TUTTI_ASSIGN(contributor.components, binding.components_of(contributor.current->description()));
  contributor.binding = binding.number();
  return Status();
}

Status Replica::run_programs(bool finishing, bool last) {
  const std::span<const std::unique_ptr<Contributor>> parts(contributors_);
  if (programs_.parts_alternate) return run_segments(parts, finishing, last);
  // A bucket is complete when the last of them has come to its mark.
  for (size_t p = 0; p < parts.size(); ++p)
    TUTTI_TRY(run_segments(parts.subspan(p, 1), finishing, last && p + 1 == parts.size()));
  return Status();
}

Status Replica::run_segments(std::span<const std::unique_ptr<Contributor>> parts, bool finishing, bool last) {
  const auto program_of = [&](Contributor &contributor) {
    return finishing ? contributor.finish : contributor.current;
  };
  if (program_of(*parts.front()) == nullptr) return Status();
  const int32_t segments = program_of(*parts.front())->description().segment_count();
  for (int32_t segment = 0; segment < segments; ++segment) {
    for (const auto &contributor : parts) {
      BoundProgram *program = program_of(*contributor);
      if (program == nullptr) continue;
      const Contributor::Arguments &with = contributor->arguments[arguments_of(micro_batch_)];
      const backend::RunArguments arguments{finishing ? contributor->finish_inputs.data() : with.inputs.data(),
                                            finishing ? nullptr : with.results.data(), with.scalars.data()};
      TUTTI_TRY(program->program.run(segment, arguments, stream_));
    }
    if (segment + 1 < segments) TUTTI_TRY(run_external(segment, finishing, last));
  }
  return Status();
}

Status Replica::run_external(int32_t position, bool finishing, bool last) {
  const auto external_of = [&](Contributor &contributor) -> const BoundExternal & {
    return (finishing ? contributor.finish : contributor.current)->externals[static_cast<size_t>(position)];
  };
  const BoundExternal &external = external_of(*contributors_.front());
  if (external.bucket >= 0) return last ? begin_buckets(std::min(external.bucket + 1, early_buckets())) : Status();
  for (size_t c = 0; c < contributors_.size(); ++c)
    external_buffers_[c] = external_of(*contributors_[c]).pointer;
  Operation operation;
  operation.kind = collective::Kind::all_reduce;
  operation.reduction = external.reduction;
  operation.dtype = external.dtype;
  operation.buffers = external_buffers_.data();
  operation.count = external.elements;
  operation.label = external.label.c_str();
  operation.stream = device_stream();
  if (operation.stream == nullptr) TUTTI_TRY(stream_.synchronize());
  TUTTI_TRY(go_on_recording());
  return wait_for_group([&]() -> Status {
    TUTTI_TRY(group_->run(operation));
    return finishing ? group_->settle() : Status();  // updates come next
  });
}

Status Replica::begin_buckets(int32_t end) {
  if (programs_.contributors == 1 || next_bucket_ >= end) return Status();
  if (device_stream() == nullptr) TUTTI_TRY(stream_.synchronize());
  for (; next_bucket_ < end; ++next_bucket_) {
    TUTTI_TRY(go_on_recording());
    TUTTI_ASSIGN(last_ticket_, group_->begin(bucket_operations_[static_cast<size_t>(next_bucket_)]));
  }
  return Status();
}

Status Replica::reduce_buckets(StepFeeder &feeder) {
  return programs_.contributors == 1 ? finish_buckets(feeder) : wait_for_group([&] { return finish_buckets(feeder); });
}

Status Replica::finish_buckets(StepFeeder &feeder) {
  if (device_stream() != nullptr && !programs_.finish.empty() && !is_on_devices()) {
    // Only now it shows what was wrong with the data of this rank; nobody updates without its last operation.
    TUTTI_TRY(begin_buckets(early_buckets()));
    if (last_ticket_ >= 0) TUTTI_TRY(group_->wait(last_ticket_));
    TUTTI_TRY(group_->settle());  // the stream waits for other ranks, and only that wait has an end
    TUTTI_TRY(stream_.synchronize());
  }
  TUTTI_TRY(begin_buckets(static_cast<int32_t>(bucket_operations_.size())));
  if (last_ticket_ < 0) return Status();
  if (group_->would_wait(last_ticket_)) feeder.read_ahead();
  TUTTI_TRY(group_->wait(last_ticket_));
  return is_on_devices() ? Status() : group_->settle();
}

void Replica::point_to_factors(Contributor &contributor, const InputBinding &binding) {
  contributor.results.clear();
  for (const backend::PortDescription &result : contributor.current->description().outputs) {
    const int32_t factor = factors_->find(result.name);
    contributor.results.push_back(factor >= 0 ? factors_->row(factor, contributor.rows.begin) : nullptr);
  }
  contributor.finish_inputs.clear();
  contributor.finish_components.clear();
  if (!finishes(contributor)) return;
  for (const backend::PortDescription &input : contributor.finish->description().inputs) {
    const int32_t factor = factors_->find(input.name);
    contributor.finish_inputs.push_back(factor >= 0 ? factors_->row(factor, 0) : nullptr);
    contributor.finish_components.push_back(factor >= 0 ? -1 : binding.component_of(input.name));
  }
}

bool Replica::has_room_for_outputs() const {
  return !programs_.keeps_outputs || kept_keys_[static_cast<size_t>(micro_batch_)] == batch_key_;
}

Status Replica::reserve_outputs() {
  TUTTI_TRY(stream_.synchronize());
  for (const auto &contributor : contributors_)
    TUTTI_TRY(contributor->outputs->reserve(micro_batch_, contributor->current->executable, *device_));
  kept_keys_[static_cast<size_t>(micro_batch_)] = batch_key_;
  return Status();
}

void Replica::point_to_results(Contributor &contributor, int32_t m) {
  const size_t count = contributor.current->description().outputs.size();
  std::vector<void *> &results = contributor.arguments[arguments_of(m)].results;
  results.resize(count);
  for (size_t i = 0; i < count; ++i) {
    void *const factor = i < contributor.results.size() ? contributor.results[i] : nullptr;
    results[i] = factor != nullptr ? factor : contributor.outputs->place(m, i);
  }
  if (contributor.outputs) contributor.outputs->ran(m, contributor.current->executable);
}

std::vector<const KeptOutputs *> Replica::kept_outputs() const {
  std::vector<const KeptOutputs *> outputs;
  for (const auto &contributor : contributors_)
    outputs.push_back(contributor->outputs.get());
  return outputs;
}

void Replica::point_to_features(const data::Element &batch) {
  for (const auto &contributor : contributors_) {
    for (size_t i = 0; i < contributor->finish_components.size(); ++i) {
      const int32_t component = contributor->finish_components[i];
      if (component >= 0) contributor->finish_inputs[i] = InputBinding::row_pointer(batch, component, 0);
    }
  }
}

Status Replica::finish(const StepInput &input) {
  if (programs_.finish.empty()) return Status();
  if (factors_ != nullptr) point_to_features(input.batches[0]);
  return run_programs(true, true);
}

Result<double> Replica::report_value(const backend::StateEntry &entry) const {
  std::array<std::byte, 8> bytes{};
  TUTTI_TRY(contributors_.front()->report.read(entry.offset, bytes.data(), entry.storage_bytes));
  return number_at(bytes.data(), entry.dtype);
}

}  // namespace tutti::impl::distribute
