// SPDX-License-Identifier: Apache-2.0
//
// A version as evaluations and predictions see it where the optimizer keeps moving averages: each variable that has one
// is its average, under its own name; the others (frozen ones, running statistics) are what they are.
#ifndef TUTTI_CHECKPOINT_AVERAGED_VERSION_H_
#define TUTTI_CHECKPOINT_AVERAGED_VERSION_H_

#include "base/object.h"
#include "checkpoint/weight_version.h"

namespace tutti::impl::checkpoint {

/// Weights alone, without slots. The version itself where it has no averages, or is null.
base::Ref<WeightVersion> with_averages(base::Ref<WeightVersion> version);

}  // namespace tutti::impl::checkpoint

#endif  // TUTTI_CHECKPOINT_AVERAGED_VERSION_H_
