// SPDX-License-Identifier: Apache-2.0
#include "graph/rewrite/rewrites.h"

#include "graph/autodiff.h"
#include "graph/builder.h"
#include "graph/serialize.h"
#include "testing.h"

namespace rewrites_test {

namespace {

using namespace tutti::impl::graph;
using tutti::impl::base::Result;
using tutti::impl::tensor::DType;
using tutti::impl::tensor::Tensor;
using Values = GraphBuilder::Values;

size_t count_ops(const Graph &graph, std::string_view op) {
  size_t count = 0;
  for (const Node &node : graph.nodes())
    count += node.op == op ? 1 : 0;
  return count;
}

// What every rewrite owes: a graph that serialises and has the old names.
void check_whole(const Graph &before, const Graph &after) {
  assert_true(graph_from_text(to_json_text(after)).ok());
  assert_int_equal(before.results().size(), after.results().size());
  for (const auto &[name, value] : before.results()) {
    assert_true(after.value(after.result(name)).dims == before.value(value).dims);
  }
  assert_int_equal(before.inputs().size(), after.inputs().size());
}

Graph finished(GraphBuilder &b) { return assert_ok_value(b.finish_graph()); }

void dead_nodes_go_and_acts_stay(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {3});
  b.input("unused", DType::f32, {3});
  b.unary("exp", b.neg(x));
  b.state_write(b.unary("tanh", x), "report/x");
  b.state_read("weight/w", DType::f32, {3});
  b.op("all_reduce", {b.unary("sin", x)});
  b.set_result("y", b.unary("relu", x));
  const Graph before = finished(b), after = rewrite::eliminate_dead_code(before);
  check_whole(before, after);
  assert_int_equal(count_ops(after, "exp"), 0);
  assert_int_equal(count_ops(after, "neg"), 0);
  assert_int_equal(count_ops(after, "state_read"), 0);
  assert_int_equal(count_ops(after, "tanh"), 1);
  assert_int_equal(count_ops(after, "sin"), 1);
  assert_int_equal(after.inputs().size(), 2);
}

void dead_nodes_inside_regions_go(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {3});
  const Values y = b.call({x}, [](GraphBuilder &g, const Values &p) {
    g.unary("exp", p[0]);
    return Values{g.neg(p[0])};
  });
  b.set_result("y", y[0]);
  const Graph after = rewrite::eliminate_dead_code(finished(b));
  assert_int_equal(count_ops(after, "exp"), 0);
  assert_int_equal(count_ops(after, "neg"), 1);
}

void equal_nodes_are_merged(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 3});
  const auto twice = [&] { return b.mul(b.unary("exp", b.scale(x, 2)), b.op("softmax", {x}, {{"axis", int64_t{1}}})); };
  const ValueId y = b.add(twice(), twice());
  const ValueId other = b.op("softmax", {x}, {{"axis", int64_t{0}}});
  const ValueId noise = b.add(b.op("dropout", {x}, {{"rate", 0.5}}), b.op("dropout", {x}, {{"rate", 0.5}}));
  b.set_result("y", b.add(b.add(y, other), noise));
  const Graph before = finished(b), after = rewrite::merge_equal_nodes(before);
  check_whole(before, after);
  assert_int_equal(count_ops(after, "exp"), 1);
  assert_int_equal(count_ops(after, "softmax"), 2);
  assert_int_equal(count_ops(after, "dropout"), 2);  // each draws its own values
  assert_int_equal(count_ops(after, "constant"), 1);
}

void state_is_not_merged(void **) {
  GraphBuilder b;
  const ValueId first = b.state_read("weight/w", DType::f32, {3});
  b.state_write(b.neg(first), "weight/w");
  b.set_result("y", b.add(first, b.state_read("weight/w", DType::f32, {3})));
  const Graph after = rewrite::optimize(finished(b));
  assert_int_equal(count_ops(after, "state_read"), 2);
}

void what_changes_nothing_is_dropped(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {2, 3});
  ValueId y = b.unary("identity", b.unary("stop_gradient", x));
  y = b.op("reshape", {b.op("reshape", {y}, {{"dims", Dims{6}}})}, {{"dims", Dims{2, 3}}});
  y = b.scale(y, 1);
  y = b.transpose(b.transpose(y, {1, 0}), {1, 0});
  y = b.neg(b.neg(y));
  b.set_result("y", y);
  b.set_result("kept", b.op("reshape", {x}, {{"dims", Dims{3, 2}}}));
  b.set_result("wide", b.mul(b.constant(1, DType::f32), b.unary("exp", x)));
  const Graph before = finished(b), after = rewrite::simplify(before);
  check_whole(before, after);
  assert_int_equal(after.result("y"), after.input("x"));
  assert_int_equal(count_ops(after, "reshape"), 1);
  assert_int_equal(after.nodes().size(), 3);
}

void gradients_of_parts_lie_side_by_side(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 3, 7}), y = b.input("y", DType::f32, {b.batch(), 3, 7});
  const auto part = [&](int64_t first, int64_t count) {
    return b.unary("exp", b.slice(x, {0, 0, first}, {b.batch(), 3, count}));
  };
  // In any order: three parts make up the whole, of which two sums are made.
  const ValueId loss = b.add(b.add(b.reduce_sum(part(5, 2)), b.reduce_sum(part(0, 4))), b.reduce_sum(part(4, 1)));
  const std::vector<ValueId> slopes = assert_ok_value(gradients(b, {{loss}}, {}, {{x}}));
  b.set_result("dx", slopes[0]);
  b.set_result("more", b.add(slopes[0], y));
  const Graph before = finished(b), after = rewrite::simplify(before);
  check_whole(before, after);
  assert_int_equal(count_ops(before, "slice_gradient"), 3);
  assert_int_equal(count_ops(after, "slice_gradient"), 0);
  const Node &joined = after.node(after.value(after.result("dx")).producer);
  assert_string_equal(joined.op.c_str(), "concat");
  assert_int_equal(std::get<int64_t>(joined.attributes.at("axis")), 2);
  assert_int_equal(joined.inputs.size(), 3);
  for (const auto &[index, width] : {std::pair{0, 4}, std::pair{1, 1}, std::pair{2, 2}})
    assert_true(after.value(joined.inputs[static_cast<size_t>(index)]).dims[2] == width);
}

/// Parts that overlap, leave a gap, step over elements or lie along two axes are added up as before.
void other_parts_are_added_up(void **) {
  struct Part {
    Dims begin, size;
    std::vector<int64_t> strides = {1, 1};
  };
  const std::vector<std::vector<Part>> kParts = {{{{0, 0}, {4, 3}}, {{0, 2}, {4, 4}}},
                                                 {{{0, 0}, {4, 3}}, {{0, 4}, {4, 2}}},
                                                 {{{0, 0}, {4, 3}}, {{0, 3}, {4, 2}}},
                                                 {{{0, 1}, {4, 2}}, {{0, 3}, {4, 3}}},
                                                 {{{0, 0}, {4, 3}, {1, 2}}, {{0, 1}, {4, 3}, {1, 2}}},
                                                 {{{0, 0}, {2, 6}}, {{0, 0}, {4, 3}}},
                                                 {{{0, 0}, {2, 3}}, {{2, 3}, {2, 3}}}};
  for (const std::vector<Part> &parts : kParts) {
    GraphBuilder b;
    ValueId sum = kNoValue;
    for (size_t i = 0; i < parts.size(); ++i) {
      const ValueId dy = b.input(std::string(1, static_cast<char>('a' + i)), DType::f32, parts[i].size);
      const Attributes attributes{{"begin", parts[i].begin}, {"strides", parts[i].strides}, {"dims", Dims{4, 6}}};
      const ValueId whole = b.op("slice_gradient", {dy}, attributes);
      sum = sum == kNoValue ? whole : b.add(sum, whole);
    }
    b.set_result("y", sum);
    const Graph after = rewrite::simplify(finished(b));
    assert_int_equal(count_ops(after, "slice_gradient"), 2);
    assert_int_equal(count_ops(after, "concat"), 0);
  }
}

void regions_are_inlined(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {3}), w = b.input("w", DType::f32, {3});
  const Values y = b.call({x}, [&](GraphBuilder &g, const Values &p) {
    return Values{g.call({p[0]}, [&](GraphBuilder &h, const Values &q) { return Values{h.mul(q[0], w)}; })[0], p[0]};
  });
  const Values z = b.custom_gradient(
      {y[0]}, [](GraphBuilder &g, const Values &p) { return Values{g.neg(p[0])}; },
      [](GraphBuilder &, const Values &p) { return Values{p[2]}; });
  const Values s = b.scan({z[0]}, {b.reshape(w, {3, 1})}, [](GraphBuilder &g, const Values &p) {
    return g.call({p[0], p[1]}, [](GraphBuilder &h, const Values &q) { return Values{h.add(q[0], q[1])}; });
  });
  b.set_result("y", b.add(s[0], y[1]));
  const Graph before = finished(b), after = rewrite::inline_regions(before);
  check_whole(before, after);
  assert_int_equal(count_ops(after, "call"), 0);
  assert_int_equal(count_ops(after, "custom_gradient"), 0);
  assert_int_equal(count_ops(after, "scan"), 1);
  assert_int_equal(count_ops(after, "mul"), 1);
}

// Adds f32 scalars.
class Adder : public rewrite::Evaluator {
 public:
  Result<std::vector<Tensor>> evaluate(const Graph &, const Node &node, std::span<const Tensor> inputs) override {
    if (node.op != "add") return tutti::impl::base::unimplemented("only add");
    auto sum = Tensor::scalar<float>(*inputs[0].data_as<float>() + *inputs[1].data_as<float>());
    return std::vector<Tensor>{*sum};
  }
};

void constants_are_folded(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {});
  const ValueId three = b.add(b.constant(1, DType::f32), b.constant(2, DType::f32));
  b.set_result("y", b.add(x, b.add(three, b.constant(4, DType::f32))));
  b.set_result("z", b.mul(three, three));
  Adder adder;
  const Graph before = finished(b), after = rewrite::optimize(before, {.evaluator = &adder});
  check_whole(before, after);
  assert_int_equal(count_ops(after, "add"), 1);
  assert_int_equal(count_ops(after, "mul"), 1);  // the evaluator cannot: left as it is
  assert_int_equal(count_ops(after, "constant"), 2);
}

void names_and_stable_ids_survive(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 3});
  b.push_scope("block");
  const ValueId y = b.op("dropout", {b.unary("identity", x)}, {{"rate", 0.5}});
  const int64_t id = b.graph().node(b.info(y).producer).stable_id;
  b.set_result("y", y);
  const Graph after = rewrite::optimize(finished(b), {.inline_regions = true});
  const Node &node = after.node(after.value(after.result("y")).producer);
  assert_true(node.stable_id == id);
  assert_string_equal(node.scope_name.c_str(), "block/dropout");
}

// A convolution, a bias and a dense layer, each with a normalisation behind it.
struct NormNet {
  GraphBuilder b;
  ValueId x = b.input("x", DType::f32, {b.batch(), 5, 4, 3});
  ValueId convolved = kNoValue;

  ValueId read(const std::string &name, Dims dims) { return b.state_read("weight/" + name, DType::f32, dims); }
  ValueId norm(const std::string &name, ValueId value, int64_t channels) {
    return b.op("batch_norm_inference",
                {value, read(name + "/scale", {channels}), read(name + "/offset", {channels}),
                 read(name + "/mean", {channels}), read(name + "/variance", {channels})},
                {{"epsilon", 0.01}});
  }
  NormNet() {
    convolved = b.op("conv2d", {x, read("kernel", {3, 3, 3, 6})}, {{"padding", std::string("same")}});
    const ValueId y = b.unary("relu", norm("first", b.add(convolved, read("bias", {6})), 6));
    const ValueId flat = b.reshape(y, {b.batch(), 120});
    b.set_result("y", norm("second", b.matmul(flat, read("dense", {120, 2})), 2));
  }
};

void normalisations_are_folded(void **) {
  NormNet net;
  const Graph before = finished(net.b), after = assert_ok_value(rewrite::fold_batch_norm(before));
  check_whole(before, after);
  assert_int_equal(count_ops(after, "batch_norm_inference"), 0);
  assert_int_equal(count_ops(after, "conv2d"), 1);
  assert_int_equal(count_ops(after, "matmul"), 1);
}

void normalisations_of_shared_or_unknown_values_stay(void **) {
  NormNet net;
  net.b.set_result("also", net.convolved);
  const ValueId given = net.b.input("kernel", DType::f32, {1, 1, 3, 4});
  net.b.set_result("z", net.norm("third", net.b.op("conv2d", {net.x, given}), 4));
  const Graph after = assert_ok_value(rewrite::fold_batch_norm(finished(net.b)));
  // The dense layer's alone is folded.
  assert_int_equal(count_ops(after, "batch_norm_inference"), 2);
}

// A layer's activation may lie before its normalisation.
void normalisations_behind_nonlinear_values_stay(void **) {
  NormNet net;
  net.b.set_result("z", net.norm("third", net.b.unary("tanh", net.convolved), 6));
  net.b.set_result("sum",
                   net.norm("fourth", net.b.op("reduce_sum", {net.x}, {{"axes", std::vector<int64_t>{1, 2}}}), 3));
  const Graph before = finished(net.b), after = assert_ok_value(rewrite::fold_batch_norm(before));
  check_whole(before, after);
  assert_int_equal(count_ops(after, "batch_norm_inference"), 3);  // the shared convolution's too
}

void what_follows_from_state_is_computed_beforehand(void **) {
  NormNet net;
  const Graph folded = assert_ok_value(rewrite::fold_batch_norm(finished(net.b)));
  const rewrite::PrecomputedGraph parts = assert_ok_value(rewrite::precompute_state(folded));
  check_whole(folded, parts.forward);
  assert_int_equal(parts.entries.size(), 4);  // two kernels, two shifts
  assert_string_equal(parts.entries[0].name.c_str(), "derived/0");
  assert_true(parts.entries[0].dims == (std::vector<int64_t>{3, 3, 3, 6}));
  assert_int_equal(count_ops(parts.prepare, "state_write"), 4);
  assert_int_equal(parts.prepare.inputs().size(), 0);
  assert_int_equal(count_ops(parts.forward, "rsqrt"), 0);
  assert_int_equal(count_ops(parts.forward, "state_read"), 4);
}

void plain_weights_are_not_computed_beforehand(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 6});
  const ValueId w = b.reshape(b.state_read("weight/w", DType::f32, {2, 12}), {6, 4});
  const ValueId rate = b.scale(b.state_read("host/rate", DType::f32, {}), 2);  // may change between calls
  b.set_result("y", b.mul(b.matmul(x, w), rate));
  const Graph before = finished(b);
  const rewrite::PrecomputedGraph parts = assert_ok_value(rewrite::precompute_state(before));
  assert_true(parts.entries.empty());
  assert_string_equal(to_text(parts.forward).c_str(), to_text(before).c_str());
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(dead_nodes_go_and_acts_stay),
      cmocka_unit_test(dead_nodes_inside_regions_go),
      cmocka_unit_test(equal_nodes_are_merged),
      cmocka_unit_test(state_is_not_merged),
      cmocka_unit_test(what_changes_nothing_is_dropped),
      cmocka_unit_test(gradients_of_parts_lie_side_by_side),
      cmocka_unit_test(other_parts_are_added_up),
      cmocka_unit_test(regions_are_inlined),
      cmocka_unit_test(constants_are_folded),
      cmocka_unit_test(names_and_stable_ids_survive),
      cmocka_unit_test(normalisations_are_folded),
      cmocka_unit_test(normalisations_of_shared_or_unknown_values_stay),
      cmocka_unit_test(normalisations_behind_nonlinear_values_stay),
      cmocka_unit_test(what_follows_from_state_is_computed_beforehand),
      cmocka_unit_test(plain_weights_are_not_computed_beforehand),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace rewrites_test
