// SPDX-License-Identifier: Apache-2.0
//
// The state plan: where every piece of state of one (model, strategy, backend) lies. Fixed once, before any executable
// is compiled; every program of every shape obeys it, and all ranks have the same one (they compare its hash).
//
// Arenas, one base pointer each:
//   weights      weight/<variable>                        one copy per device, or one shared by the replicas of a
//                                                         process
//                derived/<number>                         what prediction computes of them once per version
//   slots        slot/<variable>/<slot>                   as weights; same layout and element order as their variable,
//                                                         or a value for each row or column of it
//   partials     gradient/<set>/<variable>, aggregate/<variable>, sum/<number>     one copy per contributor; as
//                contributor/<k>/... those of contributor k
//   report       report/loss, report/ok, report/metric/<name>, ...                 one copy per contributor
//   host         host/<name>                              scalars that the host may set between steps; one per device
//   accumulated  accumulated/<set>/<variable>             gradients of the micro-batches so far, where their sum is
//                                                         rounded before it is a partial; one copy per contributor
//   signal       signal/alive                             page-locked memory of the host, which devices read; one for
//                                                         all of them
//
// Partials lie in the order in which the backward pass finishes them, so a bucket (the unit of reduction) is a
// contiguous range. A slice is the part of each variable that one contributor reduces and updates when the weights are
// shared; it follows from the buckets, but where gradients are made of shared factors: there it is so many whole rows.
//
// Threads: immutable after make().
#ifndef TUTTI_DISTRIBUTE_PLAN_STATE_PLAN_H_
#define TUTTI_DISTRIBUTE_PLAN_STATE_PLAN_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backend/executable.h"
#include "backend/state_table.h"
#include "base/json.h"
#include "base/status.h"
#include "collective/group.h"
#include "tensor/dtype.h"

namespace tutti::impl::distribute {

enum class Arena : int32_t { weights = 0, slots, partials, report, host, accumulated, signal };
constexpr int32_t arena_count = 7;
/// So many contributors at most may see each other's partials, as arenas of their own behind the others.
constexpr int32_t seen_partials = 16;
/// Base pointers in the order of Arena, as programs are bound to them.
using ArenaPointers = std::array<void *, arena_count + seen_partials>;
/// "weights", ...
std::string_view name(Arena arena);

/// The name of an entry of the partials of one contributor, for programs that see those of all.
std::string of_contributor(int32_t contributor, std::string_view entry);

/// Where finish is guarded (StepGraphOptions): how many runs of the step found bad data, of all contributors and of
/// this one; and whether no operation of the group has been ended, or of several processes whether all have settled.
constexpr std::string_view fault_sum_entry = "sum/faults", fault_entry = "report/faults", alive_entry = "signal/alive";

/// A piece of state before it has a place.
struct StateSpec {
  std::string name;
  Arena arena = Arena::weights;
  tensor::DType dtype = tensor::DType::f32;
  std::vector<int64_t> dims;
  /// The variable whose layout and slices this entry has; a derived entry's own name; empty for scalars and sums.
  std::string variable;
  /// Of a weight: elements of the variable that stay in one slice, which then is row-major; 0 = any, and slices follow
  /// from the partials.
  int64_t slice_unit = 0;
  /// Of a weight: one slice has the whole variable.
  bool is_whole = false;
  /// Of a weight: row-major, whatever layout the backend proposes.
  bool is_row_major = false;
  /// Of a slot: it is no cut of its variable's shape, but belongs to the slice that has the whole variable.
  bool has_own_dims = false;
};

/// A contiguous range of the partials arena that is reduced by one operation.
struct Bucket {
  int64_t offset = 0;    ///< bytes
  int64_t elements = 0;  ///< padding between entries included
  tensor::DType dtype = tensor::DType::f32;
  bool sliced = true;                        ///< reduce_scatter into slices; else all_reduce
  int32_t first_entry = 0, entry_count = 0;  ///< positions in entries()
};

/// Elements of a bucket that belong to one contributor.
using collective::Slice;

struct PlanOptions {
  /// Contributors that slice the variables; 1 when each device updates everything itself.
  int32_t slices = 1;
  int64_t first_bucket_bytes = 1 << 20;
  int64_t bucket_bytes = 25 << 20;
  int64_t last_bucket_bytes = 2 << 20;
};

class StatePlan {
 public:
  /// `specs` in arena order as given; the partials in order of readiness. `layouts`: what the backend proposed for
  /// weight and derived entries.
  static base::Result<StatePlan> make(const std::vector<StateSpec> &specs,
                                      const std::vector<backend::LayoutProposal> &layouts, const PlanOptions &options);

  const std::vector<backend::StateEntry> &entries() const { return entries_; }
  /// Null when there is none.
  const backend::StateEntry *find(std::string_view name) const;
  int64_t arena_bytes(Arena arena) const { return arena_bytes_[static_cast<size_t>(arena)]; }
  const std::vector<Bucket> &buckets() const { return buckets_; }
  /// Slices of bucket i, ascending.
  const std::vector<Slice> &slices(size_t bucket) const { return bucket_slices_[bucket]; }
  int32_t slice_count() const { return slice_count_; }
  /// [begin, end) of the elements of `variable`'s storage that slice `index` owns.
  std::pair<int64_t, int64_t> slice_of(std::string_view variable, int32_t index) const;

  /// The table as programs of contributor `slice` see it; -1 = everything belongs to everybody.
  /// `seen` contributors' partials of variables are there as well, by of_contributor(), in arenas from arena_count on.
  backend::StateTable table(int32_t slice = -1, int32_t seen = 0) const;
  /// Of everything above; equal plans, equal hash.
  uint64_t hash() const { return hash_; }
  base::Json to_json() const;

 private:
  struct Builder;

  std::vector<backend::StateEntry> entries_;
  std::vector<std::string> entry_variables_;  // of entries(), "" where none
  std::vector<bool> entries_have_own_dims_;   // of entries()
  std::unordered_map<std::string, int32_t> index_;
  std::vector<int64_t> arena_bytes_ = std::vector<int64_t>(arena_count, 0);
  std::vector<Bucket> buckets_;
  std::vector<std::vector<Slice>> bucket_slices_;
  std::unordered_map<std::string, std::vector<int64_t>> variable_bounds_;  // slice_count_ + 1 element positions
  int32_t slice_count_ = 1;
  uint64_t hash_ = 0;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_STATE_PLAN_H_
