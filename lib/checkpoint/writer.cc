// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/file.h"
#include "base/hash/checksum.h"
#include "checkpoint/layout.h"
#include "checkpoint/reader.h"

namespace tutti::impl::checkpoint {

using base::Result;
using base::Status;

namespace {

// A name that no reader takes for a checkpoint; unique among the writers of this process.
std::string unfinished_name(int64_t step) {
  static std::atomic<int64_t> counter{0};
  return base::concat(kUnfinishedPrefix, step, ".", static_cast<int64_t>(getpid()), ".", counter.fetch_add(1));
}

std::string_view file_of(const StateEntry &entry) {
  if (entry.role == StateRole::weight) return kWeightsFile;
  return entry.is_average() ? kAveragesFile : kSlotsFile;
}

Status add_tensors(const std::string &directory, std::string_view name, const WeightVersion &state,
                   const base::CancelToken *cancel, Manifest *manifest) {
  std::vector<SafetensorsItem> items;
  std::vector<size_t> indices;
  for (size_t i = 0; i < state.entries().size(); ++i) {
    const StateEntry &entry = state.entries()[i];
    if (file_of(entry) != name) continue;
    items.push_back({entry.name, entry.dtype, entry.shape});
    indices.push_back(i);
  }
  if (items.empty() && name != kWeightsFile) return Status();
  TUTTI_ASSIGN(const std::string path, base::child_path(directory, name));
  const auto source = [&](size_t index) { return state.read(indices[index]); };
  TUTTI_ASSIGN(const FileSummary summary, write_safetensors(path, items, source, {{"format", "tutti"}}, cancel));
  manifest->files.push_back({std::string(name), summary});
  return Status();
}

Status add_text(const std::string &directory, std::string_view name, const std::string &text, Manifest *manifest) {
  TUTTI_ASSIGN(const std::string path, base::child_path(directory, name));
  TUTTI_TRY(base::write_file_synced(path, text));
  manifest->files.push_back({std::string(name), {static_cast<int64_t>(text.size()), base::crc32c(text)}});
  return Status();
}

Status write_files(const std::string &directory, const Snapshot &snapshot, const base::CancelToken *cancel) {
  Manifest manifest;
  manifest.step = snapshot.state->step();
  manifest.run = snapshot.run;
  manifest.options = snapshot.options;
  manifest.plan = snapshot.plan;
  manifest.iterator = snapshot.iterator;
  manifest.metrics = snapshot.metrics;
  TUTTI_TRY(base::make_directories(directory));
  for (const std::string_view name : {kWeightsFile, kAveragesFile, kSlotsFile})
    TUTTI_TRY(add_tensors(directory, name, *snapshot.state, cancel, &manifest));
  if (!snapshot.graph_text.empty()) TUTTI_TRY(add_text(directory, kGraphFile, snapshot.graph_text, &manifest));
  TUTTI_TRY(base::check(cancel));
  TUTTI_TRY(base::write_file_synced(base::concat(directory, "/", kManifestFile), manifest_text(manifest)));
  return base::sync_directory(directory);
}

// Puts `from` in the place of the checkpoint at `to` in one step; what was there is then at `from`.
Status exchange(const std::string &from, const std::string &to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
    return base::status_from_errno(errno, base::concat("cannot replace '", to, "'"));
  }
  return base::sync_directory(base::parent_directory(to));
}

/// Puts what was written at `from` where the checkpoint is to be; `replaced`: another one is at `from` now. Another
/// writer, of this process or another, may put one there, or take it away, between look and deed: then again.
Status put_in_place(const std::string &from, const std::string &to, bool *replaced) {
  constexpr int kMostAttempts = 100;
  for (int attempt = 1;; ++attempt) {
    *replaced = base::path_exists(to);
    const Status status = *replaced ? exchange(from, to) : base::rename_synced(from, to);
    const bool is_done = !base::path_exists(from) || base::path_exists(to) == *replaced;
    if (status.ok() || is_done || attempt == kMostAttempts) return status;
  }
}

}  // namespace

Result<std::string> write_checkpoint(const std::string &directory, const Snapshot &snapshot,
                                     const base::CancelToken *cancel) {
  const int64_t step = snapshot.state->step();
  const std::string unfinished = unfinished_name(step);
  const std::string written_path = base::concat(directory, "/", unfinished);
  const std::string final_path = checkpoint_path(directory, step);
  Status status = write_files(written_path, snapshot, cancel);
  bool replaced = false;
  if (status.ok()) status = put_in_place(written_path, final_path, &replaced);
  // Trouble in cleaning up must not hide why, and remove_unfinished() comes again.
  if (!status.ok() || replaced) (void)base::remove_tree(directory, unfinished).ok();
  if (status.ok()) return final_path;
  return status.wrap(base::concat("cannot write the checkpoint of step ", step, " in '", directory, "'"));
}

Status remove_old_checkpoints(const std::string &directory, int64_t newest_step, int64_t keep_max) {
  if (keep_max <= 0) return Status();
  TUTTI_ASSIGN(std::vector<CheckpointName> all, list_checkpoints(directory));
  std::erase_if(all, [newest_step](const CheckpointName &name) { return name.step > newest_step; });
  for (size_t i = 0; i + static_cast<size_t>(keep_max) < all.size(); ++i) {
    const std::string unfinished = unfinished_name(all[i].step);
    TUTTI_TRY(base::rename_synced(all[i].path, base::concat(directory, "/", unfinished)));
    TUTTI_TRY(base::remove_tree(directory, unfinished));
  }
  return Status();
}

Status remove_unfinished(const std::string &directory) {
  if (!base::path_exists(directory)) return Status();
  TUTTI_ASSIGN(const std::vector<std::string> names, base::list_directory(directory));
  for (const std::string &name : names) {
    if (name.starts_with(kUnfinishedPrefix)) TUTTI_TRY(base::remove_tree(directory, name));
  }
  return Status();
}

}  // namespace tutti::impl::checkpoint
