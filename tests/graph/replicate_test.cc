// SPDX-License-Identifier: Apache-2.0
#include "graph/replicate.h"

#include <algorithm>

#include "graph/autodiff.h"
#include "graph/builder.h"
#include "graph/serialize.h"
#include "testing.h"

namespace tutti::testing::replicate_test {

using namespace impl::graph;
using impl::tensor::DType;

static int64_t count_ops(const Graph &graph, std::string_view op) {
  const auto &nodes = graph.body().nodes;
  return std::count_if(nodes.begin(), nodes.end(), [&](NodeId id) { return graph.node(id).op == op; });
}

static Placement placement_of(const Graph &graph, std::string_view result) {
  return assert_ok_value(place(graph, true))[static_cast<size_t>(graph.result(result))];
}

/// One op on x [batch, 4] and on a parameter p [4, 3], as result "y".
static Graph graph_of(const std::function<ValueId(GraphBuilder &, ValueId x, ValueId p)> &body) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {GraphBuilder::batch(), 4});
  const ValueId p = b.state_read("weight/p", DType::f32, {4, 3});
  b.set_result("y", body(b, x, p));
  return assert_ok_value(b.finish_graph());
}

static void test_placements(void **) {
  using V = ValueId;
  const auto placed = [](const std::function<V(GraphBuilder &, V, V)> &body) {
    return placement_of(graph_of(body), "y");
  };
  const auto is = [](Placement a, Placement b) {
    assert_string_equal(std::string(to_string(a)).c_str(), std::string(to_string(b)).c_str());
  };
  is(placed([](auto &b, V x, V) { return b.unary("relu", x); }), Placement::sharded);
  is(placed([](auto &b, V x, V p) { return b.matmul(x, p); }), Placement::sharded);
  is(placed([](auto &b, V, V p) { return b.unary("exp", p); }), Placement::replicated);
  is(placed([](auto &b, V x, V) { return b.reduce_sum(x, {0}); }), Placement::partial_sum);
  is(placed([](auto &b, V x, V) { return b.reduce_sum(x, {1}); }), Placement::sharded);
  is(placed([](auto &b, V x, V) { return b.reduce("reduce_max", x, {0}); }), Placement::partial_max);
  is(placed([](auto &b, V x, V) { return b.matmul(x, x, true, false); }), Placement::partial_sum);
  // Linear ops keep a sum partial, others need its true value.
  is(placed([](auto &b, V x, V) { return b.scale(b.neg(b.reduce_sum(x)), 3); }), Placement::partial_sum);
  is(placed([](auto &b, V x, V) { return b.add(b.reduce_sum(x), b.reduce_sum(x)); }), Placement::partial_sum);
  is(placed([](auto &b, V x, V) { return b.unary("exp", b.reduce_sum(x)); }), Placement::replicated);
  is(placed([](auto &b, V x, V) { return b.mul(b.reduce_sum(x), b.reduce_sum(x)); }), Placement::replicated);
  is(placed([](auto &b, V x, V) { return b.add_scalar(b.reduce_sum(x), 1); }), Placement::replicated);
  is(placed([](auto &b, V x, V) { return b.sub(x, b.reduce_sum(x, {0}, true)); }), Placement::sharded);
  // A choice between sums, or a sum and nothing, that is the same for all parts.
  const auto choice = [&](const char *by, double otherwise) {
    return placed([=](auto &b, V x, V) {
      const V condition = b.op("greater", {b.run_scalar(by, DType::f32), b.constant(1, DType::f32)});
      return b.select(condition, b.reduce_sum(x, {0}), b.constant(otherwise, DType::f32));
    });
  };
  is(choice("step_rows", 0), Placement::partial_sum);
  is(choice("step_rows", 1), Placement::replicated);
  is(choice("row_offset", 0), Placement::varying);
  is(placed([](auto &b, V, V) { return b.run_scalar("first_flag", DType::f32); }), Placement::partial_sum);
  is(placed([](auto &b, V x, V) { return b.reshape(x, {GraphBuilder::batch() * 4}); }), Placement::sharded);
  is(placed([](auto &b, V x, V) {
       const V heads = b.reshape(x, {GraphBuilder::batch(), 2, 2, 1});
       return b.op_n("attention", {heads, heads, heads}, {}, 2)[0];
     }),
     Placement::sharded);
  is(placed([](auto &b, V x, V p) {
       const V channel = b.reduce_sum(p, {1});
       return b.op_n("group_norm", {x, channel, channel}, {{"groups", int64_t{2}}}, 3)[0];
     }),
     Placement::sharded);
  is(placed([](auto &b, V x, V p) {
       return b.op_n("rms_norm", {x, b.reduce_sum(p, {1})}, {}, 2)[0];
     }),
     Placement::sharded);
  const Attributes two{{"k", int64_t{2}}};
  is(placed([&](auto &b, V x, V) { return b.op_n("top_k", {x}, two, 2)[1]; }), Placement::sharded);
  is(placed([&](auto &b, V, V p) { return b.op_n("top_k", {p}, two, 2)[0]; }), Placement::replicated);
  is(placed([&](auto &b, V x, V p) {
       const V dy = b.slice(b.reduce_sum(x, {0}, true), {0, 0}, {1, 2}), row = b.slice(p, {0, 0}, {1, -1});
       return b.op("top_k_gradient", {dy, b.op_n("top_k", {row}, two, 2)[1]}, {{"dims", b.dims(row)}});
     }),
     Placement::partial_sum);
  is(placed([](auto &b, V x, V) {
       return b.reshape(b.transpose(x, {1, 0}), {4, GraphBuilder::batch(), 1});
     }),
     Placement::sharded);
  for (const char *op : {"running_sum", "running_product"})
    is(placed([&](auto &b, V x, V) { return b.op(op, {x}, {{"axis", int64_t{1}}}); }), Placement::sharded);
  is(placed([](auto &b, V x, V) { return b.op("running_sum", {b.reduce_sum(x, {0})}); }), Placement::partial_sum);
  is(placed([](auto &b, V x, V) {
       return b.op("reverse_axes", {x}, {{"axes", std::vector<int64_t>{1}}});
     }),
     Placement::sharded);
  is(placed([](auto &b, V x, V) {
       return b.op("reverse_axes", {b.reduce_sum(x, {0})}, {{"axes", std::vector<int64_t>{0}}});
     }),
     Placement::partial_sum);
  is(placed([](auto &b, V x, V) {
       const V images = b.reshape(x, {GraphBuilder::batch(), 2, 2, 1});
       return b.op("interpolate2d", {images}, {{"size", std::vector<int64_t>{3, 5}}});
     }),
     Placement::sharded);
  is(placed([](auto &b, V, V p) {
       const V indices = b.op("iota", {}, {{"dims", Dims{b.dims(p)[0]}}});
       return b.op("merge_rows", {p, indices, p}, {{"mode", std::string("add")}});
     }),
     Placement::replicated);
}

static void test_refusals_name_op_and_node(void **) {
  using V = ValueId;
  const auto refused = [](const char *op, const std::function<V(GraphBuilder &, V, V)> &body) {
    const Graph graph = graph_of([&](GraphBuilder &b, V x, V p) {
      b.push_scope("here");
      const V y = body(b, x, p);
      b.pop_scope();
      return y;
    });
    const auto result = replicate(graph, {.contributors = 2});
    assert_error_contains(result, "node 'here/");
    assert_error_contains(result, op);
    assert_ok(replicate(graph, {.contributors = 1}));
  };
  refused("softmax", [](auto &b, V x, V) { return b.op("softmax", {x}, {{"axis", int64_t{0}}}); });
  refused("argmax", [](auto &b, V x, V) { return b.op("argmax", {x}, {{"axis", int64_t{0}}}); });
  refused("top_k", [](auto &b, V x, V) {
    const V turned = b.transpose(b.slice(x, {0, 0}, {-1, 1}), {1, 0});
    return b.op_n("top_k", {turned}, {{"k", int64_t{1}}}, 2)[0];
  });
  refused("running_sum", [](auto &b, V x, V) { return b.op("running_sum", {x}, {}); });
  refused("running_product", [](auto &b, V x, V) { return b.op("running_product", {x}, {}); });
  refused("reverse_axes", [](auto &b, V x, V) {
    return b.op("reverse_axes", {x}, {{"axes", std::vector<int64_t>{0}}});
  });
  refused("interpolate2d", [](auto &b, V x, V) {
    const V turned = b.reshape(b.transpose(x, {1, 0}), {4, GraphBuilder::batch(), 1});
    return b.op("interpolate2d", {b.reshape(b.transpose(turned, {0, 2, 1}), {4, 1, 1, GraphBuilder::batch()})},
                {{"size", std::vector<int64_t>{3, 5}}});
  });
  refused("merge_rows", [](auto &b, V x, V) {
    const V indices = b.op("iota", {}, {{"dims", Dims{2}}}), rows = b.constant(0, b.dtype(x));
    return b.op("merge_rows", {x, indices, b.broadcast_to(rows, {2, 4})}, {{"mode", std::string("add")}});
  });
  refused("reduce_prod", [](auto &b, V x, V) { return b.reduce("reduce_prod", x, {0}); });
  refused("slice", [](auto &b, V x, V) { return b.slice(x, {0, 0}, {1, 4}); });
  refused("concat", [](auto &b, V x, V) { return b.concat({x, x}, 0); });
  refused("matmul", [](auto &b, V x, V) { return b.matmul(x, x, false, true); });
  refused("attention", [](auto &b, V x, V) {
    const V turned = b.reshape(b.transpose(x, {1, 0}), {4, GraphBuilder::batch(), 1, 1});
    return b.op_n("attention", {turned, turned, turned}, {}, 2)[0];
  });
  refused("group_norm", [](auto &b, V x, V p) {
    const V turned = b.reshape(b.transpose(x, {1, 0}), {4, GraphBuilder::batch(), 1});
    const V channel = b.reshape(b.reduce_sum(p), {1});
    return b.op_n("group_norm", {turned, channel, channel}, {{"groups", int64_t{1}}}, 3)[0];
  });
  refused("reshape", [](auto &b, V x, V) { return b.reshape(b.transpose(x, {1, 0}), {GraphBuilder::batch() * 4}); });
}

static void test_one_all_reduce_per_value(void **) {
  const Graph graph = graph_of([](GraphBuilder &b, ValueId x, ValueId) {
    const ValueId total = b.reduce_sum(x, {0}, true);
    return b.add(b.mul(x, total), b.sub(x, b.unary("exp", total)));
  });
  const Graph local = assert_ok_value(replicate(graph, {.contributors = 3}));
  assert_int_equal(count_ops(local, "all_reduce"), 1);
  // The result is an ordinary graph.
  const Graph again = assert_ok_value(graph_from_text(to_json_text(local)));
  assert_int_equal(fingerprint(again), fingerprint(local));
}

/// A NaN comes by a sum of its own; integers have none.
static void test_extremes_of_floats_take_two(void **) {
  for (const char *op : {"reduce_max", "reduce_min"}) {
    for (const DType dtype : {DType::f32, DType::i32}) {
      const Graph graph = graph_of([&](GraphBuilder &b, ValueId x, ValueId) {
        const ValueId extreme = b.reduce(op, b.cast(x, dtype), {0});
        return b.add(b.mul(extreme, extreme), extreme);
      });
      const Graph local = assert_ok_value(replicate(graph, {.contributors = 2}));
      assert_int_equal(count_ops(local, "all_reduce"), dtype == DType::f32 ? 2 : 1);
    }
  }
}

static void test_accumulation_refuses_sums_in_mid_step(void **) {
  const Graph graph =
      graph_of([](GraphBuilder &b, ValueId x, ValueId) { return b.sub(x, b.reduce_sum(x, {0}, true)); });
  assert_error_contains(replicate(graph, {.contributors = 1, .accumulation = 3}), "before all rows are computed");
  assert_error_contains(replicate(graph, {.contributors = 2, .accumulation = 3}), "reduce_sum");
  assert_ok(replicate(graph, {.contributors = 2, .accumulation = 1}));
}

static Graph batch_norm_graph(const char *statistics) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {GraphBuilder::batch(), 5, 3});
  const ValueId scale = b.state_read("weight/scale", DType::f32, {3}),
                offset = b.state_read("weight/offset", DType::f32, {3});
  const auto out = b.op_n("batch_norm_training", {x, scale, offset}, {{"statistics", std::string(statistics)}}, 3);
  const ValueId loss[] = {b.reduce_sum(b.unary("square", out[0]))};
  const ValueId wrt[] = {scale, offset, x};
  const auto gradients = assert_ok_value(impl::graph::gradients(b, loss, {}, wrt));
  b.set_result("mean", out[1]);
  b.set_result("dscale", gradients[0]);
  b.set_result("dx", gradients[2]);
  return assert_ok_value(b.finish_graph());
}

static void test_batch_norm(void **) {
  const Graph global = batch_norm_graph("global");
  const Graph local = assert_ok_value(replicate(global, {.contributors = 2}));
  assert_int_equal(count_ops(local, "batch_norm_training"), 0);
  assert_int_equal(count_ops(local, "batch_norm_training_gradient"), 0);
  assert_int_equal(count_ops(local, "all_reduce"), 2);  // moments forward, moments backward
  assert_true(placement_of(global, "dscale") == Placement::partial_sum);
  const Graph own = batch_norm_graph("per_replica");
  assert_true(placement_of(own, "mean") == Placement::varying);
  const Graph kept = assert_ok_value(replicate(own, {.contributors = 2}));
  assert_int_equal(count_ops(kept, "batch_norm_training"), 1);
  assert_int_equal(count_ops(kept, "all_reduce"), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_placements),
    cmocka_unit_test(test_refusals_name_op_and_node),
    cmocka_unit_test(test_one_all_reduce_per_value),
    cmocka_unit_test(test_extremes_of_floats_take_two),
    cmocka_unit_test(test_accumulation_refuses_sums_in_mid_step),
    cmocka_unit_test(test_batch_norm),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::replicate_test
