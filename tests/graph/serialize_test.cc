// SPDX-License-Identifier: Apache-2.0
#include "graph/serialize.h"

#include <random>
#include <string>

#include "graph/autodiff.h"
#include "graph/base64.h"
#include "graph/builder.h"
#include "graph/constraint.h"
#include "testing.h"

namespace serialize_test {

namespace {

using tutti::impl::base::Json;
using tutti::impl::graph::base64_decode;
using tutti::impl::graph::base64_encode;
using tutti::impl::graph::Dims;
using tutti::impl::graph::Graph;
using tutti::impl::graph::graph_from_json;
using tutti::impl::graph::graph_from_text;
using tutti::impl::graph::GraphBuilder;
using tutti::impl::graph::kNoValue;
using tutti::impl::graph::Model;
using tutti::impl::graph::model_from_json;
using tutti::impl::graph::parse_constraint;
using tutti::impl::graph::predict_model;
using tutti::impl::graph::to_json_text;
using tutti::impl::graph::ValueId;
using tutti::impl::tensor::DType;
using tutti::impl::tensor::Tensor;
using Values = GraphBuilder::Values;

// A graph with regions, constants, an absent input and gradients.
Graph example_graph() {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 6, 6, 2}), k = b.input("k", DType::f32, {3, 3, 2, 4});
  ValueId y = b.op("conv2d", Values{x, k, kNoValue},
                   {{"padding", std::string("explicit")}, {"pads", std::vector<int64_t>{1, 0, 2, 1}}});
  y = b.call({y}, [](GraphBuilder &g, const Values &p) {
    return Values{g.call({p[0]}, [](GraphBuilder &h, const Values &q) { return Values{h.unary("relu", q[0])}; })[0]};
  })[0];
  y = b.custom_gradient(
      {y}, [](GraphBuilder &g, const Values &p) { return Values{g.scale(p[0], 0.1)}; },
      [](GraphBuilder &g, const Values &p) { return Values{g.neg(p[2])}; })[0];
  y = b.add(y, b.constant(*Tensor::from_values<float>({4}, {1, -0.0f, 3, 1e-30f})));
  const ValueId loss = b.reduce_mean(b.reduce_sum(y, {1, 2, 3}));
  b.set_result("loss", loss);
  const auto made = tutti::impl::graph::gradients(b, std::span(&loss, 1), {}, std::span(&k, 1));
  b.set_result("gradient", made.ok() ? (*made)[0] : kNoValue);
  auto graph = b.finish_graph();
  return graph.ok() ? *graph : Graph();
}

void graphs_come_back(void **) {
  const Graph graph = example_graph();
  assert_true(graph.nodes().size() > 10);
  const std::string text = to_json_text(graph);
  const Graph read = assert_ok_value(graph_from_text(text));
  assert_true(to_json_text(read) == text);
  assert_true(tutti::impl::graph::fingerprint(read) == tutti::impl::graph::fingerprint(graph));
  assert_true(read.input("k") == graph.input("k"));
  assert_true(read.result("gradient") == graph.result("gradient"));
  assert_true(to_text(read) == to_text(graph));
}

void clones_are_independent(void **) {
  Graph graph = example_graph();
  const Graph copy = graph.clone();
  const uint64_t before = tutti::impl::graph::fingerprint(copy);
  graph.mutable_node(0).scope_name = "other";
  assert_true(tutti::impl::graph::fingerprint(copy) == before);
  assert_true(tutti::impl::graph::fingerprint(graph) != before);
}

Model example_model() {
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {b.batch(), 3}), y = b.label("y", DType::i64, {b.batch()});
  const ValueId w = b.variable("w", DType::f32, {3, 4}, {"uniform", {{"low", -0.5}, {"high", 0.5}}});
  const ValueId average = b.variable("average", DType::f32, {}, {},
                                     {.trainable = false, .aggregation = tutti::impl::graph::Aggregation::aggregated});
  const ValueId logits = b.matmul(b.add(x, average), w);
  b.set_output("class", b.op("argmax", {logits}));
  b.set_loss(b.reduce_mean(b.op("sparse_softmax_cross_entropy", {logits, y})));
  b.add_metric("mean", b.reduce_mean(logits));
  b.assign("average", b.reduce_mean(x));
  b.set_train({.optimizer = {.op = "momentum_update",
                             .attributes = {{"momentum", 0.5}},
                             .learning_rate = b.host_scalar("rate", 0.1),
                             .slots = {{"velocity", 0}}},
               .clip = {.value = 0.25, .norm = 3},
               .average = {.decay = 0.9, .has_ramp = true, .start = 5}});
  b.set_clip_global_norm(2);
  auto model = b.finish();
  return model.ok() ? std::move(model).value() : Model();
}

void models_come_back(void **) {
  const Model model = example_model();
  assert_int_equal(model.variables.size(), 2);
  const std::string text = to_json(model).dump();
  const Model read = assert_ok_value(model_from_json(assert_ok_value(Json::parse(text))));
  assert_true(to_json(read).dump() == text);
  assert_true(read.train->clip_global_norm == 2);
  assert_true(read.train->clip.value == 0.25 && read.train->clip.norm == 3);
  assert_true(read.train->average.decay == 0.9 && read.train->average.has_ramp && read.train->average.start == 5);
  std::string wrong = text;
  wrong.replace(wrong.find("\"decay\":0.9"), 11, "\"decay\":1.5");
  assert_error_contains(model_from_json(assert_ok_value(Json::parse(wrong))), "average_decay is 1.5");
  assert_true(read.find_variable("w")->dims == (std::vector<int64_t>{3, 4}));
}

// A rule of update whose slots have values for rows and elements.
void slots_come_back(void **) {
  GraphBuilder b;
  const ValueId w = b.variable("w", DType::f32, {3, 4}, {});
  b.set_loss(b.reduce_mean(b.mul(w, w)));
  b.begin_op("update_rule", {b.host_scalar("rate", 0.1)},
             {{"slots", std::string("rows, sums")},
              {"slots_per", std::string("row, element")},
              {"view", std::string("stack")}});
  const auto parameters = b.begin_region();
  assert_int_equal(parameters.size(), 7);
  assert_string_equal(tutti::impl::graph::to_string(b.dims(parameters[5])).c_str(), "[matrices, rows]");
  assert_string_equal(tutti::impl::graph::to_string(b.dims(parameters[6])).c_str(), "[matrices, rows, columns]");
  b.end_region({parameters[0], parameters[5], parameters[6]});
  b.end_op();
  const Model model = assert_ok_value(b.finish());
  const std::string text = to_json(model).dump();
  const Model read = assert_ok_value(model_from_json(assert_ok_value(Json::parse(text))));
  assert_true(to_json(read).dump() == text);
  const auto &slots = read.train->optimizer.slots;
  assert_int_equal(slots.size(), 2);
  assert_true(slots[0].per == tutti::impl::graph::SlotPer::row);
  assert_true(slots[1].per == tutti::impl::graph::SlotPer::element);
  std::string wrong = text;
  wrong.replace(wrong.find("\"per\":\"row\""), 11, "\"per\":\"raw\"");
  assert_error_contains(model_from_json(assert_ok_value(Json::parse(wrong))), "'raw': expected element, row or column");
}

// A model of y = x w, with values that w begins with and a constraint.
Model constrained_model(const std::string &constraint) {
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {b.batch(), 2}), w = b.variable("w", DType::f32, {2, 3});
  b.set_initial_value("w", *Tensor::from_values<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  b.constrain(w, assert_ok_value(parse_constraint(constraint)));
  b.set_output("y", b.matmul(x, w));
  return assert_ok_value(b.finish());
}

void constraints_and_given_values_come_back(void **) {
  const Model model = constrained_model("max_norm(0.5, axes=-1)");
  const std::string text = to_json(model).dump();
  const Model read = assert_ok_value(model_from_json(assert_ok_value(Json::parse(text))));
  assert_true(to_json(read).dump() == text);
  assert_true(read.variables[0].constraint.kind == "max_norm" && read.variables[0].constraint.limit == 0.5);
  assert_true(read.variables[0].constraint.axes == std::vector<int64_t>{1});
  assert_true(std::get<Tensor>(read.variables[0].initializer.attributes.at("given_values")).data_as<float>()[5] == 6);
  assert_true(constrained_model("unit_norm").variables[0].constraint.axes == std::vector<int64_t>{0});
  assert_true(to_json(constrained_model("unit_norm")).dump() != to_json(constrained_model("max_norm")).dump());
  assert_true(to_json(constrained_model("none")).dump().find("constraint") == std::string::npos);
  // Predictions have weights from elsewhere.
  assert_true(assert_ok_value(predict_model(model)).variables[0].initializer.attributes.empty());
  const auto refused = [&](const char *from, const char *to, const char *expected) {
    std::string wrong = text;
    wrong.replace(wrong.find(from), strlen(from), to);
    assert_error_contains(model_from_json(assert_ok_value(Json::parse(wrong))), expected);
  };
  refused("\"max_norm\"", "\"max_nrom\"", "did you mean 'max_norm'");
  refused("\"axes\":[1]", "\"axes\":[2]", "axis 2");
  refused("\"limit\":0.5", "\"limit\":0", "above 0");
}

void prediction_needs_only_its_part(void **) {
  const Model predict = assert_ok_value(predict_model(example_model()));
  assert_int_equal(predict.variables.size(), 2);
  assert_int_equal(predict.labels.size(), 0);
  assert_true(predict.loss == kNoValue);
  for (const auto &node : predict.graph.nodes())
    assert_true(node.op != "sparse_softmax_cross_entropy");
  const std::string text = to_json(predict).dump();
  assert_true(model_from_json(assert_ok_value(Json::parse(text))).ok());
}

// Replaces the first `from` in the serialised example and expects a refusal that says `expected`.
void expect_refused(const char *from, const char *to, const char *expected) {
  std::string text = to_json_text(example_graph());
  const size_t at = text.find(from);
  if (at == std::string::npos) fail_msg("'%s' is not in the text", from);
  text.replace(at, strlen(from), to);
  const auto read = graph_from_text(text);
  if (read.ok()) fail_msg("accepted after replacing '%s' by '%s'", from, to);
  assert_contains(read.status().to_string().c_str(), expected);
}

void hostile_graphs_are_refused(void **) {
  expect_refused("tutti-graph", "tutti-gra", "expected 'tutti-graph'");
  expect_refused("\"version\":1", "\"version\":2", "version: is 2; this library reads version 1");
  expect_refused("\"version\":1", "\"version\":2,\"new\":{}", "version: is 2; this library reads version 1");
  expect_refused("\"op\":\"conv2d\"", "\"op\":\"conv3d\"", "did you mean 'conv2d'");
  expect_refused("\"op\":\"conv2d\"", "\"op\":\"conv2d\",\"revision\":7", "revision 7");
  expect_refused("\"inputs\":[0,1,-1]", "\"inputs\":[0,1,99999]", "99999");
  expect_refused("\"inputs\":[0,1,-1]", "\"inputs\":[0,-2,-1]", "-2");
  expect_refused("\"inputs\":[0,1,-1]", "\"inputs\":[0,-1,-1]", "missing");
  expect_refused("\"inputs\":[0,1,-1]", "\"inputs\":[0,2,-1]", "before it is defined");
  expect_refused("\"inputs\":[0,1,-1]", "\"inputs\":[0]", "inputs");
  expect_refused("\"outputs\":[2]", "\"outputs\":[1]", "defined twice");
  expect_refused("\"outputs\":[2]", "\"outputs\":[]", "outputs");
  expect_refused("\"body\":[0,1,", "\"body\":[1,0,0,", "twice");
  expect_refused("\"body\":[0,1,", "\"body\":[1,", "graph.nodes");
  expect_refused("{\"ints\":[1,0,2,1]}", "{\"ints\":[1,0,2]}", "pads");
  expect_refused("{\"ints\":[1,0,2,1]}", "{\"ints\":[1,0,2,-1]}", "pads");
  expect_refused("{\"ints\":[1,0,2,1]}", "{\"ints\":[1,0,2,1],\"i64\":3}", "kind of the attribute");
  expect_refused("{\"ints\":[1,0,2,1]}", "{\"i64\":3}", "expected ints");
  expect_refused("\"dims\":[\"batch\",6,6,2]", "\"dims\":[\"batch\",7,6,2]", "expected f32 [batch, 6, 6, 2]");
  expect_refused("\"dims\":[\"batch\",6,6,2]", "\"dims\":[\"(add batch\",6,6,2]", "dims");
  expect_refused("\"dims\":[\"batch\",6,6,2]", "\"dims\":[1,1,1,1,1,1,1,1,1]", "rank");
  expect_refused("\"dtype\":\"f32\"", "\"dtype\":\"f31\"", "f31");
  expect_refused("\"data\":\"", "\"data\":\"AAAA", "bytes");
  expect_refused("\"data\":\"", "\"data\":\"*", "base64");
  expect_refused("\"shape\":[4]", "\"shape\":[4611686018427387904]", "shape");
}

// A scrambled text may be refused or read as another graph; nothing else may happen (the sanitizers watch).
void scrambled_graphs_do_no_harm(void **) {
  const std::string text = to_json_text(example_graph());
  std::mt19937 random(7);
  int accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string scrambled = text;
    const int changes = 1 + static_cast<int>(random() % 3);
    for (int i = 0; i < changes; ++i) {
      const size_t at = random() % scrambled.size();
      const char *alphabet = "0123456789-[]{}\",:ab";
      switch (random() % 3) {
        case 0:
          scrambled[at] = alphabet[random() % 20];
          break;
        case 1:
          scrambled.erase(at, random() % 9);
          break;
        default:
          scrambled.insert(at, scrambled.substr(random() % scrambled.size(), random() % 12));
      }
    }
    const auto read = graph_from_text(scrambled);
    if (read.ok()) ++accepted;
    if (read.ok() && !graph_from_text(to_json_text(*read)).ok()) fail_msg("a graph that was read cannot be read again");
  }
  assert_true(accepted < 3000);
}

void limits_hold(void **) {
  const std::string text = to_json_text(example_graph());
  assert_error_contains(graph_from_text(text, {.nodes = 3}), "limit");
  assert_error_contains(graph_from_text(text, {.values = 3}), "limit");
  assert_error_contains(graph_from_text(text, {.region_depth = 1}), "deeper");
  assert_false(graph_from_text(text, {.text_bytes = 10}).ok());
}

void base64_is_exact(void **) {
  for (const char *text : {"", "f", "fo", "foo", "foob", "fooba", "foobar"}) {
    assert_true(base64_decode(base64_encode(text)).value() == text);
  }
  assert_string_equal(base64_encode("foob").c_str(), "Zm9vYg==");
  for (const char *text : {"Z", "Zg", "Zg=", "Zm9=Yg==", "Zh==", "Zm9v====", "Z m9"})
    assert_false(base64_decode(text).ok());
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(graphs_come_back),
      cmocka_unit_test(clones_are_independent),
      cmocka_unit_test(models_come_back),
      cmocka_unit_test(slots_come_back),
      cmocka_unit_test(constraints_and_given_values_come_back),
      cmocka_unit_test(prediction_needs_only_its_part),
      cmocka_unit_test(hostile_graphs_are_refused),
      cmocka_unit_test(scrambled_graphs_do_no_harm),
      cmocka_unit_test(limits_hold),
      cmocka_unit_test(base64_is_exact),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace serialize_test
