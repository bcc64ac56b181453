// SPDX-License-Identifier: Apache-2.0
//
// Embeddings for TensorBoard's projector: points as tables of text (tensors.tsv), what each of them is (metadata.tsv),
// and projector_config.pbtxt, which names both; all in the folder of event files.
//
// Threads: one at a time for a folder.
#ifndef TUTTI_MONITOR_PROJECTOR_H_
#define TUTTI_MONITOR_PROJECTOR_H_

#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::monitor {

/// INVALID_ARGUMENT unless `points` are numbers [points, dimensions], and `metadata` is empty, or has a line for each
/// point, or one more, the first, which names its columns; a table of several columns has names.
base::Status check_embedding(const tensor::Tensor &points, std::string_view metadata);
/// Writes what was checked, in place of an embedding of that name.
base::Status write_embedding(const std::string &folder, std::string_view name, const tensor::Tensor &points,
                             std::string_view metadata);

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_PROJECTOR_H_
