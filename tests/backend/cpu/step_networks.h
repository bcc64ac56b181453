// SPDX-License-Identifier: Apache-2.0
//
// Well-known networks as graphs, for tests and benchmarks of backends: the two graphs of a training step (accumulate:
// forward, backward and running statistics; finish: the update with Adam), both in one, and the graph of a prediction.
//
//   TUTTI_ASSIGN(StepModel model, make_step_model("C"));     // see the table
//
//   A  toy        10-16-2 perceptron
//   B  mlp        784-512-256-10 perceptron
//   C  cnn        two 3x3 convolutions, max-pool, two dense layers on 28x28x1
//   D  resnet20   He et al., 2016, section 4.2, with projections, on 32x32x3
//   E  separable  depthwise-separable network on 32x32x3
//   F  resnet18   four stages of two basic blocks, 64 to 512 channels, with a 3x3 stem, on 32x32x3
//   G  resnet50   He et al., 2016, with the stride on the 3x3 convolution of a bottleneck, on 224x224x3, 1000 classes
//   H  wide       three 3x3 convolutions to 64 channels on 5x7x3
//   I  transformer  embedding of 12 words, two blocks of attention (composed of products and a softmax) and of dense
//                layers with gelu, 64 channels
//   J  gpt2      Radford et al., 2019, the smallest: 12 blocks of 768 channels, 12 heads, 1024 words as input and a
//                label for each, of 50304 words (those of GPT-2, rounded up), whose table is the last layer, too: 124
//                million parameters
//   K  gpt2_tiny the same of 2 blocks of 64 channels, 4 heads, 48 words as input, 320 words
//   L  lstm      two layers of 256 units over 64 positions of 256 channels, and a dense layer behind the last position
//
// Variables, in the order of the layers: dense1/kernel, dense1/bias; conv1/kernel, conv1/bias where there is one;
// norm1/scale, offset, mean, variance; embedding/table, embedding/places; lstm1/kernel, recurrent_kernel, bias,
// recurrent_bias. Strided convolutions are padded alike on all
// sides, as PyTorch does.
#ifndef TUTTI_TESTS_BACKEND_CPU_STEP_NETWORKS_H_
#define TUTTI_TESTS_BACKEND_CPU_STEP_NETWORKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace tutti::testing {

struct StepVariable {
  std::string name;
  std::vector<int64_t> dims;
  double scale = 0;     ///< initial values: uniform in ±scale
  double offset = 0;    ///< plus this
  bool trained = true;  ///< false: a running statistic
};

struct StepModel {
  std::string name;
  std::vector<int64_t> image;  ///< dims of one row of the input
  std::vector<int64_t> label;  ///< of one row of labels; each has logits of its own
  int64_t classes = 10;
  impl::graph::Graph accumulate;
  impl::graph::Graph finish;
  impl::graph::Graph step;     ///< both in one, which stores no gradients
  impl::graph::Graph predict;  ///< image to logits, batch norm with running statistics
  std::vector<StepVariable> variables;
  /// Multiplications and additions of convolutions and matrix products for one row: of forward and backward, where the
  /// first layer needs no gradient of its input, and of forward alone.
  double dense_flops = 0;
  double forward_flops = 0;
};

/// A model by letter or name; `width_divisor` makes small ones for tests.
impl::base::Result<StepModel> make_step_model(const std::string &name, int64_t width_divisor = 1);

/// The product of dims.
int64_t elements_of(const std::vector<int64_t> &dims);

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_BACKEND_CPU_STEP_NETWORKS_H_
