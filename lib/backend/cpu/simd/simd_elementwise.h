// SPDX-License-Identifier: Apache-2.0
//
// Chains of elementwise f32 operations as one pass over memory. A chain is a short register program; it runs on tiles
// that fit the first-level cache, each instruction as a vector loop over the tile, so that a chain of any length reads
// its inputs and writes its result once.
//
//   ElementProgram program;                                     // relu(x + bias)
//   program.rows = 64; program.columns = 512;
//   program.inputs = {{ElementAccess::dense}, {ElementAccess::column}};
//   program.instructions = {{ElementOp::add, 2, 0, 1}, {ElementOp::relu, 3, 2}};
//   program.finish();
//   run_elementwise(program, 0, program.steps(), inputs, output, scratch);          // scratch_floats() floats
//
// Registers 0 .. inputs-1 are the inputs, instruction i defines register inputs + i; the last one is the result.
// Booleans are bytes 0 or 1 in memory and 0.0 or 1.0 in registers. Immutable after finish(); any number of threads may
// run one program.
#ifndef TUTTI_BACKEND_CPU_SIMD_SIMD_ELEMENTWISE_H_
#define TUTTI_BACKEND_CPU_SIMD_SIMD_ELEMENTWISE_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace tutti::impl::backend::cpu {

enum class ElementOp : uint8_t {
  identity,
  neg,
  abs,
  sign,
  exp,
  log,
  log1p,
  expm1,
  sqrt,
  rsqrt,
  square,
  reciprocal,
  sin,
  cos,
  tangent,
  arc_tangent,
  arc_sine,
  arc_cosine,
  tanh,
  sigmoid,
  relu,
  gelu,
  gelu_tanh,
  silu,
  softplus,
  elu,
  leaky_relu,
  floor,
  ceil,
  round,
  erf,
  logical_not,
  is_finite,
  to_boolean,
  // Made by finish() of several, whose results they give.
  clamp,         ///< a between low and high
  limited_relu,  ///< relu(a), at most high
  limited_sum,   ///< relu(a + constant), at most high
  log_scaled,    ///< log(a) · constant
  mul_scaled,    ///< a · (b · constant)
  prelu,         ///< a where it is above 0, else a · b
  relu_gradient,
  sigmoid_gradient,
  tanh_gradient,
  gelu_gradient,
  gelu_tanh_gradient,
  add,
  sub,
  mul,
  div,
  pow,
  arc_tangent2,
  maximum,
  minimum,
  mod,
  floor_divide,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_xor,
  select,
  sigmoid_cross_entropy,
};

/// The operation of a graph op, if this file has one. `approximate` is the attribute of gelu.
std::optional<ElementOp> element_op(std::string_view op, bool approximate);

/// Operand registers; unused ones are ignored. `constant` is alpha of elu and leaky_relu, and a number of joined ones.
struct ElementInstruction {
  ElementOp op = ElementOp::identity;
  int32_t a = 0;
  int32_t b = 0;
  int32_t c = 0;
  float constant = 0.0f;
  float low = 0.0f;
  float high = 0.0f;
};

/// How an input is spread over the rows x columns of the result.
enum class ElementAccess : uint8_t {
  dense,   ///< one element each
  column,  ///< one element per column: repeats for every row
  row,     ///< one element per row
  scalar,  ///< one element
  part,    ///< one element each, of a row-major matrix with more columns
};

struct ElementInput {
  ElementAccess access = ElementAccess::dense;
  tensor::DType dtype = tensor::DType::f32;  ///< f32, boolean, or an integer or f64 that is converted
  std::optional<float> value = {};           ///< of a scalar that is the same in every run
  int64_t first = 0, pitch = 0;              ///< of a part of a matrix, f32: its first element, and from row to row
};

struct ElementProgram {
  int64_t rows = 1;
  int64_t columns = 0;
  std::vector<ElementInput> inputs;
  std::vector<ElementInstruction> instructions;
  bool boolean_result = false;

  /// In place of the buffer of an input that no instruction reads.
  static constexpr int32_t kUnused = -2;
  // Filled by finish(): which tile buffer each register uses (-1 = memory itself), and how many there are.
  std::vector<int32_t> buffers;
  int32_t buffer_count = 0;
  int64_t tile = 0;        ///< elements of a tile; a multiple of `columns` where rows or columns repeat and are short
  int32_t row_input = -1;  ///< read in place as one number for a whole tile, which lies in one row; or -1

  /// Joins instructions that one pass can do, and gives registers their buffers.
  void finish();
  int64_t scratch_floats() const { return buffer_count * (tile + 64); }
  /// Tiles, or rows where a row takes several: what a run can be cut into.
  int64_t steps() const { return step_elements() > 0 ? (rows * columns + step_elements() - 1) / step_elements() : 0; }
  int64_t step_elements() const { return tile >= columns || rows == 1 ? tile : columns; }
};

/// Steps first .. end - 1 (finish() says how many there are). The result may lie on top of a dense f32 input. Several
/// threads may do steps of one run, each with scratch of its own.
void run_elementwise(const ElementProgram &program, int64_t first, int64_t end, const void *const *inputs, void *output,
                     float *scratch);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SIMD_SIMD_ELEMENTWISE_H_
