// SPDX-License-Identifier: Apache-2.0
//
// The group of the replicas of one process: ranks are threads, buffers are host memory that every rank can read. One
// shared object holds a ring of published operations and a few counters per rank; reductions are sliced, so each rank
// adds its share of the elements over all contributors in fixed order.
//
//   auto ranks = assert_ok_value(LocalGroup::create(2, 1, options));   // hand ranks[r] to thread r
//
// Cost of an all_reduce of n bytes on R ranks: each rank reads n and writes n / R + n; a reduce_scatter only reads n
// and writes n / R. Two (small all_reduce, reduce_scatter) or three meetings of all ranks. Other algorithms for an
// all_reduce can be asked for, which add in another order. A rank that waits spins for a few microseconds, sees to it
// that the others have cores (rank_placement.h), and then sleeps.
#ifndef TUTTI_COLLECTIVE_LOCAL_LOCAL_GROUP_H_
#define TUTTI_COLLECTIVE_LOCAL_LOCAL_GROUP_H_

#include <memory>
#include <vector>

#include "collective/group.h"

namespace tutti::impl::collective::local {

/// Who adds up what in an all_reduce (all_reduce.cc says how, and what it costs). What fits into the words that ranks
/// publish anyway is added up by each of them.
enum class AllReduce : int32_t {
  spread = 1,    ///< each rank an equal share of the elements; contributors in order
  to_one,        ///< rank 0 everything; contributors in order
  ring,          ///< each rank what comes from its neighbour: another first contributor for each share
  hierarchical,  ///< within nodes, then between them: sums of sums of contributors in order
};

struct LocalGroupOptions {
  /// How long a rank waits for the others in one operation before it gives the group up; negative = for ever.
  int64_t timeout_ms = 600000;
  /// How long a waiting rank spins, twice at most, before it sleeps; not at all when ranks outnumber the processors.
  int64_t spin_us = 60;
  AllReduce all_reduce = AllReduce::spread;
  /// The node of each rank, for AllReduce::hierarchical alone.
  std::vector<int32_t> nodes = {};
};

class LocalGroup {
 public:
  /// The handles of all ranks, in order. INVALID_ARGUMENT unless 1 <= size <= 1024 and 1 <= parts <= 64.
  static base::Result<std::vector<std::unique_ptr<Group>>> create(int32_t size, int32_t parts = 1,
                                                                  const LocalGroupOptions &options = {});
};

}  // namespace tutti::impl::collective::local

#endif  // TUTTI_COLLECTIVE_LOCAL_LOCAL_GROUP_H_
