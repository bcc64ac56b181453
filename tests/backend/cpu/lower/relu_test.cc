// SPDX-License-Identifier: Apache-2.0
//
// A relu that is done with what is before it, a convolution, a product or a normalisation, keeps what is not a number:
// a network that has diverged shows it. Whatever implementation is chosen.
#include <stdlib.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "backend/graph_executor.h"
#include "graph/builder.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace relu_test {

namespace {

using tutti::impl::backend::DeviceRef;
using tutti::impl::backend::GraphExecutor;
using tutti::impl::graph::GraphBuilder;
using tutti::impl::graph::ValueId;
using tutti::impl::tensor::DType;
using tutti::impl::tensor::Tensor;
namespace backend = tutti::impl::backend;
namespace base = tutti::impl::base;
namespace graph = tutti::impl::graph;
namespace tensor = tutti::impl::tensor;

struct Case {
  graph::Graph graph;
  std::vector<Tensor> inputs;
};

/// Small whole numbers, so that sums are exact in any order; in the first input something else here and there.
Tensor numbers(const std::vector<int64_t> &dims, bool first) {
  Tensor made = assert_ok_value(Tensor::allocate(DType::f32, assert_ok_value(tensor::Shape::make(dims))));
  for (int64_t i = 0; i < made.elements(); ++i)
    made.mutable_data_as<float>()[i] = static_cast<float>(i * 7919 % 9 - 4);
  if (!first) return made;
  made.mutable_data_as<float>()[made.elements() / 3] = std::numeric_limits<float>::quiet_NaN();
  made.mutable_data_as<float>()[made.elements() - 1] = std::numeric_limits<float>::infinity();
  return made;
}

class CaseBuilder {
 public:
  ValueId input(const char *name, const std::vector<int64_t> &dims) {
    made_.inputs.push_back(numbers(dims, made_.inputs.empty()));
    return b.input(name, DType::f32, graph::to_dims(dims));
  }
  Case finish(ValueId y) {
    b.set_result("y", b.unary("relu", y));
    made_.graph = assert_ok_value(b.finish_graph());
    return std::move(made_);
  }

  GraphBuilder b;

 private:
  Case made_;
};

Case convolution(int64_t in, int64_t out, int64_t window, bool bias) {
  CaseBuilder c;
  const ValueId x = c.input("a", {3, 12, 12, in}), kernel = c.input("b", {window, window, in, out});
  ValueId y = c.b.op("conv2d", {x, kernel}, {{"padding", std::string("same")}});
  if (bias) y = c.b.add(y, c.input("c", {out}));
  return c.finish(y);
}

Case product(int64_t rows, int64_t in, int64_t out) {
  CaseBuilder c;
  const ValueId x = c.input("a", {rows, in}), kernel = c.input("b", {in, out});
  return c.finish(c.b.add(c.b.matmul(x, kernel), c.input("c", {out})));
}

Case normalisation() {
  CaseBuilder c;
  const ValueId x = c.input("a", {3, 5, 5, 32}), scale = c.input("b", {32}), offset = c.input("c", {32});
  return c.finish(c.b.op_n("batch_norm_training", {x, scale, offset}, {}, 3)[0]);
}

DeviceRef open_device(const char *name) {
  return assert_ok_value(assert_ok_value(tutti::impl::runtime::open_backend(name, "{}", {}))->open_device(0));
}

Tensor run(const DeviceRef &device, const Case &one, int32_t threads) {
  backend::GraphExecutorOptions options;
  options.threads = threads;
  return assert_ok_value(assert_ok_value(GraphExecutor::create(device, one.graph, options))->run(one.inputs))[0];
}

void check(const DeviceRef &cpu, const DeviceRef &reference, const Case &one, const std::string &what) {
  const Tensor expected = run(reference, one, 1);
  int not_numbers = 0;
  for (const int32_t threads : {1, 2}) {
    const Tensor got = run(cpu, one, threads);
    for (int64_t i = 0; i < expected.elements(); ++i) {
      // Winograd's sums, and negative infinity in a library's relu, give more that is no number.
      const float a = got.data_as<float>()[i], b = expected.data_as<float>()[i];
      not_numbers += std::isnan(b) ? 1 : 0;
      if (std::isnan(b) ? std::isnan(a) : std::isnan(a) || std::fabs(a - b) <= 1e-3F * std::fabs(b) || a == b) continue;
      fail_msg("%s, %d threads: element %lld is %g, expected %g", what.c_str(), threads, static_cast<long long>(i),
               static_cast<double>(a), static_cast<double>(b));
    }
  }
  assert_true(not_numbers > 0);
}

/// The environment's choice of convolutions while it lives; null = none.
class Forced {
 public:
  explicit Forced(const char *candidate) {
    if (candidate != nullptr) setenv("TUTTI_CPU_CONVOLUTION", candidate, 1);
  }
  Forced(const Forced &) = delete;
  Forced &operator=(const Forced &) = delete;
  ~Forced() { unsetenv("TUTTI_CPU_CONVOLUTION"); }
};

void convolutions_keep_what_is_no_number(void **) {
  const DeviceRef cpu = open_device("cpu"), reference = open_device("reference");
  for (const char *choice : {static_cast<const char *>(nullptr), "dnnl_direct:rr", "dnnl_direct:bb", "dnnl_direct:rb",
                             "dnnl_direct:br", "winograd:rr", "winograd:bb"}) {
    const Forced forced(choice);
    for (const bool bias : {false, true}) {
      for (const auto &[in, out, window] : {std::array<int64_t, 3>{32, 64, 3}, {16, 32, 1}, {3, 32, 5}, {1, 32, 3}}) {
        check(cpu, reference, convolution(in, out, window, bias),
              base::concat(choice == nullptr ? "any" : choice, ", ", in, " to ", out, " channels, ", window));
      }
    }
  }
}

void products_keep_what_is_no_number(void **) {
  const DeviceRef cpu = open_device("cpu"), reference = open_device("reference");
  for (const auto &[rows, in, out] : {std::array<int64_t, 3>{64, 784, 512}, {5, 7, 3}, {33, 64, 100}, {1, 512, 256}})
    check(cpu, reference, product(rows, in, out), base::concat(rows, " x ", in, " x ", out));
}

void normalisations_keep_what_is_no_number(void **) {
  check(open_device("cpu"), open_device("reference"), normalisation(), "batch norm");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(convolutions_keep_what_is_no_number),
    cmocka_unit_test(products_keep_what_is_no_number),
    cmocka_unit_test(normalisations_keep_what_is_no_number),
};
TEST_MAIN(tests)

}  // namespace relu_test
