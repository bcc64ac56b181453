// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/batch_programs.h"

#include <algorithm>
#include <array>
#include <span>

namespace tutti::impl::distribute {

using base::Status;

Status BatchPrograms::prepare(const MicroBatch &micro_batch, const StepRows &rows, const InputBinding &binding) {
  const data::Element *const batch = micro_batch.batch;
  if (batch == nullptr) clear_key(binding.symbols().size(), batch_key_);
  if (batch != nullptr) binding.fill_key(*batch, micro_batch.rows, batch_key_);
  if (micro_batch.shows_rows != shows_rows_) std::ranges::fill(kept_keys_, ShapeKey());
  const bool is_new = batch_key_ != last_batch_key_ || binding.number() != last_binding_ ||
                      micro_batch.shows_rows != shows_rows_ || !has_room_for_rows(micro_batch) ||
                      (factors_ != nullptr && rows.of_workers() != last_rows_);
  if (is_new) TUTTI_TRY(rank_.settle_building());
  for (Contributor &contributor : contributors_.all())
    TUTTI_TRY(find_programs(contributor, micro_batch, binding));
  if (is_new && !micro_batch.is_whole_step) TUTTI_TRY(find_finish_programs(rows, binding));
  for (Contributor &contributor : contributors_.all())
    TUTTI_TRY(bind_programs(contributor, micro_batch, binding));
  if (!is_new) return Status();
  if (gives_rows(micro_batch)) TUTTI_TRY(reserve_outputs(micro_batch.number));
  if (factors_ != nullptr) TUTTI_TRY(reserve_factors(rows, binding));
  TUTTI_TRY(rank_.settle_building());
  last_batch_key_ = batch_key_;
  last_binding_ = binding.number();
  shows_rows_ = micro_batch.shows_rows;
  if (factors_ != nullptr) last_rows_ = rows.of_workers();
  return Status();
}

Status BatchPrograms::find_programs(Contributor &contributor, const MicroBatch &micro_batch,
                                    const InputBinding &binding) {
  const data::Element *const batch = micro_batch.batch;
  if (batch == nullptr) clear_key(binding.symbols().size(), contributor.key);
  if (batch != nullptr) binding.fill_key(*batch, contributor.rows.rows(), contributor.key);
  const std::span<const GraphSource> variants = variants_of(micro_batch);
  if (contributor.variant != variants.data()) contributor.binding = -1;
  contributor.variant = variants.data();
  if (contributor.binding == binding.number() && contributor.accumulate_programs->is_current(contributor.key))
    return Status();
  std::array<const GraphSource *, 3> sources{};
  for (size_t i = 0; i < variants.size(); ++i)
    sources[i] = &variants[i];
  const auto bindings = [&] { return binding.bindings(contributor.key); };
  TUTTI_TRY(rank_.stream().synchronize());  // the programs of another shape, or their memory, may go
  return contributor.accumulate_programs->find(std::span(sources).first(variants.size()), contributor.key, bindings);
}

std::span<const GraphSource> BatchPrograms::variants_of(const MicroBatch &micro_batch) const {
  const TrainProgramSet &programs = rank_.programs();
  if (micro_batch.is_whole_step) return std::span(&*programs.spmd, 1);
  if (micro_batch.shows_rows) return programs.showing;
  return programs.accumulate;
}

Status BatchPrograms::find_finish_programs(const StepRows &rows, const InputBinding &binding) {
  const TrainProgramSet &programs = rank_.programs();
  const int64_t looking_up = factors_ == nullptr ? 0 : FactorMemory::looking_up(rows, programs.contributors);
  for (Contributor &contributor : contributors_.all()) {
    if (!contributors_.finishes(contributor)) continue;
    const size_t slice = programs.finish.size() > 1 ? static_cast<size_t>(contributor.index) : 0;
    ShapeKey &key = contributor.finish_key;
    key = programs.finish_keys[slice];
    if (factors_ != nullptr) {
      key.insert(key.end(), {rows.step_rows(), looking_up});
      key.insert(key.end(), batch_key_.begin() + 1, batch_key_.end());
    }
    if (contributor.finish_programs->is_current(key)) continue;
    const auto bindings = [&] {
      graph::SymbolBindings values = programs.finish_bindings[slice];
      if (factors_ == nullptr) return values;
      values.merge(binding.bindings(batch_key_));
      values.insert_or_assign(std::string(graph::kBatchSymbol), rows.step_rows());
      values.insert_or_assign(std::string(kLookingUpSymbol), looking_up);
      return values;
    };
    const GraphSource *source = &programs.finish[slice];
    TUTTI_TRY(rank_.stream().synchronize());
    TUTTI_TRY(contributor.finish_programs->find({&source, 1}, key, bindings));
  }
  return Status();
}

Status BatchPrograms::bind_programs(Contributor &contributor, const MicroBatch &micro_batch,
                                    const InputBinding &binding) {
  const size_t variants = variants_of(micro_batch).size();
  TUTTI_TRY(contributor.accumulate_programs->bind(std::span(contributor.accumulate).first(variants)));
  contributor.current = contributor.accumulate[micro_batch.position];
  if (contributors_.finishes(contributor) && !micro_batch.is_whole_step)
    TUTTI_TRY(contributor.finish_programs->bind({&contributor.finish, 1}));
  if (contributor.binding == binding.number()) return Status();
  TUTTI_ASSIGN(contributor.components, binding.components_of(contributor.current->description()));
  contributor.binding = binding.number();
  return Status();
}

Status BatchPrograms::reserve_outputs(int32_t m) {
  TUTTI_TRY(rank_.stream().synchronize());
  for (Contributor &contributor : contributors_.all())
    TUTTI_TRY(contributor.outputs->reserve(m, contributor.current->executable, *rank_.device()));
  kept_keys_[static_cast<size_t>(m)] = batch_key_;
  return Status();
}

Status BatchPrograms::reserve_factors(const StepRows &rows, const InputBinding &binding) {
  TUTTI_TRY(rank_.stream().synchronize());  // steps before may use what becomes too small
  TUTTI_TRY(factors_->reserve(rows, binding.bindings(batch_key_), *rank_.device()));
  for (Contributor &contributor : contributors_.all())
    point_to_factors(contributor, binding);
  return Status();
}

void BatchPrograms::point_to_factors(Contributor &contributor, const InputBinding &binding) {
  contributor.results.clear();
  for (const backend::PortDescription &result : contributor.current->description().outputs) {
    contributor.results.push_back(factors_->find(result.name));
  }
  contributor.finish_inputs.clear();
  contributor.finish_components.clear();
  if (!contributors_.finishes(contributor)) return;
  for (const backend::PortDescription &input : contributor.finish->description().inputs) {
    const int32_t factor = factors_->find(input.name);
    contributor.finish_inputs.push_back(factor >= 0 ? factors_->rows(factor) : nullptr);
    contributor.finish_components.push_back(factor >= 0 ? -1 : binding.component_of(input.name));
  }
}

Status BatchPrograms::point_to_rows(const StepInput &input, int32_t m, DeviceInputs *copies) {
  const size_t place = rank_.place();
  const data::Element &batch = input.batches[static_cast<size_t>(m)];
  const bool has_batch = m < input.count;
  if (copies != nullptr && has_batch) TUTTI_TRY(copies->wait(place, input.slot, m, rank_.stream()));
  for (size_t p = 0; p < contributors_.size(); ++p) {
    Contributor &contributor = contributors_.all()[p];
    std::vector<const void *> &inputs = contributors_.arguments(contributor, m).inputs;
    inputs.resize(contributor.components.size());
    // Of no rows, nothing is read.
    if (!has_batch) std::ranges::fill(inputs, contributor.partials.device_pointer());
    for (size_t i = 0; has_batch && i < contributor.components.size(); ++i) {
      const int32_t component = contributor.components[i];
      inputs[i] = copies != nullptr ? copies->rows(place, input.slot, m, p, component)
                                    : InputBinding::row_pointer(batch, component, contributor.rows.begin);
    }
  }
  return Status();
}

void BatchPrograms::point_to_results(int32_t m) {
  for (Contributor &contributor : contributors_.all())
    point_to_results(contributor, m);
}

void BatchPrograms::point_to_results(Contributor &contributor, int32_t m) {
  const size_t count = contributor.current->description().outputs.size();
  std::vector<void *> &results = contributors_.arguments(contributor, m).results;
  results.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const int32_t factor = i < contributor.results.size() ? contributor.results[i] : -1;
    results[i] = factor >= 0 ? factors_->rows(factor, m, contributor.index) : contributor.outputs->place(m, i);
  }
  if (contributor.outputs) contributor.outputs->ran(m, contributor.current->executable);
}

void BatchPrograms::point_to_features(const data::Element &batch) {
  if (factors_ == nullptr) return;
  for (Contributor &contributor : contributors_.all()) {
    for (size_t i = 0; i < contributor.finish_components.size(); ++i) {
      const int32_t component = contributor.finish_components[i];
      if (component >= 0) contributor.finish_inputs[i] = InputBinding::row_pointer(batch, component, 0);
    }
  }
}

}  // namespace tutti::impl::distribute
