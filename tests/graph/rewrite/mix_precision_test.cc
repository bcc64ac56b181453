// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "graph/autodiff.h"
#include "graph/builder.h"
#include "graph/rewrite/precision_rules.h"
#include "graph/rewrite/rewrites.h"
#include "graph/serialize.h"
#include "testing.h"

namespace mix_precision_test {

namespace {

using namespace tutti::impl::graph;
using tutti::impl::tensor::DType;
using Values = GraphBuilder::Values;

/// Mixed, and as good as any graph: it serialises, and inputs, results and state have the dtypes that they had.
Graph mixed(GraphBuilder &b, DType half = DType::bf16) {
  const Graph before = assert_ok_value(b.finish_graph());
  Graph after = assert_ok_value(rewrite::mix_precision(before, half));
  assert_true(graph_from_text(to_json_text(after)).ok());
  assert_int_equal(before.results().size(), after.results().size());
  for (const auto &[name, value] : before.results()) {
    assert_true(after.value(after.result(name)).dims == before.value(value).dims);
    assert_true(after.value(after.result(name)).dtype == before.value(value).dtype);
  }
  for (const auto &[name, value] : before.inputs())
    assert_true(after.value(after.input(name)).dtype == before.value(value).dtype);
  for (const Node &node : after.nodes()) {
    if (node.op == "state_read") assert_true(after.value(node.outputs[0]).dtype == DType::f32);
    if (node.op == "state_write") assert_true(after.value(node.inputs[0]).dtype == DType::f32);
    // Nothing is widened and rounded again.
    if (node.op != "cast" || after.value(node.outputs[0]).dtype != half) continue;
    const NodeId producer = after.value(node.inputs[0]).producer;
    assert_true(producer == kNoNode || after.node(producer).op != "cast");
  }
  return after;
}

std::vector<const Node *> nodes_of(const Graph &graph, std::string_view op) {
  std::vector<const Node *> found;
  for (const Node &node : graph.nodes()) {
    if (node.op == op) found.push_back(&node);
  }
  return found;
}

const Node &only(const Graph &graph, std::string_view op) {
  const auto found = nodes_of(graph, op);
  assert_int_equal(found.size(), 1);
  return *found[0];
}

/// "bf16, f32 -> bf16"
std::string signature(const Graph &graph, const Node &node) {
  std::string text;
  for (const ValueId input : node.inputs)
    text += std::string(text.empty() ? "" : ", ") + std::string(name(graph.value(input).dtype));
  text += " ->";
  for (const ValueId output : node.outputs)
    text += " " + std::string(name(graph.value(output).dtype));
  return text;
}

void check_signature(const Graph &graph, std::string_view op, const char *expected) {
  const std::string found = signature(graph, only(graph, op));
  assert_string_equal(found.c_str(), expected);
}

ValueId weight(GraphBuilder &b, const char *name, Dims dims) {
  return b.state_read(std::string("weight/") + name, DType::f32, std::move(dims));
}

void products_are_bf16_and_what_is_visible_is_not(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 8});
  b.set_result("y", b.matmul(x, weight(b, "w", {8, 4})));
  const Graph after = mixed(b);
  check_signature(after, "matmul", "bf16, bf16 -> bf16");
  assert_int_equal(nodes_of(after, "cast").size(), 3);
}

void attention_is_a_product_whose_statistics_are_f32(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 6, 2, 8});
  const ValueId y = b.op_n("attention", {x, x, x, b.input("n", DType::i32, {b.batch()})}, {}, 2)[0];
  const ValueId loss = b.reduce_sum(b.mul(y, y));
  const std::vector<ValueId> targets{loss}, wrt{x};
  b.set_result("dx", assert_ok_value(gradients_or_zeros(b, targets, {}, wrt))[0]);
  const Graph after = mixed(b);
  check_signature(after, "attention", "bf16, bf16, bf16, i32 -> bf16 f32");
  check_signature(after, "attention_gradient", "bf16, bf16, bf16, bf16, bf16, f32, i32 -> bf16 bf16 bf16");
}

void other_dtypes_stay(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f64, {3, 3});
  b.set_result("y", b.matmul(x, x));
  const ValueId z = b.input("z", DType::bf16, {3, 3});
  b.set_result("w", b.matmul(z, z));
  assert_int_equal(nodes_of(mixed(b), "cast").size(), 0);
}

void elementwise_nodes_compute_in_f32_and_leave_bf16(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 8});
  const ValueId h = b.unary("relu", b.add(b.matmul(x, weight(b, "w", {8, 8})), weight(b, "bias", {8})));
  b.set_result("y", b.matmul(h, weight(b, "v", {8, 4})));
  const Graph after = mixed(b);
  check_signature(after, "add", "f32, f32 -> f32");  // the bias is not rounded
  check_signature(after, "relu", "f32 -> f32");
  // x, w, v; the product for the addition, h, the result.
  assert_int_equal(nodes_of(after, "cast").size(), 6);
  // Nothing is rounded between the addition and the relu.
  assert_string_equal(after.node(after.value(only(after, "relu").inputs[0]).producer).op.c_str(), "add");
}

void what_stays_f32_is_not_cast(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 8});
  b.set_result("y", b.reduce_sum(b.unary("exp", b.add(x, weight(b, "bias", {8})))));
  b.state_write(b.scale(weight(b, "m", {8}), 0.5), "weight/m");
  assert_int_equal(nodes_of(mixed(b), "cast").size(), 0);
}

void one_weight_is_cast_once(void **) {
  GraphBuilder b;
  const ValueId w = weight(b, "w", {8, 8});
  ValueId x = b.input("x", DType::f32, {b.batch(), 8});
  for (int i = 0; i < 3; ++i)
    x = b.matmul(x, w);
  b.set_result("y", x);
  // x, w and the result: products read what products give.
  assert_int_equal(nodes_of(mixed(b), "cast").size(), 3);
}

void normalisations_keep_their_statistics(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 8, 8, 3});
  const ValueId y = b.op("conv2d", {x, weight(b, "k", {3, 3, 3, 4})});
  const Values normal = b.op_n("batch_norm_training", {y, weight(b, "s", {4}), weight(b, "o", {4})}, {}, 3);
  b.state_write(normal[1], "weight/mean");
  const ValueId z = b.op("max_pool2d", {b.unary("relu", normal[0])}, {{"window", std::vector<int64_t>{2, 2}}});
  b.set_result("y", b.op("conv2d", {z, weight(b, "k2", {1, 1, 4, 4}), weight(b, "bias", {4})}));
  const Graph after = mixed(b);
  check_signature(after, "batch_norm_training", "bf16, f32, f32 -> bf16 f32 f32");
  check_signature(after, "max_pool2d", "bf16 -> bf16");
  for (const Node *convolution : nodes_of(after, "conv2d"))
    assert_string_equal(signature(after, *convolution).c_str(), "bf16, bf16 -> bf16");
  check_signature(after, "add", "f32, f32 -> f32");  // of the bias
}

void a_normalisation_of_inputs_stays_f32(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 8});
  const Values y = b.op_n("layer_norm", {x, weight(b, "s", {8}), weight(b, "o", {8})}, {}, 3);
  b.set_result("y", b.matmul(y[0], weight(b, "w", {8, 4})));
  check_signature(mixed(b), "layer_norm", "f32, f32, f32 -> f32 f32 f32");
}

void group_norms_between_products_read_and_give_bf16(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 8});
  const ValueId h = b.matmul(x, weight(b, "w", {8, 6}));
  const Values y = b.op_n("group_norm", {h, weight(b, "s", {6}), weight(b, "o", {6})}, {{"groups", int64_t{3}}}, 3);
  const Values z = b.op_n("rms_norm", {y[0], weight(b, "t", {6})}, {}, 2);
  const ValueId loss = b.reduce_sum(b.matmul(z[0], weight(b, "v", {6, 4})));
  const std::vector<ValueId> targets{loss}, wrt{x};
  b.set_result("dx", assert_ok_value(gradients_or_zeros(b, targets, {}, wrt))[0]);
  const Graph after = mixed(b);
  check_signature(after, "group_norm", "bf16, f32, f32 -> bf16 f32 f32");
  check_signature(after, "group_norm_gradient", "bf16, bf16, f32, f32, f32 -> bf16 f32 f32");
  check_signature(after, "rms_norm", "bf16, f32 -> bf16 f32");
  check_signature(after, "rms_norm_gradient", "bf16, bf16, f32, f32 -> bf16 f32");
}

void visible_values_are_not_rounded(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 8});
  const ValueId h = b.unary("tanh", b.matmul(x, weight(b, "w", {8, 8})));
  b.set_result("h", h);
  b.set_result("p", b.op("softmax", {b.matmul(h, weight(b, "v", {8, 4}))}));
  const Graph after = mixed(b);
  // The result itself, not what its rounded form is widened to.
  assert_string_equal(after.node(after.value(after.result("h")).producer).op.c_str(), "tanh");
  check_signature(after, "softmax", "f32 -> f32");
}

void losses_are_of_what_was_not_rounded(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 8}), target = b.input("target", DType::f32, {b.batch(), 4});
  const ValueId w = weight(b, "w", {8, 4});
  const ValueId off = b.sub(b.matmul(x, w), target);
  const ValueId loss = b.reduce_sum(b.mul(b.reduce_sum(b.unary("square", off), {1}), b.input("rows", DType::f32, {})));
  const std::vector<ValueId> targets{loss}, wrt{w};
  const auto gradients = assert_ok_value(gradients_or_zeros(b, targets, {}, wrt));
  b.state_write(gradients[0], "gradient/w");
  b.set_result("loss", loss);
  const Graph after = mixed(b);
  assert_string_equal(after.node(after.value(only(after, "square").inputs[0]).producer).op.c_str(), "sub");
  for (const Node *sum : nodes_of(after, "reduce_sum"))
    assert_true(after.value(sum->outputs[0]).dtype == DType::f32);
}

void gradients_of_biases_read_what_is_stored(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 8});
  const ValueId w = weight(b, "w", {8, 8}), bias = weight(b, "bias", {8}), v = weight(b, "v", {8, 4});
  const ValueId labels = b.input("label", DType::i64, {b.batch()});
  const ValueId h = b.unary("relu", b.add(b.matmul(x, w), bias));
  const ValueId loss = b.reduce_sum(b.op("sparse_softmax_cross_entropy", {b.matmul(h, v), labels}));
  const std::vector<ValueId> targets{loss}, wrt{w, bias, v};
  const auto gradients = assert_ok_value(gradients_or_zeros(b, targets, {}, wrt));
  for (size_t i = 0; i < wrt.size(); ++i)
    b.state_write(gradients[i], "gradient/" + std::to_string(i));
  const Graph after = mixed(b);
  for (const Node *product : nodes_of(after, "matmul"))
    assert_string_equal(signature(after, *product).c_str(), "bf16, bf16 -> bf16");
  check_signature(after, "sparse_softmax_cross_entropy", "f32, i64 -> f32");
  // What goes back through the relu is stored once, in bf16: the sum for the bias reads that.
  const Node &back = only(after, "relu_gradient");
  if (getenv("DUMP")) puts(to_text(after).c_str());
  for (const Node &node : after.nodes()) {
    const bool reads = std::count(node.inputs.begin(), node.inputs.end(), back.outputs[0]) != 0;
    if (reads) assert_string_equal(node.op.c_str(), "cast");
  }
}

/// Is what the node gives rounded to f16 anywhere?
bool is_stored_in_f16(const Graph &graph, const Node &node) {
  const ValueId made = node.outputs[0];
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node &reader) {
    return reader.op == "cast" && reader.inputs[0] == made && graph.value(reader.outputs[0]).dtype == DType::f16;
  });
}

void products_are_f16_where_that_is_asked_for(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 8});
  const ValueId h = b.unary("relu", b.add(b.matmul(x, weight(b, "w", {8, 8})), weight(b, "bias", {8})));
  const Values y = b.op_n("layer_norm", {h, weight(b, "s", {8}), weight(b, "o", {8})}, {}, 3);
  b.set_result("y", b.matmul(y[0], weight(b, "v", {8, 4})));
  const Graph after = mixed(b, DType::f16);
  for (const Node *product : nodes_of(after, "matmul"))
    assert_string_equal(signature(after, *product).c_str(), "f16, f16 -> f16");
  check_signature(after, "layer_norm", "f16, f32, f32 -> f16 f32 f32");
  check_signature(after, "add", "f32, f32 -> f32");
  assert_true(is_stored_in_f16(after, only(after, "relu")));
}

/// A sum over what one node makes of a product, which may be stored in 16 bits if it is in their range.
bool is_stored_before_a_sum(const char *op, DType half) {
  GraphBuilder b;
  const ValueId h = b.matmul(b.input("x", DType::f32, {b.batch(), 8}), weight(b, "w", {8, 8}));
  const bool is_binary = std::string_view(op) == "div" || std::string_view(op) == "mul";
  const ValueId gate = b.matmul(h, weight(b, "u", {8, 8}));
  const ValueId made = is_binary ? b.op(op, {h, gate}) : b.unary(op, h);
  b.set_result("mean", b.reduce_mean(made, {1}));
  b.set_result("largest", b.op("reduce_max", {made}, {{"axes", std::vector<int64_t>{1}}}));
  const Graph after = mixed(b, half);
  const ValueId result = only(after, op).outputs[0];
  return std::any_of(after.nodes().begin(), after.nodes().end(), [&](const Node &reader) {
    return reader.op == "cast" && reader.inputs[0] == result && after.value(reader.outputs[0]).dtype == half;
  });
}

void what_may_be_large_is_not_stored_in_f16(void **) {
  for (const char *const op : {"square", "exp", "expm1", "reciprocal", "rsqrt", "div"}) {
    assert_true(is_stored_before_a_sum(op, DType::bf16));
    if (is_stored_before_a_sum(op, DType::f16)) fail_msg("%s", op);
  }
  for (const char *const op : {"relu", "tanh", "gelu", "mul", "sqrt", "neg"}) {
    assert_true(is_stored_before_a_sum(op, DType::bf16));
    if (!is_stored_before_a_sum(op, DType::f16)) fail_msg("%s", op);
  }
}

/// A mask of large numbers, and what is made of it until something is bounded.
void constants_beyond_the_range_keep_their_readers_f32(void **) {
  for (const bool is_large : {false, true}) {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {b.batch(), 8});
    const ValueId mask = b.input("mask", DType::f32, {b.batch(), 8});
    const ValueId scores = b.matmul(x, weight(b, "w", {8, 8}));
    const ValueId masked = b.add(scores, b.mul(mask, b.constant(is_large ? -1e9 : -1e4, DType::f32)));
    const ValueId p = b.op("softmax", {masked});
    b.set_result("y", b.matmul(p, weight(b, "v", {8, 4})));
    const Graph after = mixed(b, DType::f16);
    check_signature(after, "softmax", is_large ? "f32 -> f32" : "f16 -> f16");
    assert_int_equal(nodes_of(after, "matmul").size(), 2);
  }
}

void a_square_by_another_name(void **) {
  for (const DType half : {DType::bf16, DType::f16}) {
    GraphBuilder b;
    const ValueId h = b.matmul(b.input("x", DType::f32, {b.batch(), 8}), weight(b, "w", {8, 8}));
    const ValueId square = b.mul(h, h);
    b.set_result("mean", b.reduce_mean(square, {1}));
    b.set_result("largest", b.op("reduce_max", {square}, {{"axes", std::vector<int64_t>{1}}}));
    // x, w, what the product gives; and the square once more where it is stored.
    assert_int_equal(nodes_of(mixed(b, half), "cast").size(), half == DType::bf16 ? 5 : 3);
  }
}

void other_types_are_refused(void **) {
  GraphBuilder b;
  b.set_result("y", b.input("x", DType::f32, {b.batch()}));
  const Graph graph = assert_ok_value(b.finish_graph());
  assert_error_contains(rewrite::mix_precision(graph, DType::f64).status(), "bf16 or f16, got f64");
}

void every_rule_is_of_an_op(void **) {
  size_t count = 0;
  for (const OpDefinition &op : all_ops()) {
    const rewrite::PrecisionRule rule = rewrite::precision_rule(op.name);
    if (rule.role == rewrite::PrecisionRole::keep) continue;
    ++count;
    assert_true(op.program);
    assert_true(op.effect == Effect::pure || op.name.starts_with("dropout"));
    // One first output is what decisions look at.
    assert_true(!op.outputs.empty());
  }
  assert_int_equal(count, rewrite::precision_rule_count());
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(products_are_bf16_and_what_is_visible_is_not),
    cmocka_unit_test(attention_is_a_product_whose_statistics_are_f32),
    cmocka_unit_test(other_dtypes_stay),
    cmocka_unit_test(elementwise_nodes_compute_in_f32_and_leave_bf16),
    cmocka_unit_test(what_stays_f32_is_not_cast),
    cmocka_unit_test(one_weight_is_cast_once),
    cmocka_unit_test(normalisations_keep_their_statistics),
    cmocka_unit_test(a_normalisation_of_inputs_stays_f32),
    cmocka_unit_test(group_norms_between_products_read_and_give_bf16),
    cmocka_unit_test(visible_values_are_not_rounded),
    cmocka_unit_test(losses_are_of_what_was_not_rounded),
    cmocka_unit_test(gradients_of_biases_read_what_is_stored),
    cmocka_unit_test(products_are_f16_where_that_is_asked_for),
    cmocka_unit_test(what_may_be_large_is_not_stored_in_f16),
    cmocka_unit_test(constants_beyond_the_range_keep_their_readers_f32),
    cmocka_unit_test(a_square_by_another_name),
    cmocka_unit_test(other_types_are_refused),
    cmocka_unit_test(every_rule_is_of_an_op),
};

}  // namespace

TEST_MAIN(kTests)

}  // namespace mix_precision_test
