// SPDX-License-Identifier: Apache-2.0
//
// Reads checkpoints. Nothing is believed before it is verified: the manifest by its own checksum, each file by the size
// and checksum in the manifest, each tensor against the file's header.
//
//   TUTTI_ASSIGN(Checkpoint newest, read_newest_checkpoint("run", {}, *logger));   // falls back, and says why
//
// Threads: the functions may be called from any thread; a Checkpoint is a value whose parts are immutable.
#ifndef TUTTI_CHECKPOINT_READER_H_
#define TUTTI_CHECKPOINT_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/object.h"
#include "base/status.h"
#include "checkpoint/manifest.h"
#include "checkpoint/weight_version.h"

namespace tutti::impl::checkpoint {

/// A directory that is named like a checkpoint; its content is not looked at.
struct CheckpointName {
  int64_t step = 0;
  std::string path;
};

/// All checkpoints in a directory, lowest step first. A directory that does not exist has none.
base::Result<std::vector<CheckpointName>> list_checkpoints(const std::string &directory);

struct ReadOptions {
  bool slots = true;  // false leaves out what only training needs: all slots but moving averages
};

/// A verified checkpoint in memory.
struct Checkpoint {
  std::string path;
  Manifest manifest;
  base::Ref<WeightVersion> state;
  std::string graph_text;  // empty when the checkpoint has no predict graph
};

/// Reads the checkpoint in one directory. NOT_FOUND when there is no such directory, DATA_LOSS naming file and reason
/// when it is damaged.
base::Result<Checkpoint> read_checkpoint(const std::string &path, const ReadOptions &options);

/// The newest checkpoint of `directory` that verifies; a warning for each newer one that does not. NOT_FOUND when there
/// is no checkpoint at all, DATA_LOSS when none verifies, with the newest one's reason as cause. Where the process has
/// no file descriptor or thread left, RESOURCE_EXHAUSTED, and where a newer release wrote the newest one,
/// FAILED_PRECONDITION: older ones are not read for that.
base::Result<Checkpoint> read_newest_checkpoint(const std::string &directory, const ReadOptions &options,
                                                const base::Logger &logger);

/// `path` is a checkpoint (it has a manifest) or a directory of checkpoints, whose newest good one is meant.
base::Result<Checkpoint> read_checkpoint_or_newest(const std::string &path, const ReadOptions &options,
                                                   const base::Logger &logger);

}  // namespace tutti::impl::checkpoint

#endif  // TUTTI_CHECKPOINT_READER_H_
