// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lower/plan_layouts.h"

#include <algorithm>
#include <vector>

#include "backend/cpu/dnnl/layouts.h"
#include "backend/cpu/lower/fusion.h"
#include "backend/cpu/lower/image_layouts.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/lower/product_times.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/lowered_graph.h"
#include "base/json.h"

namespace tutti::impl::backend::cpu {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;

namespace {

/// Graphs without gradients answer requests, which may have one row as well as many.
void add_single_rows(std::vector<ConvolutionQuestion> &questions) {
  const bool trains = std::any_of(questions.begin(), questions.end(), [](const ConvolutionQuestion &question) {
    return question.pass != ConvolutionPass::forward;
  });
  if (trains) return;
  for (size_t i = questions.size(); i-- > 0;) {
    questions.push_back(questions[i]);
    questions.back().shape.rows = 1;
  }
}

/// The step that reads a value from state, -1 when it comes from elsewhere.
int32_t reading_step(const LoweredGraph &graph, int32_t before, graph::ValueId id) {
  for (int32_t step = 0; step < before; ++step) {
    if (graph.step(step).op == "state_read" && graph.step(step).outputs[0] == id) return step;
  }
  return -1;
}

}  // namespace

Result<std::string> plan_layouts(const tutti_compile_request &request, const PlanCache &cache,
                                 const ConvolutionTimes::Log &log) {
  TUTTI_ASSIGN(const LoweredGraph graph, LoweredGraph::decode(request));
  // First: what is fused depends on it.
  const std::vector<ProductRequest> products = product_questions(graph);
  if (!products.empty()) ProductTimes::of_process().measure(products, cache, log);
  const FusionPlan fusion = FusionPlan::make(graph);
  std::vector<ConvolutionQuestion> questions = convolution_questions(graph, fusion);
  if (!questions.empty()) {
    add_single_rows(questions);
    ConvolutionTimes::of_process().measure(questions, cache, log);
  }
  const ImageLayouts images = ImageLayouts::make(graph, fusion);
  JsonArray proposals;
  for (int32_t step = 0; step < graph.step_count(); ++step) {
    const graph::Node &node = graph.step(step);
    if (node.op != "conv2d") continue;
    const int32_t read = reading_step(graph, step, node.inputs[1]);
    if (read < 0) continue;
    const std::string layout = preferred_kernel_layout(graph, fusion, images, step);
    if (layout.empty()) continue;
    proposals.push_back(JsonObject{{"name", text(graph.step(read), "entry")},
                                   {"layout", layout},
                                   {"storage_bytes", storage_bytes(graph.value(node.inputs[1]), layout)},
                                   {"alignment", 64}});
  }
  return Json(std::move(proposals)).dump();
}

}  // namespace tutti::impl::backend::cpu
