// SPDX-License-Identifier: Apache-2.0
//
// Interleaving of several walks: what interleave and flat_map are made of. A cycle has slots, a slot holds one walk.
// In its turn a slot gives block_length elements, then the next slot has its turn. A walk that ends ends its turn;
// in the slot's next turn the next walk takes its place.
//
//   cycle_length 2, block_length 2:   a a b b a | b b c c b d c c ...       a ended after three elements
//
// Threads: as for Stage. Walks may be read ahead by threads of their own (prefetching_stage.h).
#ifndef TUTTI_DATA_CALL_INTERLEAVING_H_
#define TUTTI_DATA_CALL_INTERLEAVING_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/dataset/stage.h"
#include "data/dataset/state.h"

namespace tutti::impl::data {

/// The datasets to walk over, in order.
class DatasetSequence {
 public:
  virtual ~DatasetSequence() = default;

  /// Number `next` of the sequence, asked for in order; null behind the last. Another error than an interrupt consumes
  /// the number.
  virtual base::Result<DatasetRef> get(int64_t number) = 0;
  /// The context of walks over the dataset that get() gave last.
  virtual IteratorContext context_of(int64_t number) const = 0;
  /// Appends an object from which get() can go on with `oldest`, a number that it gave before or is about to give.
  virtual void save(int64_t oldest, State &state) const = 0;
  /// Forgets what is from before `oldest`.
  virtual void forget(int64_t oldest) = 0;
  /// Does get() never wait? Then walks go on with restore() already, as feeds need it.
  virtual bool is_immediate() const = 0;
  /// After this get() is asked for numbers from the saved `oldest` on.
  virtual base::Status restore(const base::JsonReader &state, int64_t oldest) = 0;
};

struct InterleavingParameters {
  const char *kind;
  int64_t cycle_length;
  int64_t block_length;
  int64_t read_ahead;  ///< slots, from the first on, whose walks are read ahead
};

/// A walk over all datasets of a sequence by turns; `owner` is the dataset that does so.
std::unique_ptr<Stage> open_turns(const InterleavingParameters &parameters, std::unique_ptr<DatasetSequence> datasets,
                                  const IteratorContext &context, const Dataset &owner);

/// The context for a walk over dataset `index` of several: its random numbers are others than those of its neighbours.
IteratorContext context_of_part(const IteratorContext &context, int64_t index);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_CALL_INTERLEAVING_H_
