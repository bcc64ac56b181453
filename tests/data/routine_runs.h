// SPDX-License-Identifier: Apache-2.0
//
// A graph run once by the Routine, on tensors.
//
//   const auto y = run_routine([](GraphBuilder &b, const auto &x) { return b.op("bytes_length", x); }, {texts});
#ifndef TUTTI_TESTS_DATA_ROUTINE_RUNS_H_
#define TUTTI_TESTS_DATA_ROUTINE_RUNS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/graph/routine.h"
#include "graph/builder.h"
#include "tensor/bytes_tensor.h"
#include "testing.h"

namespace tutti::testing {

using BuildRoutine =
    std::function<impl::graph::ValueId(impl::graph::GraphBuilder &, const impl::graph::GraphBuilder::Values &)>;

inline impl::tensor::Tensor text_tensor(const std::vector<std::string> &texts) {
  return impl::tensor::make_bytes_tensor({static_cast<int64_t>(texts.size())}, texts).value();
}

/// The one result of the graph on these inputs, whose dims are declared as they are; `scalars` as a map gives them.
inline impl::base::Result<impl::tensor::Tensor> run_routine(const BuildRoutine &build,
                                                            const std::vector<impl::tensor::Tensor> &inputs,
                                                            const impl::data::GraphScalars &scalars = {},
                                                            std::shared_ptr<impl::data::GraphRunner> runner = nullptr) {
  impl::graph::GraphBuilder b;
  impl::graph::GraphBuilder::Values values;
  std::vector<impl::data::RoutineValue> operands;
  for (const impl::tensor::Tensor &input : inputs) {
    const auto extents = input.shape().extents();
    values.push_back(
        b.input("i" + std::to_string(values.size()), input.dtype(), impl::graph::Dims(extents.begin(), extents.end())));
    const bool is_bytes = input.dtype() == impl::tensor::DType::bytes;
    operands.push_back({input.dtype(), input.shape(), input.data(),
                        is_bytes ? static_cast<const char *>(input.buffer()->data()) : nullptr});
  }
  b.set_result("y", build(b, values));
  TUTTI_ASSIGN(impl::graph::Graph graph, b.finish_graph());
  TUTTI_ASSIGN(const auto plan,
               impl::data::RoutinePlan::create(std::make_shared<const impl::graph::Graph>(std::move(graph))));
  impl::data::Routine routine(plan, std::move(runner), std::make_shared<impl::data::ResultPools>());
  void *const target = nullptr;
  TUTTI_TRY(routine.run(operands, scalars, {&target, 1}));
  return routine.result_tensor(0, routine.result(0).shape);
}

/// The same op with attributes on all inputs.
inline impl::base::Result<impl::tensor::Tensor> run_routine_op(const std::string &op,
                                                               const impl::graph::Attributes &attributes,
                                                               const std::vector<impl::tensor::Tensor> &inputs,
                                                               const impl::data::GraphScalars &scalars = {}) {
  return run_routine([&](impl::graph::GraphBuilder &b, const auto &x) { return b.op(op, x, attributes); }, inputs,
                     scalars);
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DATA_ROUTINE_RUNS_H_
