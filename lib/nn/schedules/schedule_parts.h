// SPDX-License-Identifier: Apache-2.0
//
// What schedules share. They compute in f64, in which numbers of steps are exact up to 2^53, and give a f32.
#ifndef TUTTI_NN_SCHEDULES_SCHEDULE_PARTS_H_
#define TUTTI_NN_SCHEDULES_SCHEDULE_PARTS_H_

#include <cstdint>

#include "nn/expansion.h"

namespace tutti::impl::nn {

/// The dtype in which a schedule computes, and that of its rate.
constexpr tensor::DType kExact = tensor::DType::f64, kRate = tensor::DType::f32;

/// The number of completed steps; 0 in the first step.
ValueId completed_steps(GraphBuilder &b);
ValueId exact(GraphBuilder &b, double number);
/// x / divisor, exact at its multiples, where a product with the reciprocal may be just below.
ValueId divide(GraphBuilder &b, ValueId x, double divisor);
ValueId clamp01(GraphBuilder &b, ValueId x);
/// Half a cosine from 0 to 1 as x goes from 0 to 1: (1 - cos(pi x)) / 2, exact to the last digit near 0, too.
ValueId half_wave(GraphBuilder &b, ValueId x);
/// A f64 as a learning rate.
ValueId as_rate(GraphBuilder &b, ValueId x);

/// Input `index`, a rate that comes from elsewhere; an error unless it is a floating point scalar.
ValueId rate_input(Expansion &e, size_t index);
/// `rate` as it was `steps` steps ago, and in the first `steps` steps as in the first one: whatever it computes from
/// the number of completed steps is computed again from max(completed steps - steps, 0).
ValueId delayed(Expansion &e, ValueId rate, int64_t steps);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_SCHEDULES_SCHEDULE_PARTS_H_
