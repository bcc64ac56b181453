// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "backend/cpu/dnnl/dnnl_product.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/lower/product_times.h"
#include "backend/cpu/lower/variable_update.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/shapes/strided_view.h"
#include "backend/cpu/simd/simd_elementwise.h"
#include "backend/cpu/simd/simd_gemm.h"
#include "backend/cpu/simd/simd_split_gemm.h"

namespace tutti::impl::backend::cpu {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

/// A product of matrices, repeated over the leading axes.
struct DenseShape {
  GemmShape gemm;
  std::vector<int64_t> a_offsets, b_offsets;  ///< one for each product; one entry when there is one
};

/// Offsets of the matrices of an operand, in the order of the result's leading axes.
std::vector<int64_t> matrix_offsets(const std::vector<int64_t> &dims, const std::vector<int64_t> &result) {
  const size_t leading = result.size() - 2;
  const size_t own = dims.size() - 2;
  const int64_t matrix = dims[own] * dims[own + 1];
  std::vector<int64_t> offsets = {0};
  int64_t step = matrix;
  for (size_t i = 0; i < leading; ++i) {
    const size_t axis = leading - 1 - i;
    const int64_t n = i < own ? dims[own - 1 - i] : 1;
    std::vector<int64_t> next;
    for (int64_t k = 0; k < result[axis]; ++k) {
      for (int64_t offset : offsets)
        next.push_back(offset + (n == 1 ? 0 : k * step));
    }
    offsets = std::move(next);
    step *= n;
  }
  return offsets;
}

DenseShape shape_of(const LoweredGraph &l, const Node &node) {
  const std::vector<int64_t> &a = l.value(node.inputs[0]).dims;
  const std::vector<int64_t> &b = l.value(node.inputs[1]).dims;
  const std::vector<int64_t> &y = l.value(node.outputs[0]).dims;
  const bool transpose_a = flag(node, "transpose_a");
  const bool transpose_b = flag(node, "transpose_b");
  DenseShape shape;
  GemmShape &g = shape.gemm;
  const int64_t a_columns = a.back();
  const int64_t b_columns = b.back();
  g.m = y[y.size() - 2];
  g.n = y.back();
  g.k = transpose_a ? a[a.size() - 2] : a.back();
  g.a_row = transpose_a ? 1 : a_columns;
  g.a_column = transpose_a ? a_columns : 1;
  g.b_row = transpose_b ? 1 : b_columns;
  g.b_column = transpose_b ? b_columns : 1;
  g.c_row = g.n;
  if (b.size() == 2 && !transpose_a) {
    // Leading axes of A are more rows.
    for (size_t axis = 0; axis + 2 < y.size(); ++axis)
      g.m *= y[axis];
    shape.a_offsets = shape.b_offsets = {0};
    return shape;
  }
  shape.a_offsets = matrix_offsets(a, y);
  shape.b_offsets = matrix_offsets(b, y);
  return shape;
}

/// What follows the product in its group.
struct DenseFollowing {
  ValueId bias = kNoValue;
  ValueId mask = kNoValue;
  bool relu = false;
};

DenseFollowing following_dense(const Lowering &l, const Group &group) {
  DenseFollowing following;
  ValueId y = l.graph().step(group.steps.front()).outputs[0];
  for (size_t i = 1; i < group.steps.size(); ++i) {
    const Node &node = l.graph().step(group.steps[i]);
    if (node.op == "add") following.bias = node.inputs[0] == y ? node.inputs[1] : node.inputs[0];
    if (node.op == "relu_gradient") following.mask = node.inputs[1];
    if (node.op == "relu") following.relu = true;
    y = node.outputs[0];
  }
  return following;
}

/// How the work of a dense layer is cut into parts: by products, or by the longer side of the result, so that the
/// shorter operand is what several threads read.
struct DenseCut {
  enum class By : uint8_t { product, row, column };
  By by = By::product;
  int64_t unit = 1;  ///< rows or columns of an item
  Parts parts;

  static DenseCut make(const DenseShape &shape, int32_t threads, bool splits) {
    // About 7 us. With few rows B's elements have to come from memory as fast.
    constexpr int64_t kPartFlops = 1'000'000, kFlopsPerElement = 16;
    // Each part of a product that is split packs the shorter operand for itself.
    const int32_t parts_per_thread = splits ? 1 : 2;
    const GemmShape &g = shape.gemm;
    const auto products = static_cast<int64_t>(shape.a_offsets.size());
    DenseCut cut;
    int64_t items = products;
    int64_t flops = 2 * g.m * g.n * g.k + kFlopsPerElement * g.n * g.k;
    if (products < threads) {
      cut.by = g.m >= g.n ? By::row : By::column;
      cut.unit = splits ? kSplitUnit : cut.by == By::row ? kRowUnit : kColumnUnit;
      const int64_t side = cut.by == By::row ? g.m : g.n;
      items = (side + cut.unit - 1) / cut.unit;
      flops = flops / std::max<int64_t>(side, 1) * cut.unit * products;
    }
    cut.parts = Parts(items, kPartFlops / std::max<int64_t>(flops, 1) + 1, threads, parts_per_thread);
    return cut;
  }

  // What the kernel keeps in registers, or twice that.
  static constexpr int64_t kRowUnit = 12;
  static constexpr int64_t kColumnUnit = 32;
  static constexpr int64_t kSplitUnit = 64;
};

/// What a part does: some products, or some of the rows or columns of each.
struct DenseSlice {
  GemmShape gemm;
  int64_t first_product = 0, end_product = 0;
  int64_t row = 0, column = 0;
};

std::vector<DenseSlice> slices_of(const DenseShape &shape, const DenseCut &cut) {
  std::vector<DenseSlice> slices;
  for (int32_t i = 0; i < cut.parts.count(); ++i) {
    const Range range = cut.parts[i];
    DenseSlice slice{shape.gemm, 0, static_cast<int64_t>(shape.a_offsets.size())};
    if (cut.by == DenseCut::By::product) {
      slice.first_product = range.begin;
      slice.end_product = range.end;
    } else if (cut.by == DenseCut::By::row) {
      slice.row = range.begin * cut.unit;
      slice.gemm.m = std::min(shape.gemm.m, range.end * cut.unit) - slice.row;
    } else {
      slice.column = range.begin * cut.unit;
      slice.gemm.n = std::min(shape.gemm.n, range.end * cut.unit) - slice.column;
    }
    slices.push_back(slice);
  }
  return slices;
}

/// One dense layer: products with what follows them.
struct Dense {
  DenseShape shape;
  std::vector<DenseSlice> slices;
  bool relu = false;
  bool splits = false;  ///< factors are split for the matrix unit
  BufferId a = -1, b = -1, bias = -1, mask = -1, c = -1, scratch = -1;
  int64_t scratch_floats = 0;

  void run(const RunContext &context, const DenseSlice &slice, int32_t thread) const {
    const int64_t matrix = shape.gemm.m * shape.gemm.n;
    for (int64_t i = slice.first_product; i < slice.end_product; ++i) {
      const int64_t at = i * matrix + slice.row * slice.gemm.c_row + slice.column;
      const auto product = static_cast<size_t>(i);
      GemmEpilogue epilogue;
      epilogue.bias = bias < 0 ? nullptr : context.in(bias) + slice.column;
      epilogue.relu = relu;
      epilogue.mask = mask < 0 ? nullptr : context.in(mask) + at;
      const float *const left = context.in(a) + shape.a_offsets[product] + slice.row * slice.gemm.a_row;
      const float *const right = context.in(b) + shape.b_offsets[product] + slice.column * slice.gemm.b_column;
      float *const work = context.out(scratch) + thread * scratch_floats;
      if (splits) {
        split_gemm_beside(context.device, slice.gemm, left, right, context.out(c) + at, epilogue, work);
      } else {
        gemm(slice.gemm, left, right, context.out(c) + at, epilogue, work);
      }
    }
  }
};

/// One product of dense matrices as the library has them; nothing if it is none.
std::optional<ProductRequest> product_of(const DenseShape &shape) {
  const GemmShape &g = shape.gemm;
  ProductRequest request;
  request.m = g.m, request.n = g.n, request.k = g.k;
  request.turned = g.a_row == 1 && g.a_column == g.m;
  request.b_turned = !(g.b_column == 1 && g.b_row == g.n);
  const bool is_dense = (!request.b_turned || (g.b_row == 1 && g.b_column == g.k)) &&
                        (request.turned || (g.a_column == 1 && g.a_row == g.k));
  if (!is_dense || shape.a_offsets.size() != 1) return std::nullopt;
  return request;
}

/// dy becomes 0 where y is not positive, in place.
void emit_relu_gradient(Lowering &l, ValueId y, ValueId dy) {
  ElementProgram program;
  program.columns = l.value(dy).elements;
  program.inputs = {{}, {}};
  program.instructions = {{ElementOp::relu_gradient, 0, 1}};
  program.finish();
  const BufferId to = l.read(dy), from = l.read(y);
  const BufferId scratch = l.scratch(program.scratch_floats() * static_cast<int64_t>(sizeof(float)));
  l.emit("simd:relu_gradient", [=, program = std::move(program)](const RunContext &c) {
    const void *inputs[] = {c.in(to), c.in(from)};
    run_elementwise(program, 0, program.steps(), inputs, c.out(to), c.out(scratch));
  });
}

/// A large product of one thread as the library's; false when ours had better do it, as it does where the product
/// `splits` its factors for the matrix unit. Level `fast` only: which of them does it depends on the number of rows and
/// of threads, and they round differently.
bool lower_large_product(Lowering &l, const Node &node, const DenseFollowing &following, ProductRequest request,
                         bool splits, ValueId y) {
  if (l.threads() > 1 || !l.fast()) return false;
  request.bf16 = l.graph().allows_bf16();
  request.bf16 = request.bf16 && ProductTimes::of_process().pays(request);
  if (splits && !request.bf16) return false;
  request.bias = following.bias != kNoValue;
  request.relu = following.relu;
  if (!ProductPlan::suits(request) || (following.mask != kNoValue && !request.bf16)) return false;
  const auto plan = ProductPlan::make(request);
  if (!plan.ok()) return false;
  ProductBuffers buffers;
  buffers.a = l.read(node.inputs[0]);
  buffers.b = l.read(node.inputs[1]);
  buffers.bias = l.read(following.bias);
  buffers.c = l.write(y);
  if ((*plan)->scratch_bytes() > 0) buffers.scratch = l.scratch((*plan)->scratch_bytes());
  const char *suffix = request.bias ? (request.relu ? "+bias+relu" : "+bias") : (request.relu ? "+relu" : "");
  const char *family = request.bf16 ? "dnnl_bf16:" : "dnnl_product:";
  l.emit_kernel(base::concat(family, (*plan)->implementation(), suffix), (*plan)->kernel(buffers));
  if (following.mask != kNoValue) emit_relu_gradient(l, following.mask, y);
  return true;
}

int64_t scratch_floats(const std::vector<DenseSlice> &slices, int64_t (*of_shape)(const GemmShape &)) {
  int64_t floats = 0;
  for (const DenseSlice &slice : slices)
    floats = std::max(floats, (of_shape(slice.gemm) + 15) / 16 * 16);
  return floats;
}

/// The gradient of a variable, and the variable's update piece by piece. The first factor may be columns of a matrix.
bool lower_dense_update(Lowering &l, const Group &group) {
  const Node &update = l.graph().step(group.steps.back()), &node = l.graph().step(group.steps.end()[-2]);
  DenseShape shape = shape_of(l.graph(), node);
  SubmatrixView factor{node.inputs[0]};
  if (group.steps.size() > 2) {
    factor = *submatrix_view(l.graph(), l.graph().step(group.steps.front()));
    (flag(node, "transpose_a") ? shape.gemm.a_column : shape.gemm.a_row) = factor.pitch;
  }
  const bool splits = l.fast() && split_gemm_update_suits(shape.gemm);
  const DenseCut cut = DenseCut::make(shape, l.threads(), splits);
  std::vector<DenseSlice> slices = slices_of(shape, cut);
  const int64_t scratch_size =
      scratch_floats(slices, splits ? split_gemm_update_scratch_floats : gemm_update_scratch_floats);
  const BufferId a = l.read(factor.source), b = l.read(node.inputs[1]);
  const VariableUpdate variable(l, update);
  const BufferId scratch = l.scratch(cut.parts.threads() * scratch_size * static_cast<int64_t>(sizeof(float)));
  l.emit(base::concat(splits ? "tiles:gemm+" : "simd:gemm+", variable.name()),
         [=, slices = std::move(slices)](const RunContext &c) {
           if (!variable.is_allowed(c)) return variable.keep(c, {0, variable.elements()});
           const UpdateRule rule = variable.rule(c);
           c.for_each(static_cast<int32_t>(slices.size()), [&](int32_t part, int32_t thread) {
             const DenseSlice &slice = slices[static_cast<size_t>(part)];
             const GemmShape &g = slice.gemm;
             const auto multiply = splits ? split_gemm_update : gemm_update;
             multiply(g, c.in(a) + factor.first + slice.row * g.a_row, c.in(b) + slice.column * g.b_column, rule,
                      variable.arrays(c, slice.row * g.c_row + slice.column), c.out(scratch) + thread * scratch_size);
           });
         });
  return true;
}

}  // namespace

std::vector<ProductRequest> product_questions(const LoweredGraph &graph) {
  std::vector<ProductRequest> questions;
  if (!graph.allows_bf16() || graph.threads() > 1) return questions;
  for (int32_t step = 0; step < graph.step_count(); ++step) {
    const Node &node = graph.step(step);
    if (node.op != "matmul" || graph.value(node.outputs[0]).dtype != tensor::DType::f32) continue;
    std::optional<ProductRequest> question = product_of(shape_of(graph, node));
    if (!question) continue;
    question->bf16 = true;
    questions.push_back(*question);
  }
  return questions;
}

bool lower_dense(Lowering &l, const Group &group) {
  const Node &last = l.graph().step(group.steps.back());
  if (is_update(last.op)) return lower_dense_update(l, group);
  const Node &node = l.graph().step(group.steps.front());
  if (!l.is_f32(node.outputs[0])) return false;
  const DenseFollowing following = following_dense(l, group);
  Dense dense;
  dense.shape = shape_of(l.graph(), node);
  const ValueId y = last.outputs[0];
  const std::optional<ProductRequest> product = product_of(dense.shape);
  dense.splits = l.fast() && split_gemm_suits(dense.shape.gemm);
  if (product && lower_large_product(l, node, following, *product, dense.splits, y)) return true;
  const DenseCut cut = DenseCut::make(dense.shape, l.threads(), dense.splits);
  dense.slices = slices_of(dense.shape, cut);
  dense.relu = following.relu;
  dense.a = l.read(node.inputs[0]);
  dense.b = l.read(node.inputs[1]);
  dense.bias = l.read(following.bias);
  dense.mask = l.read(following.mask);
  dense.c = l.write(y);
  dense.scratch_floats = scratch_floats(dense.slices, dense.splits ? split_gemm_scratch_floats : gemm_scratch_floats);
  dense.scratch = l.scratch(cut.parts.threads() * dense.scratch_floats * static_cast<int64_t>(sizeof(float)));
  std::string name = dense.splits ? "tiles:gemm" : "simd:gemm";
  if (dense.bias >= 0) name += "+bias";
  if (dense.relu) name += "+relu";
  if (dense.mask >= 0) name += "+relu_gradient";
  l.emit(name, [dense = std::move(dense)](const RunContext &context) {
    context.for_each(static_cast<int32_t>(dense.slices.size()), [&](int32_t part, int32_t thread) {
      dense.run(context, dense.slices[static_cast<size_t>(part)], thread);
    });
  });
  return true;
}

}  // namespace tutti::impl::backend::cpu
