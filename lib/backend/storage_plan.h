// SPDX-License-Identifier: Apache-2.0
//
// The plug-in's side of memory: decides where each value of a lowered graph lies. Values live in the caller's input and
// output buffers, in the state arenas, among the constants, or in the workspace, where those not alive at the same time
// share bytes.
//
//   StorageWishes wishes = StorageWishes::row_major(lowered);
//   wishes.may_overwrite = [](const Node &node, int output, int input) { return is_elementwise(node); };
//   StoragePlan plan = plan_storage(lowered, wishes);
//   plan.locations[value]                                    // place, index, offset
//
// What the plan promises:
//  * state_read never copies: its value is the arena itself.
//  * A result is computed in its output buffer and a state_write's value in its entry where that is safe; what remains
//    is listed as copies (plan.copies) and in plan.write_is_done. It is not safe for a value that is read behind an
//    external of no elements that follows the write: there the host may change the entry.
//  * An update reads and writes its entry in place when its result is only written to the entry it was read from.
//  * all_reduce works in place in the workspace: if the value before it is still needed, plan.copies keeps both.
#ifndef TUTTI_BACKEND_STORAGE_PLAN_H_
#define TUTTI_BACKEND_STORAGE_PLAN_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "backend/executable.h"
#include "backend/lowered_graph.h"
#include "base/json.h"

namespace tutti::impl::backend {

enum class Place : int8_t {
  none,       ///< not stored: a value of a region, or never used
  workspace,  ///< at `offset` of the workspace
  arena,      ///< at `offset` of arena `index`
  input,      ///< the run's input `index`
  output,     ///< the run's output `index`
  constant,   ///< the tensor of the constant node `index` (a NodeId)
};

struct Location {
  Place place = Place::none;
  int32_t index = 0;
  int64_t offset = 0;
  friend bool operator==(const Location &, const Location &) = default;
};

/// What a backend wants; row_major() fills in what holds for dense row-major values.
struct StorageWishes {
  static StorageWishes row_major(const LoweredGraph &lowered);

  /// By value: bytes of storage (a blocked layout may need more than the logical bytes).
  std::vector<int64_t> bytes;
  /// By value: an input of its producer whose memory it simply is (identity, reshape), or -1.
  std::vector<graph::ValueId> same_memory;
  /// By value: stored dense and row-major, so it may lie in an output buffer or a row-major entry.
  std::vector<char> plain;
  /// By step: at whose turn its node is computed, its own or that of a step that it is computed together with: a later
  /// one, or an earlier one behind all that makes what it reads. Empty: all at their own.
  std::vector<int32_t> turn;
  /// By step: an input that its kernel finds out in another way and does not read, or -1. Empty: none.
  std::vector<graph::ValueId> unread;
  /// By value: the last step until which it has to stay as it is, beyond its uses; -1 = none. Empty: for none.
  std::vector<int32_t> kept_until;
  /// By step: bytes that the kernel needs only while it runs.
  std::vector<int64_t> scratch;
  /// May output number `output` of a node lie on top of its input number `input`? row_major() says yes for the update
  /// ops only.
  std::function<bool(const graph::Node &node, int32_t output, int32_t input)> may_overwrite;
  int64_t alignment = 64;
};

/// A copy that the backend has to do at the end of `step`. At an all_reduce's step, copies into an output come after
/// the external, other copies before it.
struct StorageCopy {
  int32_t step = 0;
  graph::ValueId from = graph::kNoValue;
  Location to;
};

struct StoragePlan {
  std::vector<Location> locations;      ///< by value
  std::vector<int64_t> scratch_offset;  ///< by step: offset in the workspace
  /// By step: the state_write there needs no work, its value was computed in place.
  std::vector<char> write_is_done;
  /// Results that do not lie in their output buffer (at the step of their producer), values kept before an all_reduce.
  std::vector<StorageCopy> copies;
  /// By all_reduce node in order; between segments i and i + 1 stands step external_steps[i].
  std::vector<ExternalDescription> externals;
  std::vector<int32_t> external_steps;
  int64_t workspace_bytes = 0;
  int64_t workspace_lower_bound = 0;
};

StoragePlan plan_storage(const LoweredGraph &lowered, const StorageWishes &wishes);

/// The text of tutti_executable_table.describe.
std::string describe_executable(const LoweredGraph &lowered, const StoragePlan &plan, base::Json report);

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_STORAGE_PLAN_H_
