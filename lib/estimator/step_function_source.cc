// SPDX-License-Identifier: Apache-2.0
#include "estimator/step_function_source.h"

#include <utility>

namespace tutti::impl::estimator {

using base::Result;
using base::Status;

namespace {

Result<StepModel> build(const StepFunctionSource &source, const graph::Model &train, const data::ElementSpec &input) {
  TUTTI_ASSIGN(StepModel model, build_step_model(source.function, source.mode, input));
  TUTTI_TRY(check_variables(train, model.model, source.mode));
  return model;
}

}  // namespace

Result<distribute::StepFunction> build_step_function(const StepFunctionSource &source, const graph::Model &train,
                                                     const data::ElementSpec &input) {
  const data::ElementSpec &spec = source.input ? *source.input : input;
  Result<StepModel> model = build(source, train, spec);
  if (!model.ok())
    return model.status().wrap(base::concat("step function '", source.name, "' in mode ", name(source.mode)));
  return distribute::StepFunction{source.name, std::move(model->model), spec, source.mode == Mode::train,
                                  model->has_loss};
}

}  // namespace tutti::impl::estimator
