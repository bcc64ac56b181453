// SPDX-License-Identifier: Apache-2.0
//
// The golden files of the backend suite: one op, its inputs and attributes, and what it must give.
#ifndef TUTTI_TESTS_CONFORMANCE_GOLDEN_CASE_H_
#define TUTTI_TESTS_CONFORMANCE_GOLDEN_CASE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "graph/attribute.h"
#include "tensor/tensor.h"

namespace tutti::impl::conformance {

/// What the gradient of the only output, multiplied by that, makes of the first input.
struct GoldenGradient {
  tensor::Tensor upstream, gradient;
  double relative = 0, absolute = 0;
};

/// An entry of the registry of nn/ whose inputs are such entries: a schedule.
struct GoldenRate {
  std::string op;
  graph::Attributes attributes;
  std::vector<GoldenRate> rates = {};
};

struct GoldenCase {
  std::string op;
  graph::Attributes attributes;
  std::vector<tensor::Tensor> inputs, outputs;
  double relative = 0, absolute = 0;
  std::optional<GoldenGradient> gradient = {};
  /// Of the sum of the outputs, for the first inputs; of losses. Of functions, that of output * upstream over all
  /// outputs of floating point, for the inputs `differentiated`.
  std::vector<tensor::Tensor> gradients = {};
  std::vector<tensor::Tensor> upstreams = {};
  std::vector<int64_t> differentiated = {};
  std::vector<GoldenRate> rates = {};  ///< of schedules
  /// Of layers, whose `inputs` end with the values of their variables: the place of each input of the layer among them,
  /// -1 for one that is left out; and those of the variables by name.
  std::vector<int64_t> ports = {};
  std::map<std::string, int64_t> variables = {};
};

/// One step of an optimizer and the state after it.
struct TrajectoryStep {
  tensor::Tensor gradient;
  double rate = 0;
  bool ok = true;
  int64_t iteration = 1;
  std::vector<tensor::Tensor> state;
};

struct Trajectory {
  std::string op;
  graph::Attributes attributes;
  std::vector<tensor::Tensor> state;  ///< w and its slots before the first step
  std::vector<double> absolute;       ///< tolerance for each of them
  std::vector<TrajectoryStep> steps;
};

base::Result<std::vector<GoldenCase>> read_golden(const std::string &path);
base::Result<std::vector<Trajectory>> read_trajectories(const std::string &path);

}  // namespace tutti::impl::conformance

#endif  // TUTTI_TESTS_CONFORMANCE_GOLDEN_CASE_H_
