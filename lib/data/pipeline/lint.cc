// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "data/call/device_graph.h"
#include "data/dataset/dataset.h"
#include "data/pipeline/fingerprint.h"
#include "graph/op_registry.h"

namespace tutti::impl::data {

using base::Result;
using graph::Graph;
using graph::Node;
using graph::OpDefinition;

namespace {

template <size_t count>
bool is_one_of(std::string_view name, const std::string_view (&names)[count]) {
  return std::ranges::find(names, name) != std::end(names);
}

// Random choices of elements that should be made anew in every pass.
bool is_random(const Dataset &dataset) {
  static constexpr std::string_view kinds[] = {"shuffle", "sample_from", "resample"};
  return is_one_of(dataset.kind(), kinds);
}

bool is_batch(const Dataset &dataset) {
  static constexpr std::string_view kinds[] = {"batch", "padded_batch", "bucket_by_length", "rebatch"};
  return is_one_of(dataset.kind(), kinds);
}

bool is_map(const Dataset &dataset) {
  static constexpr std::string_view kinds[] = {"map", "map_callback", "map_process"};
  return is_one_of(dataset.kind(), kinds);
}

bool is_cache(const Dataset &dataset) {
  static constexpr std::string_view kinds[] = {"cache", "file_cache", "snapshot"};
  return is_one_of(dataset.kind(), kinds);
}

// What gives one element for each of its input: behind it a batch is still a batch, a pass still a pass.
bool keeps_elements(const Dataset &dataset) {
  static constexpr std::string_view kinds[] = {"prefetch", "options", "enumerate", "ignore_errors", "take",
                                               "skip",     "filter",  "select",    "class_weights"};
  return is_map(dataset) || is_cache(dataset) || is_one_of(dataset.kind(), kinds);
}

// The first dataset before this one that is not of the kind above.
const Dataset *origin(const Dataset &dataset) {
  const Dataset *input = dataset.inputs()[0].get();
  while (keeps_elements(*input))
    input = input->inputs()[0].get();
  return input;
}

// The graph of a map that a pipeline made; null for all others.
const Graph *graph_of(const Dataset &dataset) {
  return is_map(dataset) && dataset.recipe() != nullptr ? dataset.recipe()->arguments.graph.get() : nullptr;
}

// The first node of a graph for which a question holds, or null.
template <typename Holds>
const Node *find_node(const Graph &graph, Holds holds) {
  for (const Node &node : graph.nodes()) {
    const OpDefinition *const definition = graph::find_op(node.op, node.revision);
    if (definition != nullptr && holds(node, *definition)) return &node;
  }
  return nullptr;
}

bool draws(const Node &, const OpDefinition &op) { return op.effect == graph::Effect::random; }

bool mentions_rows(const graph::Dims &dims) {
  return std::ranges::any_of(dims, [](const graph::Dim &dim) { return dim.mentions(graph::kBatchSymbol); });
}

// What the walk from the end towards the sources has passed.
struct Passed {
  bool cache = false;
  const Dataset *map = nullptr;  // not separated from here by anything but other maps and selections
};

// Random ops without an axis for the rows.
void check_draws(const Dataset &map, const Graph &graph, std::vector<std::string> &warnings) {
  const Node *const whole = find_node(graph, [&](const Node &node, const OpDefinition &op) {
    const bool has_rows = mentions_rows(graph.value(node.outputs[0]).dims);
    return draws(node, op) && map.inputs()[0]->spec().is_batched() && !has_rows;
  });
  if (whole != nullptr) {
    warnings.push_back(base::concat("batch before map with ", whole->op,
                                    ": its result has no axis for the rows, so the whole batch shares one draw; put "
                                    "the map before batch"));
  }
  static constexpr std::string_view kImageOps[] = {"random_crop", "random_flip", "random_resized_crop", "random_cutout",
                                                   "random_color_jitter"};
  const Node *const misread = find_node(graph, [&](const Node &node, const OpDefinition &op) {
    if (!is_one_of(op.name, kImageOps)) return false;
    const graph::Dims &dims = graph.value(node.inputs[0]).dims;
    return dims.size() == 3 && dims[0].mentions(graph::kBatchSymbol);
  });
  if (misread != nullptr) {
    warnings.push_back(
        base::concat("map with ", misread->op, ": it takes [", graph::kBatchSymbol,
                     ", ...] with three axes for the height, width and channels of one image, so all rows "
                     "share one draw; add an axis for the channels"));
  }
}

// Maps that see whole batches, one after the other, though they could see single examples side by side.
void check_batch(const Dataset &batch, const Dataset &map, std::vector<std::string> &warnings) {
  static constexpr std::string_view kExpensive[] = {"decode_image", "decode_jpeg", "decode_png", "resize",
                                                    "random_resized_crop"};
  if (map.kind() == "map_callback") {
    warnings.push_back(base::concat(batch.kind(),
                                    " before map_callback: the function gets whole batches, one at a time; put it "
                                    "before batch, with parallelism, or make it a graph"));
  }
  const Graph *const graph = graph_of(map);
  if (graph == nullptr || map.recipe()->attributes.contains("parallelism") || map.device_plan() != nullptr) return;
  const auto is_expensive = [](const Node &, const OpDefinition &op) { return is_one_of(op.name, kExpensive); };
  const Node *const node = find_node(*graph, is_expensive);
  if (node == nullptr) return;
  warnings.push_back(base::concat(batch.kind(), " before map with ", node->op,
                                  ": the images of a batch are processed one after the other; put the map before batch "
                                  "to process them in parallel"));
}

void check_random(const Dataset &dataset, const Passed &passed, std::vector<std::string> &warnings) {
  const Graph *const graph = graph_of(dataset);
  if (is_random(dataset) && passed.cache) {
    warnings.push_back(base::concat("cache after ", dataset.kind(),
                                    ": every epoch repeats the order of the first one; put cache before ",
                                    dataset.kind()));
  }
  if (graph == nullptr) return;
  const Node *const drawing = find_node(*graph, draws);
  if (passed.cache && drawing != nullptr) {
    warnings.push_back(base::concat("cache after map with ", drawing->op,
                                    ": every epoch repeats the draws of the first one; put cache before the map"));
  }
  check_draws(dataset, *graph, warnings);
}

void check_order(const Dataset &dataset, std::vector<std::string> &warnings) {
  if (dataset.kind() == "shuffle" && is_batch(*origin(dataset))) {
    warnings.push_back(
        "shuffle after batch: whole batches are shuffled and their rows stay together; put shuffle before batch");
  }
  if (dataset.kind() == "shuffle" && origin(dataset)->kind() == "repeat") {
    warnings.push_back(
        "shuffle after repeat: passes overlap, so some elements appear twice before others appear at all; "
        "put shuffle before repeat");
  }
  if (dataset.kind() == "shard" && origin(dataset)->kind() == "shuffle") {
    warnings.push_back(
        "shard after shuffle: every process shuffles all elements, and with different seeds some are lost; put "
        "shard before shuffle");
  }
}

// A pass that ends before that of the cache does keeps nothing.
void check_take(const Dataset &take, std::vector<std::string> &warnings) {
  static constexpr std::string_view kOneForOne[] = {"prefetch", "options", "enumerate", "select", "class_weights"};
  const Dataset *input = take.inputs()[0].get();
  const Cardinality all = input->cardinality();
  while (is_map(*input) || is_one_of(input->kind(), kOneForOne))
    input = input->inputs()[0].get();
  if (!is_cache(*input) || (all.is_exact() && take.cardinality() == all)) return;
  warnings.push_back(
      base::concat(input->kind(),
                   " before take: a pass that ends early does not fill the cache, so every pass computes its "
                   "elements again until one is complete; put take, or split, before ",
                   input->kind()));
}

void walk(const Dataset &dataset, Passed passed, std::vector<std::string> &warnings) {
  check_random(dataset, passed, warnings);
  check_order(dataset, warnings);
  if (dataset.kind() == "take") check_take(dataset, warnings);
  if (is_batch(dataset) && passed.map != nullptr) check_batch(dataset, *passed.map, warnings);
  if (dataset.kind() == "repeat" && passed.cache) {
    warnings.push_back("cache after repeat: all passes are cached as one; put cache before repeat");
  }
  passed.cache = passed.cache || is_cache(dataset);
  if (is_map(dataset)) {
    if (passed.map == nullptr) passed.map = &dataset;
  } else if (dataset.kind() != "select") {
    passed.map = nullptr;
  }
  for (const DatasetRef &input : dataset.inputs())
    walk(*input, passed, warnings);
}

}  // namespace

Result<std::vector<std::string>> lint(const Dataset &dataset) {
  std::vector<std::string> warnings;
  // Behind the prefetch only what costs nothing may stand.
  const Dataset *last = &dataset;
  constexpr std::string_view kFree[] = {"take", "skip", "repeat", "options", "select"};
  while (last->inputs().size() == 1 && is_one_of(last->kind(), kFree))
    last = last->inputs()[0].get();
  if (last->kind() != "prefetch") {
    warnings.push_back(
        "no prefetch at the end: the consumer waits while elements are computed; add prefetch as the last transform");
  }
  walk(dataset, {}, warnings);
  for (std::string &reason : refused_device_maps(dataset))
    warnings.push_back(std::move(reason));
  return warnings;
}

}  // namespace tutti::impl::data
