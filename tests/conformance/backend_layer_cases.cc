// SPDX-License-Identifier: Apache-2.0
//
// Cases of the ops that layers, losses and optimizers are made of.
#include <array>
#include <utility>

#include "backend_cases.h"

namespace tutti::impl::conformance {

using graph::Attributes;
using graph::Dims;
using graph::GraphBuilder;
using Ints = std::vector<int64_t>;
using Values = GraphBuilder::Values;

namespace {

const DType kFloats[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

void add_matmuls(std::vector<OpCase> &cases) {
  const Ints kSizes[] = {{1, 1, 1}, {0, 3, 4}, {3, 0, 4}, {7, 5, 3}, {33, 17, 65}, {1, 64, 10}, {5, 300, 1}};
  const std::pair<ShapeDims, ShapeDims> kBatches[] = {{{}, {}}, {{2}, {2}}, {{3, 1}, {2}}, {{2}, {}}, {{0}, {1}}};
  for (const Ints &size : kSizes) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const auto &[a_batch, b_batch] : kBatches) {
          ShapeDims a = a_batch, b = b_batch;
          for (const int64_t dim : transpose_a ? Ints{size[1], size[0]} : Ints{size[0], size[1]})
            a.push_back(dim);
          for (const int64_t dim : transpose_b ? Ints{size[2], size[1]} : Ints{size[1], size[2]})
            b.push_back(dim);
          const Attributes attributes{{"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
          cases.push_back({"matmul", {{DType::f32, a}, {DType::f32, b}}, attributes});
          if (size[0] != 7) continue;
          for (const DType dtype : {DType::f64, DType::f16, DType::bf16})
            cases.push_back({"matmul", {{dtype, a}, {dtype, b}}, attributes});
        }
      }
    }
  }
}

/// Of sizes that take several tiles, or sums in several parts, with edges.
void add_long_matmuls(std::vector<OpCase> &cases) {
  const Ints kSizes[] = {{250, 70, 120}, {128, 300, 64}, {3, 1030, 5}, {36, 520, 20}};
  for (const Ints &size : kSizes) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        const ShapeDims a = transpose_a ? ShapeDims{size[1], size[0]} : ShapeDims{size[0], size[1]};
        const ShapeDims b = transpose_b ? ShapeDims{size[2], size[1]} : ShapeDims{size[1], size[2]};
        const Attributes attributes{{"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
        cases.push_back({"matmul", {{DType::f32, a}, {DType::f32, b}}, attributes});
        for (const DType dtype : {DType::f64, DType::f16, DType::bf16})
          cases.push_back({"matmul", {{dtype, a}, {dtype, b}}, attributes, {}, 0, dtype == DType::f64 ? 0 : 1e-2});
      }
    }
  }
  // Batches of rows by one matrix, and axes that are repeated in turn.
  cases.push_back({"matmul", {{DType::f32, {4, 3, 9, 20}}, {DType::f32, {20, 12}}}});
  cases.push_back({"matmul", {{DType::f32, {2, 1, 3, 5, 8}}, {DType::f32, {4, 1, 8, 4}}}});
}

/// relu(x w + bias) where some rows of x or some biases are NaN: what a NaN is part of is one. Before, all are whole
/// numbers, of which 0 becomes NaN.
void add_relus_of_nan(std::vector<OpCase> &cases) {
  for (const DType dtype : kFloats) {
    for (const auto &[m, k, n] : {std::array<int64_t, 3>{7, 5, 3}, {33, 6, 65}, {128, 8, 64}}) {
      for (const size_t broken : {0, 2}) {
        const auto build = [=](GraphBuilder &builder, Values inputs) -> Values {
          const graph::ValueId size = builder.unary("abs", inputs[broken]);
          inputs[broken] = builder.add(inputs[broken], builder.op("div", {builder.constant(0.0, dtype), size}));
          return {builder.unary("relu", builder.add(builder.matmul(inputs[0], inputs[1]), inputs[2]))};
        };
        cases.push_back({"matmul",
                         {whole(dtype, {m, k}, -8, 8), whole(dtype, {k, n}, -3, 4), whole(dtype, {n}, -8, 8)},
                         {},
                         build});
      }
    }
  }
}

/// conv2d, then both gradients of it with the result's values as dy.
void add_convolution(std::vector<OpCase> &cases, DType dtype, ShapeDims image, ShapeDims kernel,
                     Attributes attributes) {
  const ShapeDims bias{kernel[3]};
  cases.push_back({"conv2d", {{dtype, image}, {dtype, kernel}}, attributes});
  cases.push_back({"conv2d", {{dtype, image}, {dtype, kernel}, {dtype, bias}}, attributes});
  const auto gradients = [=](GraphBuilder &builder, const Values &inputs) -> Values {
    const graph::ValueId y = builder.op("conv2d", {inputs[0], inputs[1]}, attributes);
    Attributes for_input = attributes, for_kernel = attributes;
    for_input.emplace("input_dims", graph::to_dims(image));
    for_kernel.emplace("kernel_dims", graph::to_dims(kernel));
    // A sign keeps dy of one size whatever the number of channels.
    const graph::ValueId dy = builder.unary("sign", y);
    return {builder.op("conv2d_input_gradient", {dy, inputs[1]}, for_input),
            builder.op("conv2d_kernel_gradient", {inputs[0], dy}, for_kernel)};
  };
  // Whole numbers: sums are exact in any order, so no sign depends on rounding.
  cases.push_back(
      {"conv2d gradients", {whole(dtype, image, -2, 3), whole(dtype, kernel, -2, 3)}, attributes, gradients});
}

/// Windows that lie in the padding altogether, of which the bias alone is left: at all four sides, and added to images.
void add_empty_windows(std::vector<OpCase> &cases) {
  for (const int64_t channels : {4, 16, 32}) {
    for (const Ints &stride : {Ints{1, 1}, Ints{1, 2}, Ints{2, 1}}) {
      const Attributes attributes{{"padding", std::string("explicit")},
                                  {"pads", Ints{2, 3, 4, 2}},
                                  {"stride", stride},
                                  {"dilation", Ints{1, 2}}};
      add_convolution(cases, DType::f32, {2, 5, 6, channels}, {2, 2, channels, channels}, attributes);
      const int64_t height = (5 + 5 - 2) / stride[0] + 1, width = (6 + 6 - 3) / stride[1] + 1;
      const auto added = [=](GraphBuilder &builder, const Values &inputs) -> Values {
        return {builder.add(builder.op("conv2d", {inputs[0], inputs[1], inputs[2]}, attributes), inputs[3])};
      };
      cases.push_back({"conv2d",
                       {{DType::f32, {2, 5, 6, channels}},
                        {DType::f32, {2, 2, channels, channels}},
                        {DType::f32, {channels}},
                        {DType::f32, {2, height, width, channels}}},
                       {},
                       added});
    }
  }
}

void add_convolutions(std::vector<OpCase> &cases) {
  const auto same = [](Ints stride, int64_t groups = 1) {
    return Attributes{{"stride", std::move(stride)}, {"padding", std::string("same")}, {"groups", groups}};
  };
  const Attributes valid{{"padding", std::string("valid")}};
  const Attributes shifted{{"padding", std::string("explicit")},
                           {"pads", Ints{1, 2, 0, 1}},
                           {"dilation", Ints{2, 1}},
                           {"stride", Ints{1, 2}}};
  add_convolution(cases, DType::f32, {2, 8, 8, 3}, {3, 3, 3, 16}, same({1, 1}));
  add_convolution(cases, DType::f32, {1, 9, 7, 16}, {3, 3, 16, 16}, same({2, 2}));
  add_convolution(cases, DType::f32, {3, 5, 5, 1}, {5, 5, 1, 6}, same({1, 1}));
  add_convolution(cases, DType::f32, {2, 6, 6, 32}, {1, 1, 32, 24}, same({1, 1}));
  add_convolution(cases, DType::f32, {2, 6, 6, 5}, {3, 3, 5, 7}, valid);
  add_convolution(cases, DType::f32, {2, 7, 8, 4}, {2, 3, 4, 3}, shifted);
  add_convolution(cases, DType::f32, {2, 6, 6, 8}, {3, 3, 4, 8}, same({1, 1}, 2));
  add_convolution(cases, DType::f32, {2, 6, 6, 16}, {3, 3, 1, 16}, same({1, 1}, 16));
  add_convolution(cases, DType::f32, {0, 6, 6, 3}, {3, 3, 3, 4}, same({1, 1}));
  add_convolution(cases, DType::f32, {1, 1, 1, 1}, {1, 1, 1, 1}, valid);
  add_convolution(cases, DType::f64, {1, 5, 5, 2}, {3, 3, 2, 3}, same({1, 1}));
}

/// Strides and dilations that leave elements of the kernel, or pixels, unused; groups; long sums; 16-bit floats.
void add_more_convolutions(std::vector<OpCase> &cases) {
  const auto window = [](Ints stride, Ints dilation, int64_t groups = 1) {
    return Attributes{{"padding", std::string("explicit")},
                      {"pads", Ints{2, 1, 1, 2}},
                      {"stride", std::move(stride)},
                      {"dilation", std::move(dilation)},
                      {"groups", groups}};
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    add_convolution(cases, dtype, {4, 11, 10, 8}, {3, 3, 8, 12}, window({1, 1}, {1, 1}));
    add_convolution(cases, dtype, {2, 9, 9, 3}, {3, 2, 3, 5}, window({2, 3}, {2, 2}));
    add_convolution(cases, dtype, {2, 6, 6, 32}, {3, 3, 16, 32}, window({1, 2}, {1, 1}, 2));
    add_convolution(cases, dtype, {2, 10, 9, 6}, {3, 3, 1, 12}, window({2, 1}, {1, 2}, 6));
  }
  add_convolution(cases, DType::f32, {1, 10, 9, 4}, {3, 3, 4, 4}, window({4, 5}, {1, 1}));
  add_convolution(cases, DType::f32, {1, 3, 2, 4}, {2, 2, 4, 4}, window({7, 4}, {1, 2}));
  add_convolution(cases, DType::f32, {8, 16, 15, 4}, {3, 3, 4, 8}, window({1, 1}, {1, 1}));
  add_convolution(cases, DType::f32, {3, 12, 10, 8}, {1, 1, 8, 16}, window({1, 1}, {1, 1}));
  add_convolution(cases, DType::f32, {2, 24, 20, 20}, {3, 3, 20, 60}, window({1, 1}, {1, 1}));
  add_convolution(cases, DType::f64, {2, 12, 12, 4}, {2, 2, 2, 6}, window({2, 2}, {1, 1}, 2));
  add_convolution(cases, DType::f32, {0, 6, 6, 4}, {3, 3, 1, 4}, window({2, 2}, {1, 1}, 4));
}

/// Windows with NaNs, and with infinities only.
void add_pooling_of_infinities(std::vector<OpCase> &cases) {
  const Attributes attributes{{"window", Ints{3, 2}}, {"stride", Ints{2, 1}}, {"padding", std::string("same")}};
  for (const auto &[numerator, channels] : {std::pair<double, int64_t>{0.0, 3}, {-1.0, 3}, {0.0, 8}, {-1.0, 8}}) {
    const auto build = [attributes, above = numerator](GraphBuilder &builder, const Values &inputs) -> Values {
      const graph::ValueId x = builder.op(
          "add",
          {inputs[0], builder.op("div", {builder.constant(above, DType::f32), builder.unary("abs", inputs[0])})});
      const graph::ValueId y = builder.op("max_pool2d", {x}, attributes);
      return {y, builder.op("max_pool2d_gradient", {inputs[1], x, y}, attributes)};
    };
    cases.push_back({"max_pool2d",
                     {whole(DType::f32, {2, 7, 6, channels}, -1, 2), {DType::f32, {2, 4, 6, channels}}},
                     attributes,
                     build});
  }
}

void add_pooling(std::vector<OpCase> &cases) {
  const std::pair<ShapeDims, Attributes> kPools[] = {
      {{2, 8, 8, 16}, {{"window", Ints{2, 2}}}},
      {{1, 9, 7, 3}, {{"window", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"padding", std::string("same")}}},
      {{2, 5, 7, 1},
       {{"window", Ints{2, 3}},
        {"stride", Ints{1, 2}},
        {"padding", std::string("explicit")},
        {"pads", Ints{1, 0, 1, 2}}}},
      {{0, 4, 4, 2}, {{"window", Ints{2, 2}}}},
      {{1, 7, 7, 33}, {{"window", Ints{7, 7}}}},
      {{1, 20, 19, 8}, {{"window", Ints{18, 16}}, {"stride", Ints{1, 2}}}},  // positions that a byte does not count
  };
  for (const auto &[image, attributes] : kPools) {
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      const auto max = [=](GraphBuilder &builder, const Values &inputs) -> Values {
        const graph::ValueId y = builder.op("max_pool2d", {inputs[0]}, attributes);
        const graph::ValueId dy = builder.op("add", {y, builder.constant(0.5, dtype)});
        return {y, builder.op("max_pool2d_gradient", {dy, inputs[0], y}, attributes)};
      };
      cases.push_back({"max_pool2d", {whole(dtype, image, -3, 4)}, attributes, max});
      cases.push_back({"max_pool2d", {{dtype, image}}, attributes, max});
      if (dtype == DType::f16 || dtype == DType::bf16) continue;
      for (const bool counts : {false, true}) {
        Attributes average = attributes, gradient = attributes;
        average.emplace("count_include_padding", counts);
        gradient.emplace("count_include_padding", counts);
        gradient.emplace("input_dims", graph::to_dims(image));
        const auto build = [=](GraphBuilder &builder, const Values &inputs) -> Values {
          const graph::ValueId y = builder.op("avg_pool2d", {inputs[0]}, average);
          return {y, builder.op("avg_pool2d_gradient", {y}, gradient)};
        };
        cases.push_back({"avg_pool2d", {{dtype, image}}, average, build});
      }
    }
  }
}

}  // namespace

std::vector<OpCase> product_cases() {
  std::vector<OpCase> cases;
  add_matmuls(cases);
  add_long_matmuls(cases);
  add_relus_of_nan(cases);
  add_convolutions(cases);
  add_empty_windows(cases);
  add_more_convolutions(cases);
  add_pooling(cases);
  add_pooling_of_infinities(cases);
  return cases;
}

/// Images, rows without places, groups that are one channel or all, none of anything.
void add_group_norms(std::vector<OpCase> &cases) {
  struct Sizes {
    ShapeDims shape;
    int64_t groups;
  };
  const Sizes kSizes[] = {{{6, 6}, 3},        {{2, 3, 4, 34}, 17}, {{1, 1}, 1},        {{32, 8, 8, 16}, 4},
                          {{3, 5, 5, 32}, 1}, {{2, 9, 24}, 24},    {{5, 7, 7, 48}, 2}, {{0, 4, 6}, 2},
                          {{3, 0, 6}, 2},     {{2, 300, 12}, 4},   {{70, 40}, 5},      {{2, 33, 33, 64}, 32}};
  for (const Sizes &sizes : kSizes) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
      // A mean that is large beside the deviation.
      const Operand x{dtype, sizes.shape, 2, 4}, dy{dtype, sizes.shape}, channel{wide, {sizes.shape.back()}};
      const ShapeDims statistics{sizes.shape.front(), sizes.groups};
      const double tolerance = dtype == DType::bf16 ? 3e-2 : 0;
      cases.push_back({"group_norm",
                       {x, channel, channel},
                       {{"groups", sizes.groups}, {"epsilon", 0.01}},
                       {},
                       tolerance,
                       tolerance});
      cases.push_back({"group_norm_gradient",
                       {dy, x, channel, {wide, statistics, 2.9, 3.1}, positive(wide, statistics)},
                       {},
                       {},
                       tolerance,
                       dtype == DType::bf16 ? 0.5 : 0});
    }
  }
}

/// Rows of one pack and of several, that end within a pack, and so many that groups of threads have several rows.
void add_row_norms(std::vector<OpCase> &cases) {
  for (const ShapeDims &shape :
       {ShapeDims{37, 24}, ShapeDims{5, 8}, ShapeDims{3, 1}, ShapeDims{2, 40}, ShapeDims{19, 768}, ShapeDims{3, 1000},
        ShapeDims{9, 1200}, ShapeDims{4100, 96}, ShapeDims{2061, 128}}) {
    for (const DType dtype : kFloats) {
      const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
      const Operand x{dtype, shape, -1, 3}, dy{dtype, shape}, channel{wide, {shape.back()}};
      const Operand mean{wide, {shape.front()}, 0.9, 1.1}, rstd{wide, {shape.front()}, 0.8, 0.9};
      const double tolerance = wide == dtype ? 0 : 3e-2;
      // Sums over rows are of terms with either sign.
      const double of_sums = wide == dtype ? (dtype == DType::f32 ? 1e-3 : 0) : 3e-2;
      cases.push_back({"layer_norm", {x, channel, channel}, {{"epsilon", 0.01}}, {}, tolerance, tolerance});
      cases.push_back({"layer_norm_gradient", {dy, x, channel, mean, rstd}, {}, {}, tolerance, of_sums});
      cases.push_back({"rms_norm", {x, channel}, {{"epsilon", 0.01}}, {}, tolerance, tolerance});
      cases.push_back({"rms_norm_gradient", {dy, x, channel, rstd}, {}, {}, tolerance, of_sums});
    }
  }
}

std::vector<OpCase> normalization_cases() {
  std::vector<OpCase> cases;
  const Attributes epsilon{{"epsilon", 0.01}};
  for (const ShapeDims &shape : {ShapeDims{6, 5}, ShapeDims{2, 3, 4, 17}, ShapeDims{1, 1}, ShapeDims{32, 8, 8, 16}}) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Operand x{dtype, shape}, channel{dtype, {shape.back()}}, variance = positive(dtype, {shape.back()});
      const Operand sums{DType::f64, {shape.back()}};
      cases.push_back({"batch_norm_training", {x, channel, channel}, epsilon});
      cases.push_back({"batch_norm_training_gradient", {x, x, channel, channel, variance}, epsilon});
      cases.push_back({"batch_norm_inference", {x, channel, channel, channel, variance}, epsilon});
      cases.push_back({"batch_norm_moments", {x}});
      cases.push_back({"batch_norm_gradient_moments", {x, x, channel}});
      cases.push_back({"batch_norm_gradient_apply",
                       {x, x, channel, channel, variance, sums, sums, positive(DType::f64, {})},
                       epsilon});
      ShapeDims rows(shape.begin(), shape.end() - 1);
      cases.push_back({"layer_norm", {x, channel, channel}, epsilon});
      cases.push_back({"layer_norm_gradient", {x, x, channel, {dtype, rows}, positive(dtype, rows)}});
      cases.push_back({"rms_norm", {x, channel}, epsilon});
      cases.push_back({"rms_norm_gradient", {x, x, channel, positive(dtype, rows)}});
    }
  }
  add_group_norms(cases);
  add_row_norms(cases);
  const Operand none{DType::f32, {0, 3}}, channel{DType::f32, {3}};
  cases.push_back({"batch_norm_moments", {none}});
  cases.push_back({"batch_norm_gradient_moments", {none, none, channel}});
  cases.push_back({"batch_norm_inference", {none, channel, channel, channel, positive(DType::f32, {3})}});
  cases.push_back({"layer_norm", {none, channel, channel}});
  cases.push_back({"layer_norm_gradient", {none, none, channel, {DType::f32, {0}}, {DType::f32, {0}}}});
  cases.push_back({"rms_norm", {none, channel}});
  cases.push_back({"rms_norm_gradient", {none, none, channel, {DType::f32, {0}}}});
  return cases;
}

/// Cross entropies over many classes, whose rows begin at any element.
void add_long_cross_entropies(std::vector<OpCase> &cases) {
  for (const DType dtype : kFloats) {
    for (const ShapeDims &shape : {ShapeDims{37, 1021}, ShapeDims{5, 1531}, ShapeDims{3, 4099}, ShapeDims{9, 2048},
                                   ShapeDims{1, 8190}, ShapeDims{530, 1033}}) {
      const ShapeDims rows{shape.front()};
      const Operand x{dtype, shape, -5, 5}, label = whole(DType::i64, rows, 0, static_cast<double>(shape.back()));
      for (const double smoothing : {0.0, 0.1}) {
        const Attributes attributes{{"label_smoothing", smoothing}};
        cases.push_back({"sparse_softmax_cross_entropy", {x, label}, attributes});
        cases.push_back({"sparse_softmax_cross_entropy_gradient", {{dtype, rows}, x, label}, attributes});
      }
    }
    // x / 100 + c / |x|, which is infinite or not a number at 0.
    for (const double c : {-1.0, 0.0}) {
      const auto build = [=](GraphBuilder &builder, const Values &inputs) -> Values {
        const graph::ValueId size = builder.unary("abs", inputs[1]);
        const graph::ValueId x = builder.add(builder.op("mul", {inputs[1], builder.constant(0.01, dtype)}),
                                             builder.op("div", {builder.constant(c, dtype), size}));
        return {builder.op("sparse_softmax_cross_entropy", {x, inputs[2]}),
                builder.op("sparse_softmax_cross_entropy_gradient", {inputs[0], x, inputs[2]})};
      };
      cases.push_back({"sparse_softmax_cross_entropy",
                       {{dtype, {7}}, whole(dtype, {7, 1531}, -900, 900), whole(DType::i64, {7}, 0, 1531)},
                       {},
                       build});
    }
  }
}

/// Logits whose exponentials overflow or vanish, and large ones near each other, of which only differences count.
void add_far_logits(std::vector<OpCase> &cases) {
  constexpr std::pair<double, double> kRanges[] = {{-1e4, 1e4}, {9990, 10000}, {-10000, -9990}};
  for (const DType dtype : kFloats) {
    for (const auto &[low, high] : kRanges) {
      for (const ShapeDims &shape : {ShapeDims{5, 10}, ShapeDims{3, 65}, ShapeDims{2, 5003}}) {
        const ShapeDims rows{shape[0]};
        const Operand x{dtype, shape, low, high}, targets{dtype, shape, 0, 1};
        const Operand label = whole(DType::i64, rows, 0, static_cast<double>(shape[1]));
        for (const char *op : {"softmax", "log_softmax"})
          cases.push_back({op, {x}, {{"axis", int64_t{-1}}}});
        for (const double smoothing : {0.0, 0.1}) {
          const Attributes attributes{{"label_smoothing", smoothing}};
          cases.push_back({"sparse_softmax_cross_entropy", {x, label}, attributes});
          cases.push_back({"sparse_softmax_cross_entropy_gradient", {{dtype, rows}, x, label}, attributes});
          cases.push_back({"softmax_cross_entropy", {x, targets}, attributes});
          cases.push_back({"softmax_cross_entropy_gradient", {{dtype, rows}, x, targets}, attributes});
        }
        cases.push_back({"sigmoid_cross_entropy", {x, targets}});
      }
    }
  }
}

std::vector<OpCase> loss_cases() {
  std::vector<OpCase> cases;
  for (const DType dtype : kFloats) {
    for (const ShapeDims &shape :
         {ShapeDims{1}, ShapeDims{0, 3}, ShapeDims{5, 10}, ShapeDims{2, 3, 65}, ShapeDims{7, 1000}}) {
      const int64_t classes = shape.back();
      const ShapeDims rows(shape.begin(), shape.end() - 1);
      const Operand x{dtype, shape, -5, 5}, label = whole(DType::i64, rows, 0, static_cast<double>(classes));
      for (const int64_t axis : {int64_t{0}, int64_t{-1}}) {
        for (const char *op : {"softmax", "log_softmax"})
          cases.push_back({op, {x}, {{"axis", axis}}});
        for (const char *op : {"softmax_gradient", "log_softmax_gradient"})
          cases.push_back({op, {x, {dtype, shape, -1, 0.5}}, {{"axis", axis}}});
      }
      for (const double smoothing : {0.0, 0.1}) {
        const Attributes attributes{{"label_smoothing", smoothing}};
        cases.push_back({"sparse_softmax_cross_entropy", {x, label}, attributes});
        // Of one class the gradient is nothing but rounding, of a probability of 1.
        const double rounding = classes == 1 && dtype == DType::f32 ? 1e-7 : 0;
        cases.push_back(
            {"sparse_softmax_cross_entropy_gradient", {{dtype, rows}, x, label}, attributes, {}, 0, rounding});
        cases.push_back({"softmax_cross_entropy", {x, {dtype, shape, 0, 1}}, attributes});
        cases.push_back({"softmax_cross_entropy_gradient", {{dtype, rows}, x, {dtype, shape, 0, 1}}, attributes});
      }
      cases.push_back({"sigmoid_cross_entropy", {x, {dtype, shape, 0, 1}}});
      for (const int64_t k : {int64_t{1}, int64_t{3}})
        cases.push_back({"in_top_k", {x, label}, {{"k", k}}});
    }
  }
  add_long_cross_entropies(cases);
  add_far_logits(cases);
  return cases;
}

/// More elements than a launch takes at once, whose last four is not whole, and gradients of 16 bits.
void add_long_updates(std::vector<OpCase> &cases) {
  const ShapeDims shape{140003};
  const Operand w{DType::f32, shape}, slot = positive(DType::f32, shape), rate{DType::f32, {}, 0.01, 0.1};
  const Operand step = whole(DType::i64, {}, 3, 4);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const bool ok : {true, false}) {
      const Operand g{dtype, shape}, flag = whole(DType::boolean, {}, ok ? 1 : 0, ok ? 1.5 : 0.5);
      cases.push_back({"sgd_update", {w, g, rate, flag}, {{"weight_decay", 0.01}}});
      cases.push_back({"momentum_update", {w, g, w, rate, flag}, {{"momentum", 0.8}, {"weight_decay", 0.01}}});
      cases.push_back({"adam_update", {w, g, w, slot, rate, step, flag}, {{"weight_decay", 0.01}}});
    }
  }
}

std::vector<OpCase> training_cases() {
  std::vector<OpCase> cases;
  add_long_updates(cases);
  for (const ShapeDims &shape : {ShapeDims{0}, ShapeDims{1}, ShapeDims{1000}, ShapeDims{3, 5}}) {
    for (const bool ok : {true, false}) {
      const Operand w{DType::f32, shape}, slot = positive(DType::f32, shape), rate{DType::f32, {}, 0.01, 0.1};
      const Operand flag = whole(DType::boolean, {}, ok ? 1 : 0, ok ? 1.5 : 0.5);
      cases.push_back({"sgd_update", {w, w, rate, flag}, {{"weight_decay", 0.01}}});
      for (const bool nesterov : {false, true})
        cases.push_back({"momentum_update",
                         {w, w, w, rate, flag},
                         {{"momentum", 0.8}, {"nesterov", nesterov}, {"weight_decay", 0.01}}});
      cases.push_back(
          {"adam_update", {w, w, w, slot, rate, whole(DType::i64, {}, 3, 4), flag}, {{"weight_decay", 0.01}}});
    }
    for (const double rate : {0.0, 0.25, 0.9})
      cases.push_back({"dropout", {{DType::f32, shape}}, {{"rate", rate}, {"key", int64_t{5}}}});
    const Dims dims = graph::to_dims(shape);
    // Uniforms agree bit for bit; normals go through functions that backends may compute differently.
    cases.push_back(
        {"random_uniform", {}, {{"dims", dims}, {"low", -0.3}, {"high", 0.7}, {"key", int64_t{6}}}, {}, 1e-30, 1e-30});
    cases.push_back({"random_normal", {}, {{"dims", dims}, {"mean", 1.0}, {"stddev", 0.5}, {"key", int64_t{7}}}});
    cases.push_back({"random_truncated_normal", {}, {{"dims", dims}, {"stddev", 0.5}, {"key", int64_t{8}}}});
  }
  return cases;
}

}  // namespace tutti::impl::conformance
