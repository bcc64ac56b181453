// SPDX-License-Identifier: Apache-2.0
// Functions of the host that throw: what calls them gets an error that says so, and the library goes on.
#include <tutti/tutti.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Not tests/testing.h, whose C++ part is C++20.
extern "C" {
#include <cmocka.h>
}
#undef fail

namespace {

enum class Thrown { exception, memory, number };
std::atomic<Thrown> kind{Thrown::exception};
std::atomic<int> destroyed{0};

[[noreturn]] void throw_something() {
  if (kind == Thrown::memory) throw std::bad_alloc();
  if (kind == Thrown::number) throw 7;
  throw std::runtime_error("the ship sank");
}

void destroy(void *) {
  ++destroyed;
  throw_something();
}

/// The error of a call: its code, and a text with what was thrown.
void assert_told(int32_t code, tutti_error *error, const char *what) {
  assert_int_equal(code, kind == Thrown::memory ? TUTTI_RESOURCE_EXHAUSTED : TUTTI_INTERNAL);
  const std::string text = tutti_error_get_text(error);
  const char *const how = kind == Thrown::memory   ? "out of memory"
                          : kind == Thrown::number ? "an exception of an unknown type"
                                                   : "threw an exception: the ship sank";
  if (text.find(what) == std::string::npos || text.find(how) == std::string::npos)
    print_error("expected \"%s\" and \"%s\", got \"%s\"\n", what, how, text.c_str());
  assert_true(text.find(what) != std::string::npos && text.find(how) != std::string::npos);
  tutti_error_unref(error);
}

void add_rows(tutti_pipeline *pipeline) {
  const std::vector<float> x(8, 1);
  const int64_t dims[] = {8, 1};
  tutti_tensor *rows = nullptr;
  assert_int_equal(tutti_tensor_from_data(TUTTI_DTYPE_F32, dims, 2, x.data(), 32, &rows, nullptr), TUTTI_OK);
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, rows);
  tutti_tensor_unref(rows);
}

int32_t throw_from_map(void *, tutti_tensor *const *, tutti_tensor **, int64_t, tutti_error **) { throw_something(); }
int32_t throw_from_predicate(void *, tutti_tensor *const *, int64_t, uint8_t *, tutti_error **) { throw_something(); }
int32_t throw_from_generator(void *, int64_t, int64_t, tutti_tensor **, int64_t, uint8_t *, tutti_error **) {
  throw_something();
}
int32_t throw_from_expand(void *, tutti_tensor *const *, int64_t, tutti_dataset **, tutti_error **) {
  throw_something();
}

using Begin = void (*)(tutti_pipeline *pipeline);
const struct {
  const char *what;
  Begin begin;
} kTransforms[] = {
    {"the map function",
     [](tutti_pipeline *pipeline) {
       add_rows(pipeline);
       tutti_pipeline_map(pipeline, throw_from_map, nullptr, destroy, 1);
     }},
    {"the map function",
     [](tutti_pipeline *pipeline) {
       add_rows(pipeline);
       tutti_pipeline_map(pipeline, throw_from_map, nullptr, destroy, 3);
     }},
    {"the predicate function",
     [](tutti_pipeline *pipeline) {
       add_rows(pipeline);
       tutti_pipeline_begin(pipeline, "filter_callback", 0);
       tutti_pipeline_set_predicate(pipeline, throw_from_predicate, nullptr, destroy);
       tutti_pipeline_end(pipeline);
     }},
    {"the function that gives a dataset",
     [](tutti_pipeline *pipeline) {
       add_rows(pipeline);
       tutti_pipeline_begin(pipeline, "flat_map", 0);
       tutti_pipeline_set_expand(pipeline, throw_from_expand, nullptr, destroy);
       tutti_pipeline_end(pipeline);
     }},
    {"the generator function",
     [](tutti_pipeline *pipeline) {
       const int64_t one = 1;
       tutti_pipeline_declare(pipeline, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, &one, 1);
       tutti_pipeline_add_generator(pipeline, throw_from_generator, nullptr, destroy);
     }},
};

void test_pipelines(void **) {
  for (const Thrown thrown : {Thrown::exception, Thrown::memory, Thrown::number}) {
    kind = thrown;
    for (const auto &transform : kTransforms) {
      for (const bool ahead : {false, true}) {
        destroyed = 0;
        tutti_pipeline *pipeline = nullptr;
        tutti_dataset *dataset = nullptr;
        tutti_iterator *iterator = nullptr;
        tutti_error *error = nullptr;
        assert_int_equal(tutti_pipeline_create(nullptr, &pipeline, &error), TUTTI_OK);
        transform.begin(pipeline);
        tutti_pipeline_batch(pipeline, 2, 0);
        if (ahead) tutti_pipeline_prefetch(pipeline, nullptr);
        assert_int_equal(tutti_pipeline_build(pipeline, &dataset, &error), TUTTI_OK);
        assert_int_equal(tutti_iterator_create(dataset, 0, &iterator, &error), TUTTI_OK);
        uint8_t has_element = 0;
        const int32_t code = tutti_iterator_next(iterator, nullptr, &has_element, &error);
        assert_told(code, error, transform.what);
        tutti_iterator_unref(iterator), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
        assert_int_equal(destroyed, 1);
      }
    }
  }
}

struct Training {
  bool model_throws, hook_throws;
};

int32_t model(tutti_graph *g, int32_t, void *user, tutti_error **err) {
  if (static_cast<const Training *>(user)->model_throws) throw_something();
  const int64_t one = 1;
  const tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, &one, 1, "constant", 2.0, 1);
  const tutti_value y = tutti_mul(g, tutti_graph_get_feature(g, "x"), w);
  tutti_graph_set_output(g, "y", y);
  tutti_graph_set_loss(g, tutti_reduce_mean(g, y, nullptr));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), nullptr);
  return tutti_graph_check(g, err);
}

int32_t hook(void *user, const tutti_hook_event *, tutti_error **) {
  if (static_cast<const Training *>(user)->hook_throws) throw_something();
  return TUTTI_OK;
}

void throw_from_log(void *, int32_t, const char *) { throw_something(); }

int32_t train(Training training, tutti_context *context, tutti_error **error) {
  tutti_pipeline *pipeline = nullptr;
  tutti_dataset *dataset = nullptr;
  tutti_hooks *hooks = nullptr;
  tutti_estimator *estimator = nullptr;
  assert_int_equal(tutti_pipeline_create(context, &pipeline, error), TUTTI_OK);
  add_rows(pipeline);
  tutti_pipeline_batch(pipeline, 4, 0);
  assert_int_equal(tutti_pipeline_build(pipeline, &dataset, error), TUTTI_OK);
  assert_int_equal(tutti_hooks_create(&hooks, error), TUTTI_OK);
  assert_int_equal(tutti_hooks_add(hooks, hook, &training, destroy, 1, error), TUTTI_OK);
  assert_int_equal(tutti_estimator_create(context, model, &training, destroy, nullptr, nullptr, &estimator, error),
                   TUTTI_OK);
  const int32_t code = tutti_estimator_train(estimator, dataset, nullptr, hooks, nullptr, nullptr, error);
  tutti_estimator_unref(estimator), tutti_hooks_unref(hooks);
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  return code;
}

void test_training(void **) {
  for (const Thrown thrown : {Thrown::exception, Thrown::memory, Thrown::number}) {
    kind = thrown;
    tutti_context *context = nullptr;
    tutti_error *error = nullptr;
    assert_int_equal(tutti_context_create(nullptr, &context, &error), TUTTI_OK);
    assert_int_equal(tutti_context_set_log(context, throw_from_log, nullptr, destroy, TUTTI_LOG_DEBUG, &error),
                     TUTTI_OK);
    destroyed = 0;
    int32_t code = train({true, false}, context, &error);
    assert_told(code, std::exchange(error, nullptr), "the model function");
    code = train({false, true}, context, &error);
    assert_told(code, std::exchange(error, nullptr), "a hook");
    assert_int_equal(train({false, false}, context, &error), TUTTI_OK);
    assert_int_equal(destroyed, 6);
    tutti_context_unref(context);
    assert_int_equal(destroyed, 7);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(test_pipelines), cmocka_unit_test(test_training)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
