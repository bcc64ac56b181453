// SPDX-License-Identifier: Apache-2.0
//
// Training steps of small well-known networks, for tests and benchmarks of backends: the two graphs of a step
// (accumulate: forward and backward; finish: the update), the state they need, and a trainer that runs them on any
// device.
//
//   StepModel model = make_step_model("C", options);       // "A" .. "E", see kModels
//   TUTTI_ASSIGN(StepTrainer trainer, StepTrainer::create(backend, model, 64));
//   TUTTI_TRY(trainer.step());
//   double loss = trainer.loss();
//
// A: 10-16-2 perceptron. B: 784-512-256-10 perceptron. C: two 3x3 convolutions, max-pool, two dense layers on 28x28x1.
// D: ResNet-20 on 32x32x3. E: depthwise-separable network on 32x32x3. All train with Adam on cross-entropy.
#ifndef TUTTI_TESTS_BACKEND_CPU_STEP_MODELS_H_
#define TUTTI_TESTS_BACKEND_CPU_STEP_MODELS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "backend/state_table.h"
#include "base/status.h"
#include "graph/graph.h"

namespace tutti::testing {

struct StepVariable {
  std::string name;
  std::vector<int64_t> dims;
  double scale = 0;   ///< initial values: uniform in ±scale
  double offset = 0;  ///< plus this
};

struct StepModel {
  std::string name;
  std::vector<int64_t> image;  ///< dims of one row of the input
  int64_t classes = 10;
  impl::graph::Graph accumulate;
  impl::graph::Graph finish;
  std::vector<StepVariable> variables;
  double dense_flops = 0;  ///< of one row, forward and backward, multiplications and additions counted
};

/// A model by letter; `width_divisor` makes small ones for tests.
impl::base::Result<StepModel> make_step_model(const std::string &name, int64_t width_divisor = 1);

/// One replica on one device.
class StepTrainer {
 public:
  static impl::base::Result<StepTrainer> create(impl::backend::BackendRef backend, const StepModel &model,
                                                int64_t batch, impl::backend::Level level = impl::backend::Level::fast,
                                                int32_t flags = 0);

  impl::base::Status step();
  double loss() const;
  /// A variable in row-major order; of what lies at "weight/" or, before the update, at "gradient/0/".
  impl::base::Result<std::vector<float>> values(const std::string &prefix, const std::string &name) const;
  std::string accumulate_report() const { return accumulate_->description().report_json; }
  std::string finish_report() const { return finish_->description().report_json; }
  int64_t workspace_bytes() const;

 private:
  impl::base::Status plan_state(const StepModel &model);
  impl::base::Status fill(const StepModel &model);

  impl::backend::BackendRef backend_;
  impl::backend::DeviceRef device_;
  int64_t batch_ = 0;
  impl::backend::Level level_ = impl::backend::Level::fast;
  std::string accumulate_text_, finish_text_;
  impl::graph::SymbolBindings bindings_;
  impl::backend::StateTable state_;
  std::vector<impl::backend::Buffer> arenas_;
  impl::backend::Buffer workspace_, images_, labels_;
  impl::backend::Stream stream_;
  impl::backend::ExecutableRef accumulate_, finish_;
  impl::backend::Program accumulate_program_, finish_program_;
  impl::backend::RunScalars scalars_;
};

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_CPU_STEP_MODELS_H_
