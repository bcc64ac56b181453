// SPDX-License-Identifier: Apache-2.0
//
// Workers of several processes compare where they stand before they train, evaluate or predict together: what each
// would go on from by itself must be the same. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_WORKERS_WORKER_AGREEMENT_H_
#define TUTTI_DISTRIBUTE_WORKERS_WORKER_AGREEMENT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/executable.h"
#include "base/cancel.h"
#include "base/status.h"
#include "checkpoint/weight_version.h"
#include "collective/group.h"
#include "distribute/strategy/strategy.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

/// Something that has to be the same on all workers: the hash of all of it, and what it is, for people.
struct Fact {
  std::string text;
  uint64_t hash = 0;

  /// Of a text that says all of it.
  static Fact of(std::string text);
};

/// Of a model: each node, then its variables, outputs, metrics and the rule of training.
std::vector<Fact> facts_of(const graph::Model &model);

/// Of an evaluation or a stream of predictions: how its input is divided, how exactly it is computed.
std::vector<Fact> facts_of_call(const Strategy &strategy, backend::Level level, backend::Precision precision);

struct WorkerState {
  std::string_view act = "begins";  ///< for messages: "evaluates", "predicts"
  int64_t step = 0;
  uint64_t weights = 0;          ///< checksum_of()
  std::vector<Fact> facts = {};  ///< of the model and of the run, in one order
  std::string devices = {};      ///< rounding_of(), where those of all workers must round alike; else empty
};

/// Of names, dtypes, shapes and bytes of all weights, and slots if they are wanted, in whatever order. Statistics that
/// are each replica's own do not count.
base::Result<uint64_t> checksum_of(const checkpoint::WeightVersion &version, const graph::Model &model,
                                   bool with_slots);

/// Called by every worker, with the groups of its replicas and on one thread. FAILED_PRECONDITION on every worker,
/// naming one that differs from worker 0 and in what, unless all states are equal: of facts the first that differs, on
/// both.
base::Status check_same_state(std::span<collective::Group *const> groups, const Workers &workers, int32_t parts,
                              const WorkerState &own, const base::CancelToken *cancel);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_WORKERS_WORKER_AGREEMENT_H_
