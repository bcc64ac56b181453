// SPDX-License-Identifier: Apache-2.0
//
// What <tutti/graph.h> says of denormal numbers: on x86 the backend "cpu" takes them for zero, and gives zero for them,
// in all arithmetic, and ops that move elements keep them; the backend "reference" keeps them everywhere. The calling
// thread goes on as it was.
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/graph_executor.h"
#include "graph/builder.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace denormals_test {

namespace {

using namespace tutti::impl;
using backend::DeviceRef;
using backend::GraphExecutor;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;

constexpr int64_t kRows = 3, kColumns = 4;

struct Case {
  const char *what;
  std::function<ValueId(GraphBuilder &b, ValueId x)> op;
};

/// All give the elements of x, or their sums, in some order.
const Case kArithmetic[] = {
    {"add", [](GraphBuilder &b, ValueId x) { return b.add(x, b.constant(0.0, b.dtype(x))); }},
    {"mul", [](GraphBuilder &b, ValueId x) { return b.scale(x, 1); }},
    {"div", [](GraphBuilder &b, ValueId x) { return b.div(x, b.constant(1.0, b.dtype(x))); }},
    {"reduce_sum", [](GraphBuilder &b, ValueId x) { return b.reduce_sum(x, {1}); }},
    {"reduce_sum of scaled squares",
     [](GraphBuilder &b, ValueId x) {
       return b.reduce_sum(b.unary("square", b.scale(x, b.dtype(x) == DType::f64 ? 0x1p600 : 0x1p100)));
     }},
    {"matmul",
     [](GraphBuilder &b, ValueId x) {
       return b.matmul(x, b.broadcast_to(b.constant(1.0, b.dtype(x)), {kColumns, 2}));
     }},
};
const Case kMoves[] = {
    {"reshape",
     [](GraphBuilder &b, ValueId x) {
       return b.reshape(x, {kColumns, kRows});
     }},
    {"transpose",
     [](GraphBuilder &b, ValueId x) {
       return b.transpose(x, {1, 0});
     }},
    {"slice",
     [](GraphBuilder &b, ValueId x) {
       return b.slice(x, {1, 1}, {2, 2});
     }},
    {"concat",
     [](GraphBuilder &b, ValueId x) {
       return b.concat({x, x}, 1);
     }},
    {"gather",
     [](GraphBuilder &b, ValueId x) {
       const Tensor at = assert_ok_value(Tensor::from_values<int64_t>({2}, {2, 0}));
       return b.op("gather", {x, b.constant(at)}, {{"axis", int64_t{0}}});
     }},
    {"neg", [](GraphBuilder &b, ValueId x) { return b.neg(x); }},
};

double denormal(DType dtype) {
  return dtype == DType::f64 ? std::numeric_limits<double>::min() / 8 : std::numeric_limits<float>::min() / 8;
}

double element(const Tensor &tensor, int64_t i) {
  return tensor.dtype() == DType::f64 ? tensor.data_as<double>()[i] : static_cast<double>(tensor.data_as<float>()[i]);
}

Tensor run(const char *backend, const Case &one, DType dtype) {
  GraphBuilder b;
  b.set_result("y", one.op(b, b.input("x", dtype, {kRows, kColumns})));
  const graph::Graph graph = assert_ok_value(b.finish_graph());
  Tensor x = assert_ok_value(Tensor::allocate(dtype, tensor::Shape{kRows, kColumns}));
  for (int64_t i = 0; i < x.elements(); ++i) {
    if (dtype == DType::f64) x.mutable_data_as<double>()[i] = denormal(dtype);
    if (dtype == DType::f32) x.mutable_data_as<float>()[i] = static_cast<float>(denormal(dtype));
  }
  const auto opened = assert_ok_value(runtime::open_backend(backend, "{}", {}));
  const auto executor = assert_ok_value(GraphExecutor::create(assert_ok_value(opened->open_device(0)), graph, {}));
  return assert_ok_value(executor->run(std::vector<Tensor>{x}))[0];
}

void check(const char *backend, const Case &one, DType dtype, bool are_kept) {
  const Tensor y = run(backend, one, dtype);
  assert_true(y.elements() > 0);
  for (int64_t i = 0; i < y.elements(); ++i) {
    if ((element(y, i) != 0) == are_kept) continue;
    fail_msg("%s, %s, %s: element %d is %g", backend, one.what, std::string(tensor::name(dtype)).c_str(),
             static_cast<int>(i), element(y, i));
  }
}

void denormals_count_as_zero_where_it_is_said(void **) {
#if defined(__SSE__)
  const bool cpu_keeps = false;
#else
  const bool cpu_keeps = true;
#endif
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const Case &one : kArithmetic) {
      check("reference", one, dtype, true);
      check("cpu", one, dtype, cpu_keeps);
    }
    for (const Case &one : kMoves) {
      check("reference", one, dtype, true);
      check("cpu", one, dtype, true);
    }
  }
}

void the_caller_keeps_them(void **) {
  (void)run("cpu", kArithmetic[0], DType::f32);
  volatile float small = std::numeric_limits<float>::min();
  assert_true(small / 8 != 0);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(denormals_count_as_zero_where_it_is_said),
    cmocka_unit_test(the_caller_keeps_them),
};
TEST_MAIN(tests)

}  // namespace denormals_test
