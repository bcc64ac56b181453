// SPDX-License-Identifier: Apache-2.0
//
// Datasets that are distributed by a strategy, and the pieces of their elements.
#include "capi/dataset_c.h"
#include "capi/estimator_c.h"
#include "capi/guard.h"
#include "capi/strategy_c.h"
#include "capi/tensor_c.h"
#include "distribute/input/input_binding.h"
#include "estimator/dataset_parts.h"

namespace tutti::impl::capi {
namespace {

/// The rows of an element that a replica of this process gets. Workers that read the same batches have their places
/// among all replicas; one whose batches are its own, or parts, shares them out alone.
distribute::RowRange rows_of_replica(const distribute::Strategy &strategy, int64_t rows, int32_t replica) {
  if (strategy.input_pipeline().count > 1) return distribute::share_of_rows(rows, replica, strategy.replica_count());
  const int32_t first = strategy.workers().index * strategy.replica_count();
  return distribute::share_of_rows(rows, first + replica, strategy.replicas_in_all());
}

Status make_pieces(IteratorObject &iterator) {
  const distribute::Strategy &strategy = *iterator.strategy;
  std::vector<std::unique_ptr<LentHandle>> pieces;
  for (int32_t replica = 0; replica < strategy.replica_count(); ++replica) {
    for (const tensor::Tensor &component : iterator.element.components) {
      const distribute::RowRange rows = rows_of_replica(strategy, component.rows(), replica);
      TUTTI_ASSIGN(tensor::Tensor piece, component.slice_rows(rows.begin, rows.end));
      pieces.push_back(std::make_unique<LentHandle>());
      TUTTI_TRY(pieces.back()->set(base::make_ref<TensorObject>(std::move(piece), false), tensor_handles));
    }
  }
  iterator.pieces = std::move(pieces);
  return Status();
}

}  // namespace

Status check_distributed_by(const DatasetObject &dataset, const distribute::Strategy &strategy,
                            std::string_view argument) {
  if (dataset.strategy() == nullptr || dataset.strategy().get() == &strategy) return Status();
  if (data::find_part(*dataset.dataset()) != nullptr) return Status();
  return base::invalid_argument("argument '", argument, "' is distributed by another strategy");
}

}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

int32_t tutti_strategy_distribute_dataset(const tutti_strategy *strategy, const tutti_dataset *dataset,
                                          tutti_dataset **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_ASSIGN(const Ref<StrategyObject> by, find(strategy, strategy_handles, "strategy"));
    TUTTI_ASSIGN(const Ref<DatasetObject> whole, find(dataset, dataset_handles, "dataset"));
    TUTTI_TRY(check_same_context(*by->core(), *whole->core(), "dataset"));
    if (!whole->dataset()->spec().is_batched())
      return base::invalid_argument(
          "argument 'dataset' has no batches, whose rows are what replicas share: call batch first");
    TUTTI_TRY(check_distributed_by(*whole, *by->strategy(), "dataset"));
    TUTTI_ASSIGN(data::DatasetRef part, estimator::part_of(whole->dataset(), *by->strategy()));
    if (part != whole->dataset()) by->core()->logger->info(estimator::describe_part(*part->part(), *by->strategy()));
    return emit(base::make_ref<DatasetObject>(whole->core(), std::move(part), by->strategy()), dataset_handles, out);
  });
}

tutti_tensor *tutti_iterator_get_piece(tutti_iterator *iterator, int64_t replica, int64_t index) {
  return guard_value<tutti_tensor *>(nullptr, [&]() -> tutti_tensor * {
    const Ref<IteratorObject> object = peek_shared(iterator, iterator_handles);
    if (!object || !object->has_element || object->strategy == nullptr) return nullptr;
    const Result<SoleUse> use = sole_use(object->busy(), "iterator");
    if (!use.ok()) return nullptr;
    const auto components = static_cast<int64_t>(object->components.size());
    if (replica < 0 || replica >= object->strategy->replica_count() || index < 0 || index >= components) return nullptr;
    if (object->pieces.empty() && !make_pieces(*object).ok()) return nullptr;
    return static_cast<tutti_tensor *>(object->pieces[static_cast<size_t>(replica * components + index)]->get());
  });
}
