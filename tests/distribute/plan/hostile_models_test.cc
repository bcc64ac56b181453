// SPDX-License-Identifier: Apache-2.0
//
// Models of unknown origin, as a checkpoint brings them: saved ones with one place changed, every place in turn. Each
// is refused with a reason, or it predicts; nothing is an internal error, and nothing takes memory for sizes that are
// only said.
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "distribute/predict_case.h"
#include "distribute/training_case.h"
#include "graph/serialize.h"
#include "testing.h"

namespace tutti::testing::hostile_models_test {

namespace base = impl::base;
namespace graph = impl::graph;
using base::Code;
using base::Json;
using base::JsonArray;
using base::JsonObject;

/// A graph with the shapes of ops that people use: products, windows, slices, indices, branches.
static Model varied_model() {
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), 4, 4, 2});
  const ValueId ids = b.feature("ids", DType::i64, {GraphBuilder::batch()});
  const ValueId table = b.variable("table", DType::f32, {5, 3}, {"ones", {}});
  const ValueId kernel = b.variable("kernel", DType::f32, {2, 2, 2, 3}, {"ones", {}});
  const ValueId image = b.op("conv2d", {x, kernel}, {{"stride", std::vector<int64_t>{1, 1}}});
  const ValueId pooled = b.reduce_mean(image, {1, 2});
  const ValueId positive = b.op("less", {b.constant(0.0, DType::f32), b.reduce_sum(table)});
  const auto chosen = b.cond(
      positive, [&](GraphBuilder &, const GraphBuilder::Values &) { return GraphBuilder::Values{b.scale(table, 2)}; },
      [&](GraphBuilder &, const GraphBuilder::Values &) { return GraphBuilder::Values{b.neg(table)}; });
  const ValueId rows = b.op("gather", {chosen[0], ids}, {{"axis", int64_t{0}}});
  const ValueId joined = b.concat({pooled, rows}, 1);
  const ValueId part = b.slice(joined, {graph::Dim(0), graph::Dim(1)}, {GraphBuilder::batch(), graph::Dim(4)});
  const ValueId square = b.matmul(b.reshape(part, {GraphBuilder::batch(), 2, 2}),
                                  b.transpose(b.reshape(part, {GraphBuilder::batch(), 2, 2}), {0, 2, 1}));
  assert_ok(b.status());
  b.set_output("y", b.op("softmax", {b.reshape(square, {GraphBuilder::batch(), 4})}, {{"axis", int64_t{1}}}));
  return assert_ok_value(b.finish());
}

/// Calls `visit` for a value and every one inside it, each of which it may change and has to restore.
static void each_place(Json &json, const std::string &path,
                       const std::function<void(Json &, const std::string &)> &visit) {
  visit(json, path);
  if (json.is_array()) {
    for (size_t i = 0; i < json.array().size(); ++i)
      each_place(json.array()[i], base::concat(path, "[", i, "]"), visit);
  }
  if (json.is_object()) {
    for (auto &[key, value] : json.object())
      each_place(value, path + "." + key, visit);
  }
}

/// What a value is replaced by.
static std::vector<Json> changes_of(const Json &json) {
  std::vector<Json> changes{Json(), Json(true), Json(-1), Json(1.5), Json("x"), Json(JsonArray{}), Json(JsonObject{})};
  if (json.is_integer()) {
    for (const int64_t number : {int64_t{0}, int64_t{1}, json.integer() + 1, json.integer() - 1, int64_t{1} << 31,
                                 int64_t{1} << 40, int64_t{1} << 62, INT64_MAX, INT64_MIN})
      changes.emplace_back(number);
  }
  if (json.is_number()) {
    for (const double number : {0.0, -1.0, 1e308})
      changes.emplace_back(number);
    changes.emplace_back("NaN");
  }
  if (json.is_string()) {
    for (const char *text : {"", "i64", "bytes", "f16", "matmul", "input", "variable", "batch", "-batch", "batch*batch",
                             "9223372036854775807", "4611686018427387904*batch", "AAAA"})
      changes.emplace_back(text);
  }
  if (json.is_array() && json.size() > 0) {
    JsonArray shorter = json.array(), longer = json.array(), reversed(shorter.rbegin(), shorter.rend());
    shorter.pop_back();
    longer.push_back(longer.front());
    changes.emplace_back(std::move(shorter));
    changes.emplace_back(std::move(longer));
    changes.emplace_back(std::move(reversed));
  }
  if (json.is_object()) {
    for (size_t i = 0; i < json.size(); ++i) {
      JsonObject fewer = json.object();
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      changes.emplace_back(std::move(fewer));
    }
  }
  return changes;
}

static impl::base::Ref<impl::checkpoint::WeightVersion> weights_of(const Model &model) {
  return numbered_version(model);
}

/// Reads it and predicts with what the model that it is made of takes.
static Status use(const Json &json, const Model &original, const StrategyRef &strategy) {
  TUTTI_ASSIGN(const Model model, graph::model_from_json(json));
  TUTTI_ASSIGN(const auto engine, impl::distribute::PredictEngine::open(model, strategy, {}));
  TUTTI_TRY(engine->set_weights(weights_of(original)));
  std::vector<Tensor> features;
  for (const std::string &name : engine->feature_names()) {
    const graph::InputSpec *const input = original.find_feature(name);
    if (input == nullptr) return Status();
    std::vector<int64_t> dims{2};
    for (size_t axis = 1; axis < input->dims.size(); ++axis)
      dims.push_back(input->dims[axis].constant());
    features.push_back(assert_ok_value(Tensor::zeros(input->dtype, assert_ok_value(impl::tensor::Shape::make(dims)))));
  }
  return engine->run(features, nullptr).status();
}

static bool is_refusal(Code code) {
  return code == Code::ok || code == Code::invalid_argument || code == Code::data_loss || code == Code::unimplemented ||
         code == Code::not_found || code == Code::failed_precondition || code == Code::out_of_range;
}

static void check_model(const Model &model, int &tried) {
  const StrategyRef strategy = assert_ok_value(make_test_strategy(1));
  Json json = graph::to_json(model);
  assert_ok(use(json, model, strategy));
  std::set<std::string> told;
  int wrong = 0;
  each_place(json, "model", [&](Json &place, const std::string &path) {
    const Json original = place;
    for (Json &change : changes_of(original)) {
      if (change == original) continue;
      const std::string text = change.dump();
      place = std::move(change);
      const Status status = use(json, model, strategy);
      ++tried;
      if (!is_refusal(status.code()) && told.insert(status.to_string().substr(0, 200)).second && ++wrong <= 40)
        print_error("%s = %s: %s\n", path.c_str(), text.substr(0, 80).c_str(), status.to_string().c_str());
    }
    place = original;
  });
  assert_int_equal(wrong, 0);
}

static void every_place_of_a_model(void **) {
  int tried = 0;
  NetworkCase network;
  network.dropout = true;
  check_model(assert_ok_value(graph::predict_model(assert_ok_value(build_network(network)))), tried);
  check_model(assert_ok_value(graph::predict_model(varied_model())), tried);
  print_message("%d models\n", tried);
  assert_true(tried > 1000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_place_of_a_model),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::hostile_models_test
