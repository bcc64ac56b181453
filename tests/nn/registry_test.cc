// SPDX-License-Identifier: Apache-2.0
// The table, and what is checked before an entry is expanded.
#include <set>

#include "base/text.h"
#include "nn_testing.h"
#include "testing.h"

namespace registry_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;

namespace {

bool is_without_kind(const nn::Definition &definition) {
  for (const char *kind : {"layer_", "loss_", "metric_", "optimizer_", "parameter_", "schedule_"}) {
    if (definition.name.starts_with(kind)) return false;
  }
  return true;
}

void test_table(void **) {
  std::set<std::string> names;
  for (const nn::Definition &definition : nn::all_definitions()) {
    assert_true(names.insert(std::string(definition.name)).second);
    assert_non_null(definition.expand);
    assert_false(definition.doc.empty());
    assert_ptr_equal(nn::find_definition(definition.name, definition.revision), &definition);
    for (const graph::AttributeDefinition &attribute : definition.attributes) {
      // A default is of the attribute's own type, and inside of its bounds and choices.
      if (!attribute.required && !graph::holds(attribute.default_value, attribute.type))
        fail_msg("%s: default of '%s' has another type", std::string(definition.name).c_str(),
                 std::string(attribute.name).c_str());
      assert_false(attribute.doc.empty());
    }
  }
  // A function is used as an op is, and so no op has its name.
  for (const nn::Definition &definition : nn::all_definitions()) {
    assert_true(definition.is_function == (graph::find_op(definition.name) == nullptr && is_without_kind(definition)));
  }
  for (const char *expected : {"clip", "layer_dense", "layer_separable_conv2d", "loss_softmax_cross_entropy",
                               "metric_top_k_accuracy", "optimizer_adamw", "schedule_cosine"})
    assert_true(names.count(expected) == 1);
  assert_null(nn::find_definition("layer_dense", 2));
  assert_null(nn::find_definition("dense", 1));
}

void test_unknown_entry(void **) {
  Bench bench;
  bench.expand("layer_dence", {});
  assert_contains(bench.error().c_str(), "there is no 'layer_dence' of revision 1, did you mean 'layer_dense'?");
}

void test_inputs(void **) {
  Bench missing;
  missing.expand("layer_dense", {}, {{"units", int64_t{3}}});
  assert_contains(missing.error().c_str(), "layer_dense: input 'x' is missing");
  Bench none;
  none.expand("layer_dense", {graph::kNoValue}, {{"units", int64_t{3}}});
  assert_contains(none.error().c_str(), "layer_dense: input 'x' is missing");
  Bench many;
  const ValueId x = many.input("x", {}, {2});
  many.expand("layer_flatten", {x, x});
  assert_contains(many.error().c_str(), "layer_flatten: takes 1 inputs, got 2");
}

graph::Attribute required_value(graph::AttributeType type) {
  if (type == graph::AttributeType::i64) return int64_t{2};
  if (type == graph::AttributeType::f64) return 0.5;
  if (type == graph::AttributeType::string) return std::string("some");
  if (type == graph::AttributeType::ints) return std::vector<int64_t>{2};
  return std::vector<double>{0.5};
}

void test_attributes(void **) {
  const std::vector<std::pair<Attributes, const char *>> wrong = {
      {{}, "attribute 'units' is missing"},
      {{{"units", int64_t{0}}}, "attribute 'units': expected at least 1, got 0"},
      {{{"units", 3.0}}, "attribute 'units' must be of type i64, got"},
      {{{"units", int64_t{3}}, {"activation", std::string("softplus")}},
       "attribute 'activation' must be one of none, relu, sigmoid, tanh, gelu, silu, gelu_tanh; got 'softplus'"},
      {{{"units", int64_t{3}}, {"use_bais", false}}, "unknown attribute 'use_bais', did you mean 'use_bias'?"},
  };
  for (const auto &[attributes, message] : wrong) {
    Bench bench;
    bench.builder.push_scope("tower");
    bench.expand("layer_dense", {bench.input("x", {}, {2})}, attributes);
    assert_contains(bench.error().c_str(), "tower: layer_dense: ");
    assert_contains(bench.error().c_str(), message);
  }
}

// Of every entry, each of its inputs as texts, but those of functions that move elements: the error names what the
// model wrote, and no op behind it.
void test_inputs_of_texts(void **) {
  int inputs = 0;
  for (const nn::Definition &definition : nn::all_definitions()) {
    Attributes attributes;
    for (const graph::AttributeDefinition &attribute : definition.attributes) {
      if (attribute.required) attributes.emplace(std::string(attribute.name), required_value(attribute.type));
    }
    for (size_t wrong = 0; wrong < definition.inputs.size(); ++wrong, ++inputs) {
      if (definition.is_function && definition.inputs[wrong].dtype_class == graph::DTypeClass::any) continue;
      Bench bench;
      std::vector<ValueId> values;
      for (size_t i = 0; i < definition.inputs.size(); ++i) {
        const std::string name = base::concat("i", i);
        values.push_back(i == wrong ? bench.builder.label(name, DType::bytes, {GraphBuilder::batch()})
                                    : bench.input(name, {}, {2}));
      }
      bench.expand(std::string(definition.name), values, attributes);
      const std::string expected = base::concat(definition.name, ": input '", definition.inputs[wrong].name,
                                                "' (label 'i", wrong, "') is bytes, expected numbers; a CSV column");
      assert_contains(bench.error().c_str(), expected.c_str());
    }
  }
  assert_true(inputs > 20);
}

void test_inputs_of_integers(void **) {
  for (const char *entry : {"layer_dense", "layer_layer_norm", "layer_batch_norm"}) {
    Bench bench;
    bench.expand(entry, {bench.input("x", {}, {2}, DType::i32)},
                 entry == std::string_view("layer_dense") ? Attributes{{"units", int64_t{3}}} : Attributes());
    assert_contains(bench.error().c_str(), base::concat(entry, ": input 'x' is i32, expected floating point").c_str());
  }
  Bench bench;
  const ValueId predictions = bench.input("p", {}, {2}, DType::i32);
  bench.expand("loss_mean_squared_error", {predictions, bench.input("t", {}, {2})});
  assert_contains(bench.error().c_str(), "loss_mean_squared_error: input 'predictions' (feature 'p') is i32, expected");
}

void test_choices_by_number(void **) {
  Bench bench;
  bench.expand("layer_dense", {bench.input("x", {}, {2})}, {{"units", int64_t{3}}, {"activation", int64_t{77}}});
  assert_contains(bench.error().c_str(),
                  "attribute 'activation' is 77, expected one of 1 (none), 2 (relu), 3 (sigmoid)");
}

void test_nothing_is_added_after_an_error(void **) {
  Bench bench;
  const ValueId x = bench.input("x", {}, {2});
  bench.builder.fail(base::invalid_argument("first"));
  assert_int_equal(bench.expand("layer_dense", {x}, {{"units", int64_t{3}}}), graph::kNoValue);
  assert_string_equal(bench.error().c_str(), "first");
  assert_int_equal(bench.builder.model().variables.size(), 0);
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_table),
    cmocka_unit_test(test_unknown_entry),
    cmocka_unit_test(test_inputs),
    cmocka_unit_test(test_attributes),
    cmocka_unit_test(test_inputs_of_texts),
    cmocka_unit_test(test_inputs_of_integers),
    cmocka_unit_test(test_choices_by_number),
    cmocka_unit_test(test_nothing_is_added_after_an_error),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace registry_test
