// SPDX-License-Identifier: Apache-2.0
//
// What functions share: axes as callers give them, parts of values along an axis, and gradients that are written down
// where those of the ops would lose digits or meet infinities.
//
// Functions that give kNoValue or nothing have left an error in the builder, or were given kNoValue.
#ifndef TUTTI_NN_FUNCTIONS_FUNCTION_PARTS_H_
#define TUTTI_NN_FUNCTIONS_FUNCTION_PARTS_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "nn/expansion.h"

namespace tutti::impl::nn {

using graph::Dim;
using graph::Dims;
using Values = GraphBuilder::Values;
using Axes = std::vector<int64_t>;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// An axis of `rank` dimensions, counted from the end where it is negative.
std::optional<int64_t> axis_of(Expansion &e, int64_t axis, size_t rank);
/// The attribute `axes` in ascending order, each once; all of them where it is empty.
std::optional<Axes> axes_of(Expansion &e, size_t rank);
/// Elements of x along an axis; an error where only data tells.
std::optional<int64_t> known_length(Expansion &e, ValueId x, int64_t axis);

/// A scalar constant of the dtype of `like`.
ValueId number(GraphBuilder &b, double value, ValueId like);
/// `size` elements of x along an axis.
ValueId part_of(GraphBuilder &b, ValueId x, int64_t axis, const Dim &begin, const Dim &size);
/// x with its axis `from` moved to `to`; x itself where they are the same.
ValueId move_axis(GraphBuilder &b, ValueId x, int64_t from, int64_t to);
/// x in reverse order along an axis.
ValueId reversed(GraphBuilder &b, ValueId x, int64_t axis);
/// 0, 1, ... along a new vector of i64.
ValueId counting(GraphBuilder &b, const Dim &length);

/// f(x), whose gradient is dy * derivative(x, y).
ValueId with_derivative(GraphBuilder &b, ValueId x, const std::function<ValueId(ValueId)> &f,
                        const std::function<ValueId(ValueId x, ValueId y)> &derivative);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_FUNCTIONS_FUNCTION_PARTS_H_
