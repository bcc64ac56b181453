// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates: shape rule. Inputs are arrays of one shape but for the scalars lr, iteration and ok. Updates of
// rows: those of sum_rows, rows_at and row_update.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {

base::Status infer_update(InferContext &context) {
  const std::vector<InputDefinition> &inputs = context.definition().inputs;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const bool is_scalar = inputs[i].name == "lr" || inputs[i].name == "iteration" || inputs[i].name == "ok";
    TUTTI_TRY(is_scalar ? require_scalar(context, i) : require_same_dims(context, 0, i));
  }
  for (const OutputDefinition &output : context.definition().outputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].name == output.name) context.add_output(context.input(i).dtype, context.dims(i));
    }
  }
  return {};
}

namespace {

/// Input `index` is a vector of places or indices of so many rows.
base::Status require_row_count(const InferContext &context, size_t index, size_t rows) {
  if (context.rank(rows) == 0) return context.input_error(rows, "is a scalar, expected rows");
  return require_vector(context, index, context.dims(rows)[0]);
}

/// The dims of input `index` with another number of rows.
Dims with_rows(const InferContext &context, size_t index, const Dim &rows) {
  Dims dims = context.dims(index);
  dims[0] = rows;
  return dims;
}

}  // namespace

base::Status infer_sum_rows(InferContext &context) {
  TUTTI_ASSIGN(const SumRowsAttributes attributes, SumRowsAttributes::from(context.node()));
  TUTTI_TRY(require_shape(context, "first", attributes.first));
  TUTTI_TRY(require_shape(context, "count", attributes.count));
  TUTTI_TRY(require_row_count(context, 1, 0));
  context.add_output(context.input(0).dtype, context.dims(0));
  context.add_output(tensor::DType::i64, context.dims(1));
  return {};
}

base::Status infer_rows_at(InferContext &context) {
  if (context.rank(0) == 0) return context.input_error(0, "is a scalar, expected rows");
  TUTTI_TRY(context.require_rank(1, 1));
  context.add_output(context.input(0).dtype, with_rows(context, 0, context.dims(1)[0]));
  return {};
}

base::Status infer_row_update(InferContext &context) {
  if (context.rank(0) == 0) return context.input_error(0, "is a scalar, expected rows");
  TUTTI_TRY(require_row_count(context, 2, 1));
  if (context.dims(1) != with_rows(context, 0, context.dims(1)[0])) {
    return context.inputs_error(0, 1, "do not fit: expected rows alike");
  }
  context.add_output(context.input(0).dtype, context.dims(0));
  return {};
}

}  // namespace tutti::impl::graph::ops
