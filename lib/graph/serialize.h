// SPDX-License-Identifier: Apache-2.0
//
// Graphs and models as JSON: what crosses the plug-in boundary and what checkpoints keep. The form is documented in
// graph/README.md. Constants are base64 of little-endian row-major bytes.
//
// Reading trusts nothing: sizes are bounded, every id is checked, each value must be defined once and before its use,
// every op and revision must be known (the message names the unknown one), and shapes are inferred again and must
// agree.
//
// Threads: pure functions.
#ifndef TUTTI_GRAPH_SERIALIZE_H_
#define TUTTI_GRAPH_SERIALIZE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "graph/graph.h"
#include "graph/model.h"

namespace tutti::impl::graph {

/// Bounds of what is read.
struct SerializeLimits {
  size_t text_bytes = size_t{1} << 30;
  size_t nodes = 1'000'000;
  size_t values = 4'000'000;
  size_t region_depth = 16;
  size_t rank = 8;
};

base::Json to_json(const Graph &graph);
base::Result<Graph> graph_from_json(const base::Json &json, const SerializeLimits &limits = {});

/// The same as text; equal graphs give equal text.
std::string to_json_text(const Graph &graph);
base::Result<Graph> graph_from_text(std::string_view text, const SerializeLimits &limits = {});

/// A hash of the serialised form: equal on every rank for equal graphs, stable between runs and releases of one
/// revision of the form.
uint64_t fingerprint(const Graph &graph);

base::Json to_json(const Model &model);
base::Result<Model> model_from_json(const base::Json &json, const SerializeLimits &limits = {});

/// Attributes alone, for optimizer and initializer specs: {"name": {"i64": 3}, ...}.
base::Json to_json(const Attributes &attributes);
base::Result<Attributes> attributes_from_json(const base::Json &json);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_SERIALIZE_H_
