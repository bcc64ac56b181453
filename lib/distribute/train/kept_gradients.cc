// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/kept_gradients.h"

#include <vector>

#include "base/text.h"
#include "distribute/weights/initial_values.h"
#include "distribute/weights/weight_store.h"
#include "tensor/half.h"

namespace tutti::impl::distribute {

using backend::StateEntry;
using base::Result;
using tensor::Tensor;

namespace {

/// The reduced values of an entry of partials, put together from the slices of all contributors.
Result<Tensor> gather_slices(const TrainSetup &setup, const backend::Backend &backend, ReplicaSet &replicas,
                             const StateEntry &entry, std::string_view variable) {
  const auto element = static_cast<int64_t>(tensor::size_bytes(entry.dtype));
  std::vector<std::byte> storage(static_cast<size_t>(entry.storage_bytes));
  const int32_t slices = setup.plan.slice_count();
  for (int32_t s = 0; s < slices; ++s) {
    const auto [begin, end] = setup.plan.slice_of(variable, s);
    const int64_t first = slices > 1 ? begin * element : 0;
    const int64_t last = slices > 1 ? end * element : entry.storage_bytes;
    const Replica &owner = replicas.replica(static_cast<size_t>(s / setup.parts));
    TUTTI_TRY(owner.read_partials(s % setup.parts, entry.offset + first, last - first, storage.data() + first));
  }
  StateEntry alone = entry;
  alone.offset = 0;
  return unpack_entry(backend, alone, storage.data());
}

/// total += factor * part. Gradients of f32 variables may be bf16.
void add_scaled(const Tensor &part, double factor, Tensor &total) {
  const auto add = [&]<typename T, typename Stored>(T, Stored) {
    for (int64_t i = 0; i < part.elements(); ++i)
      total.mutable_data_as<T>()[i] += static_cast<T>(factor) * static_cast<T>(part.data_as<Stored>()[i]);
  };
  if (part.dtype() == tensor::DType::f64) add(double(), double());
  if (part.dtype() == tensor::DType::f32) add(float(), float());
  if (part.dtype() == tensor::DType::bf16 && total.dtype() == tensor::DType::f32) add(float(), tensor::BFloat16());
}

/// What a set of gradients is multiplied with in the sum: its coefficient in the last step, or 1.
Result<double> coefficient_of(const TrainSetup &setup, ReplicaSet &replicas, const std::string &set) {
  const StateEntry *const coefficient = setup.plan.find("report/coefficient/" + set);
  if (coefficient == nullptr) return 1.0;
  return replicas.replica(0).report_value(*coefficient);
}

}  // namespace

Result<Tensor> gather_gradient(const TrainSetup &setup, const backend::Backend &backend, ReplicaSet &replicas,
                               const StateEntry &weight, std::string_view variable) {
  TUTTI_ASSIGN(Tensor total, filled(weight.dtype, weight.dims, 0));
  double scale = 1;
  if (const StateEntry *const entry = setup.plan.find(loss_scale_entry)) {
    TUTTI_ASSIGN(const double used, replicas.replica(0).report_value(*entry));
    scale = 1 / used;
  }
  bool found = false;
  for (int32_t set = 0; set < setup.graphs.gradient_sets; ++set) {
    const std::string number = std::to_string(set);
    const StateEntry *const entry = setup.plan.find(base::concat("gradient/", number, "/", variable));
    if (entry == nullptr) continue;
    TUTTI_ASSIGN(const double coefficient, coefficient_of(setup, replicas, number));
    TUTTI_ASSIGN(const Tensor part, gather_slices(setup, backend, replicas, *entry, variable));
    add_scaled(part, scale * coefficient, total);
    found = true;
  }
  if (!found)
    return base::not_found("variable '", variable,
                           "' has no gradient: it is not trained, or the loss does not depend on it");
  return total;
}

}  // namespace tutti::impl::distribute
