// SPDX-License-Identifier: Apache-2.0
//
// What tests of predictions share: an engine with weights that follow from its model, and rows for it.
#ifndef TUTTI_TESTS_DISTRIBUTE_PREDICT_CASE_H_
#define TUTTI_TESTS_DISTRIBUTE_PREDICT_CASE_H_

#include <memory>
#include <utility>
#include <vector>

#include "distribute/predict/predict_engine.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing {

/// Weights, all f32: numbers that follow from variable and place; `change` is added to the last one of each variable.
inline impl::base::Ref<impl::checkpoint::WeightVersion> numbered_version(const Model &model, float change = 0) {
  std::vector<impl::checkpoint::StateEntry> entries;
  std::vector<Tensor> tensors;
  for (const auto &variable : model.variables) {
    const auto shape = assert_ok_value(impl::tensor::Shape::make(variable.dims));
    Tensor value = assert_ok_value(Tensor::allocate(variable.dtype, shape));
    for (int64_t i = 0; i < value.elements(); ++i)
      value.mutable_data_as<float>()[i] = static_cast<float>(row_feature(i, static_cast<int64_t>(tensors.size())));
    value.mutable_data_as<float>()[value.elements() - 1] += change;
    entries.push_back({variable.name, impl::checkpoint::StateRole::weight, variable.dtype, shape});
    tensors.push_back(std::move(value));
  }
  return impl::base::make_ref<impl::checkpoint::TensorVersion>(3, std::move(entries), std::move(tensors));
}

/// With numbered_version() as its weights.
inline std::shared_ptr<impl::distribute::PredictEngine> open_engine(
    const Model &model, const StrategyRef &strategy, const impl::distribute::PredictOptions &options = {}) {
  auto engine = assert_ok_value(impl::distribute::PredictEngine::open(model, strategy, options));
  assert_ok(engine->set_weights(numbered_version(model)));
  return engine;
}

/// f32 [rows, columns] of row_feature().
inline Tensor row_features(int64_t rows, int64_t columns) {
  Tensor x = assert_ok_value(Tensor::zeros(DType::f32, {rows, columns}));
  for (int64_t i = 0; i < x.elements(); ++i)
    x.mutable_data_as<float>()[i] = static_cast<float>(row_feature(i / columns, i % columns));
  return x;
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DISTRIBUTE_PREDICT_CASE_H_
