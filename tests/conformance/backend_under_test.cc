// SPDX-License-Identifier: Apache-2.0
#include "backend_under_test.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "runtime/backend_list.h"

namespace tutti::impl::conformance {

using backend::BackendRef;
using base::Result;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;

namespace {

backend::HostOptions host_options() {
  backend::HostOptions options;
  options.log = [](int32_t severity, const std::string &message) {
    if (severity >= 2) std::fprintf(stderr, "%s\n", message.c_str());
  };
  return options;
}

Result<BackendRef> open(const std::string &name, const char *options = nullptr) {
  return runtime::open_backend(name, options != nullptr ? options : "{}", host_options());
}

bool is_optional(DType dtype) { return dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16; }

}  // namespace

Result<BackendUnderTest> open_backend_under_test(int argc, char **argv) {
  if (argc < 2) return base::invalid_argument("usage: ", argv[0], " BACKEND");
  BackendUnderTest tested;
  tested.name = argv[1];
  TUTTI_ASSIGN(const BackendRef backend, open(tested.name, std::getenv("TUTTI_TESTED_OPTIONS")));
  TUTTI_ASSIGN(tested.device, backend->open_device(0));
  TUTTI_ASSIGN(const BackendRef reference, open("reference"));
  TUTTI_ASSIGN(tested.oracle, reference->open_device(0));
  return tested;
}

int exit_without_backend(const base::Status &status) {
  const bool is_missing = status.code() == base::Code::unavailable;
  std::fprintf(stderr, "%s%s\n", is_missing ? "skipped: " : "", status.to_string().c_str());
  return is_missing ? 77 : 1;
}

Result<graph::Graph> build_graph(const std::vector<Tensor> &inputs, const BuildFunction &build) {
  GraphBuilder builder;
  GraphBuilder::Values values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<int64_t> dims(inputs[i].shape().begin(), inputs[i].shape().end());
    values.push_back(builder.input("i" + std::to_string(i), inputs[i].dtype(), graph::to_dims(dims)));
  }
  const GraphBuilder::Values results = build(builder, values);
  // As many digits for each, for results are in the order of their names.
  const size_t digits = std::to_string(results.empty() ? 0 : results.size() - 1).size();
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string number = std::to_string(i);
    builder.set_result("r" + std::string(digits - number.size(), '0') + number, results[i]);
  }
  return builder.finish_graph();
}

Result<std::vector<Tensor>> run_graph(const backend::DeviceRef &device, const std::vector<Tensor> &inputs,
                                      const BuildFunction &build, const backend::RunScalars &scalars,
                                      const backend::GraphExecutorOptions &options) {
  TUTTI_ASSIGN(const graph::Graph graph, build_graph(inputs, build));
  TUTTI_ASSIGN(const backend::GraphExecutorRef executor, backend::GraphExecutor::create(device, graph, options));
  return executor->run(inputs, scalars);
}

bool is_optional(const std::vector<Tensor> &inputs, const graph::Attributes &attributes) {
  const auto dtype = attributes.find("dtype");
  if (dtype != attributes.end() && is_optional(std::get<DType>(dtype->second))) return true;
  return std::any_of(inputs.begin(), inputs.end(), [](const Tensor &input) { return is_optional(input.dtype()); });
}

}  // namespace tutti::impl::conformance
