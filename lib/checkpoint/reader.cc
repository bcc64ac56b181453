// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/reader.h"

#include <algorithm>

#include "base/exceptions.h"
#include "base/file.h"
#include "base/hash/checksum.h"
#include "checkpoint/layout.h"

namespace tutti::impl::checkpoint {

using base::data_loss;
using base::Result;
using base::Status;

namespace {

constexpr int64_t kMaxManifestBytes = int64_t{64} << 20;

Status read_tensors(const std::string &directory, const FileRecord &file, StateRole role, int64_t *total,
                    std::vector<StateEntry> *entries, std::vector<tensor::Tensor> *tensors) {
  TUTTI_ASSIGN(const std::string path, base::child_path(directory, file.name));
  TUTTI_ASSIGN(SafetensorsContent content, read_safetensors(path, file.summary));
  for (size_t i = 0; i < content.tensors.size(); ++i) {
    const SafetensorsEntry &entry = content.header.entries[i];
    entries->push_back({entry.name, role, entry.dtype, entry.shape});
    tensors->push_back(std::move(content.tensors[i]));
  }
  *total += file.summary.size_bytes;
  return Status();
}

Result<std::string> read_text(const std::string &directory, const FileRecord &file) {
  TUTTI_ASSIGN(const std::string path, base::child_path(directory, file.name));
  TUTTI_ASSIGN(const int64_t size, base::file_size_bytes(path));
  if (size != file.summary.size_bytes) {
    return data_loss("'", path, "': expected ", file.summary.size_bytes, " bytes, the file has ", size,
                     size > file.summary.size_bytes ? ": there is extra data after its end" : "");
  }
  TUTTI_ASSIGN(std::string text, base::read_file(path, size));
  if (base::crc32c(text) != file.summary.crc32c)
    return data_loss("'", path, "': the checksum differs from the manifest's");
  return text;
}

Result<Manifest> read_manifest(const std::string &directory) {
  const std::string path = base::concat(directory, "/", kManifestFile);
  TUTTI_ASSIGN(const int64_t size, base::file_size_bytes(path));
  if (size > kMaxManifestBytes)
    return data_loss("'", path, "' has ", size, " bytes, expected at most ", kMaxManifestBytes);
  TUTTI_ASSIGN(const std::string text, base::read_file(path, kMaxManifestBytes));
  Result<Manifest> manifest = parse_manifest(text);
  if (manifest.ok()) return manifest;
  return manifest.status().wrap(base::concat("cannot use '", path, "'"));
}

Result<Checkpoint> read_verified(const std::string &path, const ReadOptions &options) {
  Checkpoint checkpoint;
  checkpoint.path = path;
  TUTTI_ASSIGN(checkpoint.manifest, read_manifest(path));
  const Manifest &manifest = checkpoint.manifest;
  const FileRecord *weights = manifest.find_file(kWeightsFile);
  if (weights == nullptr) return data_loss("the manifest lists no ", kWeightsFile);
  std::vector<StateEntry> entries;
  std::vector<tensor::Tensor> tensors;
  int64_t total = 0;
  TUTTI_TRY(read_tensors(path, *weights, StateRole::weight, &total, &entries, &tensors));
  if (const FileRecord *averages = manifest.find_file(kAveragesFile)) {
    TUTTI_TRY(read_tensors(path, *averages, StateRole::slot, &total, &entries, &tensors));
  }
  if (const FileRecord *slots = manifest.find_file(kSlotsFile); slots != nullptr && options.slots) {
    TUTTI_TRY(read_tensors(path, *slots, StateRole::slot, &total, &entries, &tensors));
  }
  if (const FileRecord *graph = manifest.find_file(kGraphFile)) {
    TUTTI_ASSIGN(checkpoint.graph_text, read_text(path, *graph));
  }
  checkpoint.state = base::make_ref<TensorVersion>(manifest.step, std::move(entries), std::move(tensors));
  return checkpoint;
}

}  // namespace

Result<std::vector<CheckpointName>> list_checkpoints(const std::string &directory) {
  std::vector<CheckpointName> found;
  if (!base::path_exists(directory)) return found;
  TUTTI_ASSIGN(const std::vector<std::string> names, base::list_directory(directory));
  for (const std::string &name : names) {
    if (const std::optional<int64_t> step = step_of_name(name)) {
      found.push_back({*step, checkpoint_path(directory, *step)});
    }
  }
  std::sort(found.begin(), found.end(),
            [](const CheckpointName &a, const CheckpointName &b) { return a.step < b.step; });
  return found;
}

Result<Checkpoint> read_checkpoint(const std::string &path, const ReadOptions &options) {
  if (!base::is_directory(path)) return base::not_found("there is no checkpoint directory '", path, "'");
  Result<Checkpoint> checkpoint = read_verified(path, options);
  if (checkpoint.ok()) return checkpoint;
  // Whatever is wrong inside a directory that should be complete is damage, but for reasons that lie outside of it.
  const base::Code code = checkpoint.code();
  const bool outside = code == base::Code::failed_precondition || code == base::Code::permission_denied ||
                       code == base::Code::resource_exhausted;
  return checkpoint.status().wrap(outside ? code : base::Code::data_loss,
                                  base::concat("checkpoint '", path, "' cannot be used"));
}

/// Did the process lack something: memory, files or threads? That tells nothing about a checkpoint.
static bool is_shortage(const Status &status) {
  if (status.code() != base::Code::resource_exhausted) return false;
  return status.root_cause()->domain() == "errno" || base::is_out_of_memory(status);
}

/// Such a checkpoint is good: a run that went on from an older one would write over it.
static bool is_of_newer_release(const Status &status) {
  return status.code() == base::Code::failed_precondition && status.root_cause()->domain() != "errno";
}

Result<Checkpoint> read_newest_checkpoint(const std::string &directory, const ReadOptions &options,
                                          const base::Logger &logger) {
  TUTTI_ASSIGN(const std::vector<CheckpointName> all, list_checkpoints(directory));
  if (all.empty()) {
    return base::not_found("there is no checkpoint in '", directory, "'",
                           base::path_exists(directory) ? "" : ": the directory does not exist");
  }
  Status newest_reason;
  for (auto name = all.rbegin(); name != all.rend(); ++name) {
    Result<Checkpoint> checkpoint = read_checkpoint(name->path, options);
    if (checkpoint.ok() && checkpoint->manifest.step != name->step) {
      checkpoint = data_loss("checkpoint '", name->path, "' contains step ", checkpoint->manifest.step);
    }
    if (checkpoint.ok()) {
      if (!newest_reason.ok()) logger.warning("falling back to checkpoint '", name->path, "'");
      return checkpoint;
    }
    if (is_shortage(checkpoint.status()) || is_of_newer_release(checkpoint.status())) return checkpoint.status();
    logger.warning("ignoring a bad checkpoint: ", checkpoint.status().to_string());
    if (newest_reason.ok()) newest_reason = checkpoint.status();
  }
  return newest_reason.wrap(base::concat("none of the ", all.size(), " checkpoints in '", directory, "' can be used"));
}

Result<Checkpoint> read_checkpoint_or_newest(const std::string &path, const ReadOptions &options,
                                             const base::Logger &logger) {
  if (base::path_exists(base::concat(path, "/", kManifestFile)) || step_of_name(base::base_name(path))) {
    return read_checkpoint(path, options);
  }
  return read_newest_checkpoint(path, options, logger);
}

}  // namespace tutti::impl::checkpoint
