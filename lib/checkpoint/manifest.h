// SPDX-License-Identifier: Apache-2.0
//
// The manifest of a checkpoint: what the directory holds, with checksums, and everything of a run that is no tensor.
// A directory without a manifest that verifies is no checkpoint.
//
//   {"manifest": {"format": "tutti checkpoint", "format_version": 1, "step": 1200, "files": [...], ...},
//    "crc32c": "8a9136aa"}
//
// The checksum covers the text of the value of "manifest" byte for byte, so that one flipped bit anywhere is found. The
// text holds no time and no host name: equal runs write equal bytes.
//
// Versions: a reader accepts every format_version up to its own; keys it does not know are kept out of its way. A newer
// version is FAILED_PRECONDITION, not damage.
#ifndef TUTTI_CHECKPOINT_MANIFEST_H_
#define TUTTI_CHECKPOINT_MANIFEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "checkpoint/safetensors.h"

namespace tutti::impl::checkpoint {

inline constexpr int64_t kManifestFormatVersion = 1;

/// One file of the directory. The name is a plain child.
struct FileRecord {
  std::string name;
  FileSummary summary;
};

struct Manifest {
  int64_t format_version = kManifestFormatVersion;
  int64_t step = 0;
  base::Json run;       // seeds, counters, epoch: what a session needs to go on
  base::Json options;   // resolved options of the run
  base::Json plan;      // the plan and its hash: chosen layouts and kernels
  base::Json iterator;  // state of the input, null when there is none
  base::Json metrics;   // at this step, for people and tools
  std::vector<FileRecord> files;

  /// The record of a file, or null.
  const FileRecord *find_file(std::string_view name) const;
};

std::string manifest_text(const Manifest &manifest);
/// DATA_LOSS for text that is damaged, INVALID_ARGUMENT for a manifest that is whole but says something impossible.
base::Result<Manifest> parse_manifest(std::string_view text);

}  // namespace tutti::impl::checkpoint

#endif  // TUTTI_CHECKPOINT_MANIFEST_H_
