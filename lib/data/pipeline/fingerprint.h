// SPDX-License-Identifier: Apache-2.0
//
// A hash of everything that decides what the elements of a dataset are: names and parameters of its sources and
// transforms, graphs, tensors in memory, and of each file its path, size and time of change. What does not change
// elements is left out: parallelism, prefetch, caches.
//
//   TUTTI_ASSIGN(const Fingerprint fingerprint, fingerprint_of(*dataset));
//   if (fingerprint.has_unknown()) ...        // a function of the user, a feed: no hash can tell what it gives
//
// Files of file systems other than the machine's own are known by path and size alone.
//
// Threads: values; the functions may be called from any thread.
#ifndef TUTTI_DATA_PIPELINE_FINGERPRINT_H_
#define TUTTI_DATA_PIPELINE_FINGERPRINT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash/checksum.h"
#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/file/file_system.h"
#include "data/pipeline/pipeline.h"
#include "graph/attribute.h"
#include "graph/graph.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

class Fingerprint {
 public:
  Fingerprint() = default;
  /// What ends the looking at files; null = nothing does.
  explicit Fingerprint(base::Ref<base::CancelToken> cancel) : cancel_(std::move(cancel)) {}

  void add(std::string_view text) { hash_ = base::fnv1a64(text, base::fnv1a64(text.size(), hash_)); }
  void add_number(int64_t number) { hash_ = base::fnv1a64(static_cast<uint64_t>(number), hash_); }
  /// Dtype, shape and values.
  void add_tensor(const tensor::Tensor &tensor);
  /// Path, size and time of change, or what its file system knows it by; where that is nothing, it is unknown.
  base::Status add_file(const std::string &path, const FileSystems *systems = nullptr);
  /// Something that no hash can tell: the kind of a dataset, which may depend on the seed, or the path of a file.
  void add_unknown(std::string_view kind) {
    if (unknown_.empty()) unknown_ = kind;
  }
  void use_seed() { uses_seed_ = true; }

  uint64_t value() const { return hash_; }
  const base::Ref<base::CancelToken> &cancel() const { return cancel_; }
  bool has_unknown() const { return !unknown_.empty(); }
  /// The first of these.
  const std::string &unknown() const { return unknown_; }
  /// Do the elements depend on the seed of the walk?
  bool uses_seed() const { return uses_seed_; }

 private:
  uint64_t hash_ = base::kFnvStart;
  std::string unknown_;
  bool uses_seed_ = false;
  base::Ref<base::CancelToken> cancel_;
};

/// What a pipeline made a dataset of, by name; immutable once it is part of a dataset.
struct Recipe {
  std::string name;
  int32_t revision = 0;
  bool is_source = false;
  graph::Attributes attributes = {};
  TransformArguments arguments = {};                    ///< what it was applied with
  bool has_function = false;                            ///< one of the user's
  base::Ref<const FileSystems> file_systems = nullptr;  ///< of a source; may be null
  bool makes_datasets = false;                          ///< by such a function
  std::vector<DatasetRef> inputs = {};                  ///< the pipeline's own before it, then the others
};

/// What is known of a transform before it takes its arguments.
std::shared_ptr<const Recipe> make_recipe(const TransformDefinition &definition, const DatasetRef &input,
                                          const graph::Attributes &attributes, const TransformArguments &arguments);
std::shared_ptr<const Recipe> make_recipe(const SourceDefinition &definition, const graph::Attributes &attributes,
                                          const SourceServices &services);

/// NOT_FOUND and the like name a file that is gone. `cancel` (null allowed) ends the looking at files.
base::Result<Fingerprint> fingerprint_of(const Dataset &dataset, const base::Ref<base::CancelToken> &cancel = {});

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_FINGERPRINT_H_
