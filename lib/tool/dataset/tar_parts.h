// SPDX-License-Identifier: Apache-2.0
#ifndef TUTTI_TOOL_DATASET_TAR_PARTS_H_
#define TUTTI_TOOL_DATASET_TAR_PARTS_H_

#include <string>
#include <tutti/tutti.hpp>
#include <vector>

namespace tutti::tool {

/// The parts of the first sample of a tar archive (WebDataset: what follows the first dot of the names of its files),
/// as the source `tar` takes them: "jpg: bytes". `blocks`: the archive as records of 512 bytes. Empty where it is none.
/// Source: POSIX.1, pax.
std::vector<std::string> find_tar_parts(const Dataset &blocks);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DATASET_TAR_PARTS_H_
