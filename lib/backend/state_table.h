// SPDX-License-Identifier: Apache-2.0
//
// Where state lies: the table of entries (weights, slots, partial sums, ...) that is fixed before any program is
// compiled and handed to the backend with each graph. state_read and state_write name entries of this table; programs
// are bound to one base pointer per arena.
//
//   StateTable table;
//   int32_t weights = table.add_arena("weights");
//   table.add({.name = "weight/dense/kernel", .arena = weights, .offset = 0, .dtype = DType::f32, .dims = {784, 512},
//              .storage_bytes = 784 * 512 * 4});
//   std::string text = table.to_text();      // what crosses the plug-in boundary
//
// A value; immutable once shared between threads.
#ifndef TUTTI_BACKEND_STATE_TABLE_H_
#define TUTTI_BACKEND_STATE_TABLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend {

/// One entry. All sizes are those of the storage, which a layout may pad beyond the logical dims.
struct StateEntry {
  std::string name;
  int32_t arena = 0;   ///< index into StateTable::arenas()
  int64_t offset = 0;  ///< bytes from the arena's base
  tensor::DType dtype = tensor::DType::f32;
  std::vector<int64_t> dims = {};  ///< logical, row-major meaning
  std::string layout = {};         ///< "" = row-major; else a name the backend gave
  int64_t storage_bytes = 0;
  /// The part of the storage, in elements, that flat values stand for: those whose first dimension is
  /// "slice.<variable>", or has "rows.<variable>" in it.
  int64_t slice_offset = 0;
  int64_t slice_length = -1;  ///< -1 = everything

  /// Elements of the storage, padding included.
  int64_t storage_elements() const;
  /// slice_length with -1 resolved.
  int64_t flat_length() const { return slice_length < 0 ? storage_elements() : slice_length; }
};

/// Where an entry of `bytes` may begin in an arena that is used up to `end`: on a cache line. Large arrays that one
/// kernel walks through together (a weight and its slots) get different `colour`s (0, 1, ...), so that they do not fall
/// into the same sets of a first-level cache, whose ways are pages apart. All offsets are in bytes.
int64_t place_entry(int64_t end, int64_t bytes, int32_t colour);

class StateTable {
 public:
  /// The arena's index; adding a name again gives the same index.
  int32_t add_arena(std::string_view name);
  /// Adds an entry; a name may be added once.
  base::Status add(StateEntry entry);

  const std::vector<std::string> &arenas() const { return arenas_; }
  const std::vector<StateEntry> &entries() const { return entries_; }
  /// Null when there is no such entry.
  const StateEntry *find(std::string_view name) const;
  /// Position of an entry in entries(), -1 when there is none.
  int32_t index_of(std::string_view name) const;

  /// The JSON text of tutti_compile_request.state_json.
  std::string to_text() const;
  static base::Result<StateTable> from_text(std::string_view text);

 private:
  std::vector<std::string> arenas_;
  std::vector<StateEntry> entries_;
  std::unordered_map<std::string, int32_t> index_;
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_STATE_TABLE_H_
