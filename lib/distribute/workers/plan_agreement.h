// SPDX-License-Identifier: Apache-2.0
//
// Ranks of a group compare their state plans before they exchange pieces of state that would not fit. Internal to this
// folder.
#ifndef TUTTI_DISTRIBUTE_WORKERS_PLAN_AGREEMENT_H_
#define TUTTI_DISTRIBUTE_WORKERS_PLAN_AGREEMENT_H_

#include <cstdint>

#include "base/status.h"
#include "collective/group.h"

namespace tutti::impl::distribute {

/// One collective operation, called by every rank. FAILED_PRECONDITION on every rank, naming both hashes, unless all
/// have the same.
base::Status check_same_plan(collective::Group &group, uint64_t hash);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_WORKERS_PLAN_AGREEMENT_H_
