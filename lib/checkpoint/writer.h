// SPDX-License-Identifier: Apache-2.0
//
// Writes checkpoints: `<directory>/checkpoint-<step>/` with
//
//   weights.safetensors   variables                         slots.safetensors   optimizer state, if there is any
//   graph.json            the sealed predict graph, if any  manifest.json       written last (checkpoint/manifest.h)
//
// A checkpoint is written into a hidden directory beside its final place, each file fsynced, then renamed, then the
// parent is fsynced: at every instant a name "checkpoint-<step>" is a complete checkpoint or nothing. What an
// interrupted writer left behind is removed by remove_unfinished().
//
// Threads: the functions may be called from any thread, write_checkpoint() from several processes at a time, too; the
// others for one directory from one thread and one process at a time.
#ifndef TUTTI_CHECKPOINT_WRITER_H_
#define TUTTI_CHECKPOINT_WRITER_H_

#include <cstdint>
#include <string>

#include "base/cancel.h"
#include "base/json.h"
#include "base/object.h"
#include "base/status.h"
#include "checkpoint/manifest.h"
#include "checkpoint/weight_version.h"

namespace tutti::impl::checkpoint {

/// Everything one checkpoint is made of. Immutable once handed to a writer.
struct Snapshot {
  base::Ref<const WeightVersion> state;
  std::string graph_text;  // of the sealed predict model; empty for none
  base::Json run, options, plan, iterator, metrics;
};

/// Writes a snapshot and returns the path of its directory. An existing checkpoint of the same step is replaced at
/// once; of several writers the last one's stays. On any error, a full disk or `cancel` (nullable) included, nothing
/// new is visible and the space is free again.
base::Result<std::string> write_checkpoint(const std::string &directory, const Snapshot &snapshot,
                                           const base::CancelToken *cancel);

/// Of the checkpoints up to `newest_step` keeps the newest `keep_max` (0 keeps all) and removes the others, oldest
/// first. A directory vanishes under its name before its files do. Later ones are left alone: they are what a run that
/// fell back could not read, and must not push out what it writes.
base::Status remove_old_checkpoints(const std::string &directory, int64_t newest_step, int64_t keep_max);

/// Removes what writers that were killed have left in `directory`. A directory that does not exist is fine.
base::Status remove_unfinished(const std::string &directory);

}  // namespace tutti::impl::checkpoint

#endif  // TUTTI_CHECKPOINT_WRITER_H_
