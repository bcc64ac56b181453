// SPDX-License-Identifier: Apache-2.0
//
// Where a cache keeps what its input gave in one complete pass: in memory, one pass for one seed; or in an element file
// (element_file.h), which later processes find again.
//
// A file is used only if it holds what the pipeline before the cache would give: its header has the fingerprint of that
// pipeline (fingerprint.h), with the seed if the pipeline is random, and a key of the user for what no fingerprint can
// tell. Any other element file at the path is written anew. Several processes may fill one file at once: each writes
// beside it, and the last to be done puts its own, equal one into place.
//
// Threads: all functions may be called from any thread; a writer belongs to one.
#ifndef TUTTI_DATA_KEEP_CACHE_CONTENTS_H_
#define TUTTI_DATA_KEEP_CACHE_CONTENTS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/keep/element_store.h"

namespace tutti::impl::data {

class CacheContents {
 public:
  virtual ~CacheContents() = default;

  /// What is kept for this seed; null when there is nothing.
  virtual base::Result<std::shared_ptr<const ElementStore>> find(int64_t seed) = 0;
  /// Begins a pass. finish() keeps it, unless elements of it failed, and gives null if there is nothing then; it may be
  /// called again when `cancel` (null allowed) has ended it. The writer does not outlive the contents.
  virtual base::Result<std::unique_ptr<ElementStoreWriter>> fill(int64_t seed,
                                                                 const base::Ref<base::CancelToken> &cancel) = 0;
};

std::unique_ptr<CacheContents> make_memory_contents(const ElementSpec &spec);

/// Where element files go.
struct ElementFilePlace {
  std::string path;        ///< of the file, or of the folder
  bool is_folder = false;  ///< each fingerprint has a file of its own there; the folder is made if need be
  std::string key;
};
/// INVALID_ARGUMENT when the pipeline has functions of the user and there is no key. `cancel` (null allowed) ends the
/// looking at the files of the pipeline.
base::Result<std::unique_ptr<CacheContents>> make_file_contents(const DatasetRef &input, ElementFilePlace place,
                                                                const base::Ref<base::CancelToken> &cancel);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_KEEP_CACHE_CONTENTS_H_
