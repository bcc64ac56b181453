// SPDX-License-Identifier: Apache-2.0
//
// Pipeline: the mutable builder behind the C ABI. Transforms are entries of the registry (transforms.yaml), applied by
// name through one call; so a new transform adds no function here. Errors are deferred: after the first one every call
// is a no-op and build() reports it, naming the transform and its place.
//
//   Pipeline pipeline(from_idx_files({{"image", images_path}, {"label", labels_path, Role::label}}));
//   pipeline.map(normalise).apply("shuffle", {{"buffer_size", int64_t{10000}}});
//   pipeline.apply("batch", {{"batch_size", int64_t{64}}}).apply("prefetch");
//   TUTTI_ASSIGN(DatasetRef dataset, pipeline.build());
//
// Threads: one at a time. The datasets it builds are immutable.
#ifndef TUTTI_DATA_PIPELINE_PIPELINE_H_
#define TUTTI_DATA_PIPELINE_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/file/file_system.h"
#include "data/pipeline/block_share.h"
#include "graph/attribute.h"
#include "graph/graph.h"

namespace tutti::impl::data {

/// A user's element function: reads `input`, fills `output` (empty on entry). Called on library threads, concurrently
/// when parallelism is above 1. Whatever it owns is released with its last copy.
using MapFunction = std::function<base::Status(const Element &input, Element &output)>;
/// A user's predicate: keeps the element when `keep` is set.
using FilterFunction = std::function<base::Status(const Element &input, bool &keep)>;

/// A user's function from an element to a dataset. Called on the thread that walks.
using ExpandFunction = std::function<base::Result<DatasetRef>(const Element &input)>;

/// A user's step of a scan: from the state and an element, the new state and `output`, which have an empty tensor for
/// each component on entry. Called on the thread that walks.
using ScanFunction =
    std::function<base::Status(const Element &state, const Element &input, Element &new_state, Element &output)>;
/// A component of the state of a scan: its name, and its value before the first element.
struct ScanState {
  std::string name;
  tensor::Tensor initial;
};

/// What a transform takes besides attributes; unused fields stay empty.
struct TransformArguments {
  std::vector<DatasetRef> others;               ///< zip, concatenate, interleave, ...: what follows the own one
  graph::SealedGraph graph = nullptr;           ///< map, filter, take_while
  std::vector<std::string> labels = {};         ///< map by graph: results that are labels
  std::vector<std::string> weights = {};        ///< map by graph: results that are weights
  MapFunction map = nullptr;                    ///< map_callback
  FilterFunction filter = nullptr;              ///< filter_callback, take_while_callback
  ExpandFunction expand = nullptr;              ///< flat_map, interleave_callback
  ScanFunction scan = nullptr;                  ///< scan_callback
  std::vector<ScanState> state = {};            ///< scan, scan_callback
  std::optional<ElementSpec> output_spec = {};  ///< map_callback, flat_map, ...: what it yields; nothing = as its input
  base::Ref<base::CancelToken> cancel = nullptr;  ///< as that of SourceServices
  std::optional<BlockShare> share = {};           ///< batch: of which its elements are
};

class ArrowStream;

/// What a source takes besides its parameters.
struct SourceServices {
  base::Ref<const FileSystems> file_systems = nullptr;  ///< of paths with a scheme; null = none
  std::shared_ptr<ArrowStream> arrow_stream = nullptr;  ///< arrow: what it reads
  base::Ref<base::CancelToken> cancel = nullptr;   ///< ends the looking at files that makes the source; null = never
  base::Ref<const base::Logger> logger = nullptr;  ///< is told what a source leaves out; null = nobody is
};

class Pipeline {
 public:
  /// Without a source: the first apply() must name one of sources.yaml.
  Pipeline() = default;
  explicit Pipeline(SourceServices services) : services_(std::move(services)) {}
  /// Starts from a source; a bad result becomes the deferred error.
  explicit Pipeline(base::Result<DatasetRef> source);

  /// Applies the transform of this name, or begins with the source of this name; `revision` 0 = the newest.
  Pipeline &apply(std::string_view name, graph::Attributes attributes = {}, TransformArguments arguments = {},
                  int32_t revision = 0);

  /// Short forms of what the examples use.
  Pipeline &map(graph::SealedGraph graph);
  Pipeline &shuffle(int64_t buffer_size);
  Pipeline &batch(int64_t batch_size, bool drop_remainder = false);
  Pipeline &repeat(int64_t count = -1);
  Pipeline &prefetch(int64_t buffer_size = 0);

  /// A user's own composition: a function from dataset to dataset.
  Pipeline &apply(const std::function<base::Result<DatasetRef>(DatasetRef)> &transformation);

  /// The spec so far: what the graph of the next map has as inputs. Null after an error.
  const ElementSpec *spec() const { return dataset_ ? &dataset_->spec() : nullptr; }
  /// The inputs a graph for the next map may declare: each component, by name, with the symbol "batch" in front where
  /// elements are single examples.
  base::Result<ElementSpec> map_inputs() const;

  /// The first error so far, or ok.
  const base::Status &status() const { return status_; }
  /// The dataset, or the first error. The pipeline may be continued afterwards.
  base::Result<DatasetRef> build() const;

 private:
  Pipeline &begin(std::string_view name, const graph::Attributes &attributes, int32_t revision);
  base::Status check_source() const;

  SourceServices services_;
  DatasetRef dataset_;
  base::Status status_;
  int32_t applied_ = 0;
};

/// The registries, for generic front ends.
enum class ParameterType { boolean, i64, f64, string, strings, ints, doubles };
/// Of numbers without a bound above; below it is -kOpenBound.
inline constexpr double kOpenBound = std::numeric_limits<double>::infinity();
struct ParameterDefinition {
  const char *name;
  ParameterType type;
  bool required;
  const char *default_text;  ///< as JSON; "null" = unset
  double minimum;            ///< bounds of numbers
  double maximum;
  const char *documentation;
};
struct TransformDefinition {
  const char *name;
  int32_t revision;
  const char *documentation;
  std::span<const ParameterDefinition> parameters;
  base::Result<DatasetRef> (*apply)(const DatasetRef &input, const graph::Attributes &attributes,
                                    TransformArguments &arguments);
};
/// All transforms, ordered by name, then revision.
std::span<const TransformDefinition> transform_definitions();
/// Null when there is none; `revision` 0 = the newest.
const TransformDefinition *find_transform(std::string_view name, int32_t revision = 0);
/// The registry as JSON: what options pages and bindings are made from.
base::Json describe_transforms();

struct SourceDefinition {
  const char *name;
  int32_t revision;
  const char *documentation;
  std::span<const ParameterDefinition> parameters;
  base::Result<DatasetRef> (*make)(const graph::Attributes &attributes, const SourceServices &services);
};
// As for transforms.
std::span<const SourceDefinition> source_definitions();
const SourceDefinition *find_source(std::string_view name, int32_t revision = 0);
base::Json describe_sources();
/// A parameter of the transform or source of this name, or null.
const ParameterDefinition *find_parameter(std::string_view name, int32_t revision, std::string_view parameter);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_PIPELINE_H_
