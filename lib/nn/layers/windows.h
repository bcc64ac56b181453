// SPDX-License-Identifier: Apache-2.0
//
// Windows of layers along 1 to 3 axes of sequences [batch, length, channels], images [batch, height, width, channels]
// and volumes [batch, depth, height, width, channels].
#ifndef TUTTI_NN_LAYERS_WINDOWS_H_
#define TUTTI_NN_LAYERS_WINDOWS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "nn/expansion.h"

namespace tutti::impl::nn {

/// One number for each axis: the attribute `one`, but where the attribute `each`, which entries of one axis lack, is
/// not 0.
std::vector<int64_t> along_axes(const Expansion &e, std::string_view one, std::string_view each, size_t axes);

/// Does x have so many axes between the batch and the channels? Else an error says what was expected.
bool has_axes(Expansion &e, ValueId x, size_t axes);

/// Such numbers as the attribute of the op or function for so many axes: a number for one, else a list.
graph::Attribute for_axes(const std::vector<int64_t> &numbers);

/// The op or function "<stem><axes>d" on these inputs.
ValueId on_axes(Expansion &e, std::string_view stem, size_t axes, const std::vector<ValueId> &inputs,
                graph::Attributes attributes);

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_LAYERS_WINDOWS_H_
