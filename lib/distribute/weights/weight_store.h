// SPDX-License-Identifier: Apache-2.0
//
// State on devices: the arenas of a plan, and access to entries by name in canonical layout. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_WEIGHTS_WEIGHT_STORE_H_
#define TUTTI_DISTRIBUTE_WEIGHTS_WEIGHT_STORE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "checkpoint/weight_version.h"
#include "distribute/plan/state_plan.h"
#include "graph/model.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

/// A buffer of zeros of `bytes`, rounded up so that it is never empty.
base::Result<backend::Buffer> allocate_zeros(backend::Device &device, int64_t bytes);

/// Reads an entry out of an arena in host memory into a canonical tensor.
base::Result<tensor::Tensor> unpack_entry(const backend::Backend &backend, const backend::StateEntry &entry,
                                          const void *arena);
/// The entry's storage made from a canonical tensor, whose dtype and dims must be the entry's.
base::Result<std::vector<std::byte>> pack_entry(const backend::Backend &backend, const backend::StateEntry &entry,
                                                const tensor::Tensor &value);

/// Weights and slots: a copy per device, or one that all of them use; or slots on the first device alone. Threads: one
/// at a time.
class WeightStore {
 public:
  enum class Slots { with_each_copy, with_the_first };

  /// The weights alone, as several stores may have them whose plans lay them out alike.
  using Weights = std::shared_ptr<std::vector<backend::Buffer>>;

  /// `devices`: one for each copy. `weights`: those of another store on the same devices; null: memory of its own.
  static base::Result<WeightStore> create(const StatePlan &plan, std::vector<backend::DeviceRef> devices,
                                          Slots slots = Slots::with_each_copy, Weights weights = nullptr);

  size_t copies() const { return weights_->size(); }
  void *weights(size_t copy) const { return (*weights_)[copy].device_pointer(); }
  backend::Buffer &weight_buffer(size_t copy) { return (*weights_)[copy]; }
  const Weights &all_weights() const { return weights_; }
  /// Null for a copy without slots.
  void *slots(size_t copy) const { return copy < slots_.size() ? slots_[copy].device_pointer() : nullptr; }
  void *host(size_t copy) const { return host_[copy].device_pointer(); }

  /// Entries of the arenas weights, slots and host.
  base::Result<tensor::Tensor> read(const backend::StateEntry &entry) const;
  /// To every copy.
  base::Status write(const backend::StateEntry &entry, const tensor::Tensor &value);
  /// Bytes of an arena of the first copy, up to `end`; negative = all.
  base::Result<std::vector<std::byte>> snapshot(Arena arena, int64_t end = -1) const;
  base::Result<bool> copies_are_identical() const;
  /// Weights of copy `to`, and its slots if it has some, become those of copy `from`, by way of the host.
  base::Status copy(size_t from, size_t to);

 private:
  const backend::Buffer *find(Arena arena, size_t copy) const;
  size_t copies_of(Arena arena) const { return arena == Arena::slots ? slots_.size() : copies(); }

  const StatePlan *plan_ = nullptr;
  std::vector<backend::DeviceRef> devices_;
  Weights weights_;
  std::vector<backend::Buffer> slots_, host_;
};

/// A version that keeps the arenas' bytes and unpacks an entry when it is read. It has the moving averages in any case.
base::Result<base::Ref<checkpoint::WeightVersion>> make_packed_version(const StatePlan &plan,
                                                                       const backend::BackendRef &backend,
                                                                       const WeightStore &store, int64_t step,
                                                                       bool with_slots);
/// "dense/kernel/velocity" in scope "critic" is "dense/kernel/critic/velocity"; without a scope it stays as it is.
std::string scoped_slot(std::string_view slot, std::string_view scope);
/// A version of the slots alone, each under the name scoped_slot().
base::Result<base::Ref<checkpoint::WeightVersion>> make_packed_slots(const StatePlan &plan,
                                                                     const backend::BackendRef &backend,
                                                                     const WeightStore &store, std::string_view scope);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_WEIGHTS_WEIGHT_STORE_H_
