// SPDX-License-Identifier: Apache-2.0
//
// Pipelines, datasets, iterators and feeds behind handles.
#ifndef TUTTI_CAPI_DATASET_C_H_
#define TUTTI_CAPI_DATASET_C_H_

#include <tutti/dataset.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capi/context_c.h"
#include "capi/guard.h"
#include "data/dataset/dataset.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"

namespace tutti::impl::capi {

/// A dataset and the texts that getters lend.
class DatasetObject : public base::Object {
 public:
  /// `strategy`: the one it is distributed by; null = none.
  DatasetObject(std::shared_ptr<ContextCore> core, data::DatasetRef dataset,
                distribute::StrategyRef strategy = nullptr);

  const std::shared_ptr<ContextCore> &core() const { return core_; }
  const data::DatasetRef &dataset() const { return dataset_; }
  const distribute::StrategyRef &strategy() const { return strategy_; }
  const std::string &spec() const { return spec_; }
  const std::string &lint() const { return lint_; }

 private:
  const std::shared_ptr<ContextCore> core_;
  const data::DatasetRef dataset_;
  const distribute::StrategyRef strategy_;
  std::string spec_, lint_;
};

/// A pipeline under construction: components of the source until the first transform, then data::Pipeline.
class PipelineObject : public base::Object {
 public:
  explicit PipelineObject(std::shared_ptr<ContextCore> core) : core_(std::move(core)) {}

  const std::shared_ptr<ContextCore> &core() const { return core_; }
  /// Records the first error.
  void fail(Status status);
  bool ok() const { return status_.ok(); }
  void add_slices(std::string name, data::Role role, tensor::Tensor tensor);
  /// As add_slices(), for a source of one element.
  void add_tensor(std::string name, data::Role role, tensor::Tensor tensor);
  void add_idx(std::string name, data::Role role, std::string path);
  /// A component of what a generator gives.
  void declare(data::ComponentSpec component);
  const data::ElementSpec &declared() const { return declared_; }
  /// What the source "arrow" reads.
  void set_arrow_stream(std::shared_ptr<data::ArrowStream> stream);
  /// What ends the looking at files from now on; null = nothing.
  void set_cancel(Ref<base::CancelToken> cancel) { cancel_ = std::move(cancel); }
  const Ref<base::CancelToken> &cancel() const { return cancel_; }
  /// What a function gives, of the declared components.
  void start_from(data::GeneratorFunction function);
  /// A whole dataset as the source; nothing else may have been added.
  void start_from(data::DatasetRef dataset);
  /// The pipeline behind the sources, made on first use; null after an error.
  data::Pipeline *pipeline();
  /// As pipeline(), but without a source an empty one: what is begun then is a source of the registry.
  data::Pipeline *pipeline_to_begin();
  /// The dataset, or the first error; the object is empty afterwards.
  Result<data::DatasetRef> build();

  /// The transform being written, between begin and end.
  struct Pending {
    std::string name;
    int32_t revision = 0;
    graph::Attributes attributes;
    data::TransformArguments arguments;
    /// Makes the function of a map, once it is known what it is to give; null = there is none.
    std::function<data::MapFunction(data::ElementSpec output)> map;
  };
  std::optional<Pending> pending;

 private:
  bool can_add_source(std::string_view what);
  /// The same for a component of a source; what else it has must be of the same kind.
  bool can_add_component(std::string_view what, bool has_others);
  bool has_components() const { return !slices_.empty() || !tensors_.empty() || !files_.empty(); }
  Result<data::DatasetRef> source();

  const std::shared_ptr<ContextCore> core_;
  Status status_;
  std::vector<data::NamedTensor> slices_, tensors_;
  std::vector<data::IdxFile> files_;
  data::ElementSpec declared_;
  std::shared_ptr<data::ArrowStream> arrow_stream_;
  Ref<base::CancelToken> cancel_;
  std::optional<data::Pipeline> pipeline_;
};

class IteratorObject : public base::Object {
 public:
  /// `strategy`: see DatasetObject.
  IteratorObject(std::unique_ptr<data::Iterator> iterator, Ref<base::CancelToken> token,
                 distribute::StrategyRef strategy)
      : strategy(std::move(strategy)), iterator_(std::move(iterator)), token_(std::move(token)) {}

  data::Iterator &iterator() { return *iterator_; }
  /// The walk's own token, which follows that of a call while the call lasts.
  base::CancelToken &token() const { return *token_; }
  BusyFlag &busy() { return busy_; }
  const distribute::StrategyRef strategy;
  data::Element element;
  bool has_element = false;
  std::vector<std::unique_ptr<LentHandle>> components;
  /// Of the element's components, replica by replica; made when somebody asks, empty before.
  std::vector<std::unique_ptr<LentHandle>> pieces;
  std::string state, report;

 private:
  BusyFlag busy_;
  std::unique_ptr<data::Iterator> iterator_;
  Ref<base::CancelToken> token_;
};

/// A feed: declared first, made on first use.
class FeedObject : public base::Object {
 public:
  FeedObject(std::shared_ptr<ContextCore> core, int64_t capacity) : core_(std::move(core)), capacity_(capacity) {}

  const std::shared_ptr<ContextCore> &core() const { return core_; }
  Status declare(data::ComponentSpec component);
  Status set_batch_size(int64_t most_rows);
  /// Empty where there is none.
  std::string component_name(int64_t index) const;
  /// The feed itself; its components are fixed from now on.
  Result<Ref<data::Feed>> feed();
  /// As feed(), null while it is still being declared.
  Ref<data::Feed> started() const;

 private:
  const std::shared_ptr<ContextCore> core_;
  const int64_t capacity_;
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  data::ElementSpec spec_;  // of an example
  int64_t most_rows_ = 0;   // of elements that are batches; 0 = they are examples
  Ref<data::Feed> feed_;
};

extern constinit HandleType<DatasetObject> dataset_handles;
extern constinit HandleType<PipelineObject> pipeline_handles;
extern constinit HandleType<IteratorObject> iterator_handles;
extern constinit HandleType<FeedObject> feed_handles;

/// INVALID_ARGUMENT for what another strategy has distributed. A part of a dataset tells itself whose it is, and the
/// estimator asks it.
Status check_distributed_by(const DatasetObject &dataset, const distribute::Strategy &strategy,
                            std::string_view argument);

Status emit_dataset(std::shared_ptr<ContextCore> core, data::DatasetRef dataset, tutti_dataset **out);

/// TUTTI_ROLE_* as a role.
Result<data::Role> to_role(int32_t role, std::string_view component);

/// What a walk needs from the context.
data::IteratorContext iterator_context(const ContextCore &core, int64_t seed, Ref<base::CancelToken> cancel);

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_DATASET_C_H_
