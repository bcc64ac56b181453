// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/pipeline.h"

#include "sample_data.h"
#include "testing.h"

namespace pipeline_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::Pipeline;

namespace {

void the_first_error_is_kept(void **) {
  Pipeline pipeline = sample();
  pipeline.shuffle(10).apply("bath", {{"batch_size", int64_t{4}}}).batch(0).prefetch();
  assert_error_contains(pipeline.build(),
                        "pipeline: transform 2 'bath' cannot be applied; caused by: INVALID_ARGUMENT: "
                        "there is no transform 'bath', did you mean 'batch'?");
  assert_true(pipeline.spec() != nullptr);
  Pipeline bad_source(data::from_slices({{"x", counted(2)}, {"y", counted(3)}}));
  assert_error_contains(bad_source.batch(2).build(), "component 'x' has 2 rows but component 'y' has 3");
  assert_null(bad_source.spec());
}

void parameters_are_checked_by_name_type_and_bounds(void **) {
  assert_error_contains(sample().apply("batch", {{"size", int64_t{4}}}).build(), "there is no parameter 'size'");
  assert_error_contains(sample().apply("batch", {{"batch_sise", int64_t{4}}}).build(), "did you mean 'batch_size'?");
  assert_error_contains(sample().apply("batch").build(), "parameter 'batch_size' is missing");
  assert_error_contains(sample().batch(0).build(), "parameter 'batch_size': expected at least 1, got 0");
  assert_error_contains(sample().apply("batch", {{"batch_size", 4.0}}).build(), "parameter 'batch_size': expected i64");
  assert_error_contains(sample().prefetch(5000).build(), "expected from 0 to 4096, got 5000");
  assert_error_contains(sample().apply("batch", {{"batch_size", int64_t{4}}}, {}, 2).build(),
                        "transform 'batch' has no revision 2");
  assert_error_contains(sample().apply("zip").build(), "expected the argument 'others'");
  assert_error_contains(sample().apply("shard", {{"num_shards", int64_t{3}}, {"index", int64_t{3}}}).build(),
                        "expected a number below num_shards = 3, got 3");
}

void what_a_transform_does_not_take_is_refused(void **) {
  const auto error_of = [](const char *name, data::TransformArguments arguments) {
    return sample().apply(name, {{"count", int64_t{1}}}, std::move(arguments)).build();
  };
  data::TransformArguments like, another, function;
  like.output_spec = assert_ok_value(sample().build())->spec();
  another.others = {assert_ok_value(sample().build())};
  function.map = [](const data::Element &, data::Element &) { return base::Status(); };
  assert_error_contains(error_of("take", like), "it does not take a dataset 'like' what it yields, which was given");
  assert_error_contains(error_of("skip", another), "it does not take another dataset, which was given");
  assert_error_contains(error_of("repeat", function), "it does not take a function, which was given");
}

void splits_divide(void **) {
  const auto part = [](const char *which, graph::Attributes attributes) {
    attributes["part"] = std::string(which);
    return values_of<int32_t>(sample(10).apply("split", std::move(attributes)).build().value(), "y");
  };
  assert_true((part("first", {{"fraction", 0.25}}) == std::vector<int32_t>{0, 1}));
  assert_true((part("second", {{"fraction", 0.25}}) == std::vector<int32_t>{2, 3, 4, 5, 6, 7, 8, 9}));
  assert_true((part("second", {{"count", int64_t{8}}}) == std::vector<int32_t>{8, 9}));
  assert_true(part("first", {{"fraction", int64_t{0}}}).empty());
  assert_int_equal(part("first", {{"fraction", int64_t{1}}}).size(), 10);
  assert_error_contains(sample().apply("split", {{"part", std::string("first")}}).build(),
                        "expected one of the parameters 'fraction' and 'count'");
  assert_error_contains(sample().apply("split", {{"part", std::string("third")}, {"count", int64_t{1}}}).build(),
                        "expected \"first\" or \"second\"");
  assert_error_contains(sample().repeat().apply("split", {{"part", std::string("first")}, {"fraction", 0.5}}).build(),
                        "needs a dataset of known size; this one's is infinite");
}

void shards_are_disjoint_and_complete(void **) {
  std::vector<int> seen(23);
  for (int64_t index = 0; index < 5; ++index) {
    const DatasetRef shard =
        assert_ok_value(sample(23).apply("shard", {{"num_shards", int64_t{5}}, {"index", index}}).build());
    const std::vector<int32_t> values = values_of<int32_t>(shard, "y");
    assert_int_equal(shard->cardinality().value(), static_cast<int64_t>(values.size()));
    for (const int32_t value : values) {
      assert_int_equal(value % 5, index);
      ++seen[static_cast<size_t>(value)];
    }
  }
  for (const int count : seen)
    assert_int_equal(count, 1);
}

void joined_datasets_must_fit(void **) {
  data::TransformArguments arguments;
  arguments.others = {sample().build().value()};
  assert_error_contains(sample().apply("zip", {}, arguments).build(), "two components are called 'x'");
  arguments.others = {sample(10, 4).build().value()};
  assert_error_contains(sample().apply("concatenate", {}, arguments).build(),
                        "expected datasets of equal specs, got (x: f32[3], y: i32[] label) and (x: f32[4]");
  arguments.others = {range(4).batch(2).build().value()};
  assert_error_contains(sample().apply("zip", {}, arguments).build(), "expected equal batches");
  arguments.others = {nullptr};
  assert_error_contains(sample().apply("zip", {}, arguments).build(), "a dataset is missing");
}

void compositions_of_the_user_fit_in(void **) {
  Pipeline pipeline = sample(10);
  pipeline.apply([](DatasetRef input) { return Pipeline(std::move(input)).batch(5).build(); });
  assert_int_equal(assert_ok_value(pipeline.build())->cardinality().value(), 2);
  pipeline.apply([](DatasetRef) -> base::Result<DatasetRef> { return base::aborted("no"); });
  assert_error_contains(pipeline.build(), "pipeline: transformation 2 failed; caused by: ABORTED: no");
}

void specs_tell_what_a_graph_sees(void **) {
  const data::ElementSpec single = assert_ok_value(sample().map_inputs());
  assert_string_equal(single.to_string().c_str(), "(x: f32[batch, 3], y: i32[batch] label)");
  const DatasetRef batched = assert_ok_value(sample().batch(4, true).build());
  assert_string_equal(batched->spec().to_string().c_str(), "(x: f32[batch, 3], y: i32[batch] label)");
  assert_int_equal(batched->spec().batch_size, 4);
  assert_true(batched->spec().exact_batches);
  assert_false(sample(10).batch(4).build().value()->spec().exact_batches);
  assert_true(sample(8).batch(4).build().value()->spec().exact_batches);
  assert_string_equal(sample().batch(4).batch(2).build().value()->spec().components[1].to_string().c_str(),
                      "y: i32[batch, unknown] label");
}

void the_registry_describes_itself(void **) {
  const base::Json all = data::describe_transforms();
  assert_int_equal(all.size(), data::transform_definitions().size());
  for (const base::Json &transform : all.array()) {
    assert_true(transform.find("documentation")->string().size() > 10);
    const data::TransformDefinition *found = data::find_transform(transform.find("name")->string());
    assert_non_null(found);
    assert_int_equal(found->parameters.size(), transform.find("parameters")->size());
  }
  assert_null(data::find_transform("nonsense"));
  const base::Json sources = data::describe_sources();
  assert_int_equal(sources.size(), data::source_definitions().size());
  for (const base::Json &source : sources.array()) {
    const std::string name = source.find("name")->string();
    assert_int_equal(data::find_source(name)->parameters.size(), source.find("parameters")->size());
    assert_null(data::find_transform(name));  // one name, one meaning
  }
  assert_null(data::find_source("nonsense"));
  assert_non_null(data::find_parameter("text_lines", 1, "paths"));
  assert_non_null(data::find_parameter("shuffle", 0, "seed"));
  assert_null(data::find_parameter("shuffle", 7, "seed"));
  assert_null(data::find_parameter("shuffle", 0, "paths"));
}

void pipelines_begin_with_a_source(void **) {
  Pipeline counting;
  counting.apply("range", {{"stop", int64_t{6}}, {"start", int64_t{2}}}).batch(2);
  assert_true((values_of<int64_t>(assert_ok_value(counting.build()), "value") == std::vector<int64_t>{2, 3, 4, 5}));
  const auto error_of = [](std::initializer_list<const char *> names) {
    Pipeline pipeline;
    for (const char *name : names)
      pipeline.apply(name,
                     std::string_view(name) == "range" ? graph::Attributes{{"stop", int64_t{3}}} : graph::Attributes());
    return pipeline.build();
  };
  assert_error_contains(error_of({"rnge"}),
                        "it cannot begin with 'rnge'; caused by: INVALID_ARGUMENT: there is no "
                        "source 'rnge', did you mean 'range'?");
  assert_error_contains(error_of({"cache"}), "it is a transform, and the pipeline has no source yet");
  assert_error_contains(error_of({"range", "range"}), "it is a source, and the pipeline has one already");
  assert_error_contains(error_of({}), "the pipeline has no source");
  Pipeline later;
  assert_error_contains(later.apply("range", {{"stop", int64_t{3}}}, {}, 9).build(), "no revision 9");
  assert_error_contains(Pipeline().map_inputs(), "the pipeline has no source");
  Pipeline composed;
  assert_error_contains(composed.apply([](DatasetRef input) -> base::Result<DatasetRef> { return input; }).build(),
                        "the pipeline has no source");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_first_error_is_kept),
    cmocka_unit_test(parameters_are_checked_by_name_type_and_bounds),
    cmocka_unit_test(what_a_transform_does_not_take_is_refused),
    cmocka_unit_test(splits_divide),
    cmocka_unit_test(shards_are_disjoint_and_complete),
    cmocka_unit_test(joined_datasets_must_fit),
    cmocka_unit_test(compositions_of_the_user_fit_in),
    cmocka_unit_test(specs_tell_what_a_graph_sees),
    cmocka_unit_test(the_registry_describes_itself),
    cmocka_unit_test(pipelines_begin_with_a_source),
};
TEST_MAIN(tests)

}  // namespace pipeline_test
