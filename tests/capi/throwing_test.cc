// SPDX-License-Identifier: Apache-2.0
// Functions of the host that throw: what calls them gets an error that says so, and the library goes on.
#include <tutti/tutti.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
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

int32_t throw_from_map_to(void *, tutti_tensor *const *, int64_t, tutti_tensor **, int64_t, tutti_error **) {
  throw_something();
}
int32_t throw_from_scan(void *, tutti_tensor *const *, tutti_tensor **, int64_t, tutti_tensor *const *, int64_t,
                        tutti_tensor **, int64_t, tutti_error **) {
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
    {"the predicate function",
     [](tutti_pipeline *pipeline) {
       add_rows(pipeline);
       tutti_pipeline_begin(pipeline, "take_while_callback", 0);
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
    {"the function that gives a dataset",
     [](tutti_pipeline *pipeline) {
       add_rows(pipeline);
       tutti_pipeline_begin(pipeline, "interleave_callback", 0);
       tutti_pipeline_set_expand(pipeline, throw_from_expand, nullptr, destroy);
       tutti_pipeline_end(pipeline);
     }},
    {"the map function",
     [](tutti_pipeline *pipeline) {
       add_rows(pipeline);
       tutti_pipeline_begin(pipeline, "map_callback", 0);
       tutti_pipeline_set_map(pipeline, throw_from_map_to, nullptr, destroy);
       tutti_pipeline_end(pipeline);
     }},
    {"the scan function",
     [](tutti_pipeline *pipeline) {
       add_rows(pipeline);
       const float zero = 0;
       tutti_tensor *sum = nullptr;
       assert_int_equal(tutti_tensor_from_data(TUTTI_DTYPE_F32, nullptr, 0, &zero, sizeof zero, &sum, nullptr),
                        TUTTI_OK);
       tutti_pipeline_begin(pipeline, "scan_callback", 0);
       tutti_pipeline_set_state(pipeline, "sum", sum);
       tutti_pipeline_set_scan(pipeline, throw_from_scan, nullptr, destroy);
       tutti_pipeline_end(pipeline);
       tutti_tensor_unref(sum);
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

int32_t throw_from_graph(tutti_graph *, void *, tutti_error **) { throw_something(); }

const Begin kGraphs[] = {
    [](tutti_pipeline *pipeline) { tutti_pipeline_map_graph(pipeline, throw_from_graph, nullptr, 1); },
    [](tutti_pipeline *pipeline) { tutti_pipeline_filter_graph(pipeline, throw_from_graph, nullptr); },
    [](tutti_pipeline *pipeline) {
      tutti_pipeline_begin(pipeline, "take_while", 0);
      tutti_pipeline_set_graph(pipeline, throw_from_graph, nullptr);
      tutti_pipeline_end(pipeline);
    },
};

void test_graphs_of_pipelines(void **) {
  for (const Thrown thrown : {Thrown::exception, Thrown::memory, Thrown::number}) {
    kind = thrown;
    for (const Begin begin : kGraphs) {
      tutti_pipeline *pipeline = nullptr;
      tutti_dataset *dataset = nullptr;
      tutti_error *error = nullptr;
      assert_int_equal(tutti_pipeline_create(nullptr, &pipeline, &error), TUTTI_OK);
      add_rows(pipeline);
      begin(pipeline);
      const int32_t code = tutti_pipeline_build(pipeline, &dataset, &error);
      assert_told(code, error, "the graph function of the map");
      tutti_pipeline_unref(pipeline);
    }
  }
}

/// Of a file system: the function that throws, in the order in which they are called.
enum class Function { list, open, version, read, close };
Function thrower = Function::list;

void throw_from(Function function) {
  if (thrower == function) throw_something();
}

int32_t list_file(void *, const char *, tutti_cancel *, tutti_list_fn add, void *listing, tutti_error **) {
  throw_from(Function::list);
  add(listing, "lines", 0);
  return TUTTI_OK;
}
int32_t open_file(void *, const char *, tutti_cancel *, void **, int64_t *size_bytes, tutti_error **) {
  throw_from(Function::open);
  *size_bytes = 2;
  return TUTTI_OK;
}
int32_t read_file(void *, void *, int64_t offset, void *target, int64_t size, tutti_cancel *, int64_t *read_bytes,
                  tutti_error **) {
  throw_from(Function::read);
  std::string_view("x\n").copy(static_cast<char *>(target), static_cast<size_t>(size), static_cast<size_t>(offset));
  *read_bytes = size;
  return TUTTI_OK;
}
void close_file(void *, void *) { throw_from(Function::close); }
const char *version_of_file(void *, void *) {
  throw_from(Function::version);
  return "1";
}

/// Reads the lines of the file system, through a cache in a file, which asks for versions.
int32_t read_lines(const char *cache, tutti_error **error) {
  const tutti_file_system functions = {sizeof functions, open_file, read_file, close_file, list_file, version_of_file};
  tutti_context *context = nullptr;
  tutti_pipeline *pipeline = nullptr;
  tutti_dataset *dataset = nullptr;
  tutti_iterator *iterator = nullptr;
  assert_int_equal(tutti_context_create(nullptr, &context, error), TUTTI_OK);
  assert_int_equal(tutti_context_add_file_system(context, "odd", &functions, nullptr, destroy, error), TUTTI_OK);
  assert_int_equal(tutti_pipeline_create(context, &pipeline, error), TUTTI_OK);
  const char *const path = "odd://store/l*";
  tutti_source_text_lines(pipeline, &path, 1, nullptr);
  tutti_pipeline_cache_attrs attrs{};
  attrs.path = cache;
  tutti_pipeline_cache(pipeline, &attrs);
  int32_t code = tutti_pipeline_build(pipeline, &dataset, error);
  if (code == TUTTI_OK) code = tutti_iterator_create(dataset, 0, &iterator, error);
  for (uint8_t more = 1; code == TUTTI_OK && more != 0;)
    code = tutti_iterator_next(iterator, nullptr, &more, error);
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset);
  tutti_pipeline_unref(pipeline), tutti_context_unref(context);
  return code;
}

void test_file_systems(void **) {
  char folder[] = "/tmp/tutti-throwing-XXXXXX";
  assert_non_null(mkdtemp(folder));
  const std::string cache = std::string(folder) + "/cache";
  for (const Thrown thrown : {Thrown::exception, Thrown::memory, Thrown::number}) {
    kind = thrown;
    for (const auto &[function, what] : {std::pair(Function::list, "the function list of the file system"),
                                         std::pair(Function::open, "the function open of the file system"),
                                         std::pair(Function::read, "the function read of the file system")}) {
      thrower = function;
      destroyed = 0;
      tutti_error *error = nullptr;
      const int32_t code = read_lines(cache.c_str(), &error);
      assert_told(code, error, what);
      assert_int_equal(destroyed, 1);
    }
    /* What is thrown there is not known to anybody. */
    thrower = Function::close;
    assert_int_equal(read_lines(cache.c_str(), nullptr), TUTTI_OK);
    std::remove(cache.c_str());
    thrower = Function::version;
    assert_int_equal(read_lines(cache.c_str(), nullptr), TUTTI_INVALID_ARGUMENT);
  }
  assert_int_equal(rmdir(folder), 0);
}

/* --- functions that come with memory ------------------------------------------------------------------------------ */

void test_memory(void **) {
  for (const Thrown thrown : {Thrown::exception, Thrown::memory, Thrown::number}) {
    kind = thrown;
    destroyed = 0;
    const float x = 1;
    tutti_tensor *tensor = nullptr;
    assert_int_equal(
        tutti_tensor_take_memory(TUTTI_DTYPE_F32, nullptr, 0, &x, sizeof x, destroy, nullptr, &tensor, nullptr),
        TUTTI_OK);
    tutti_tensor_unref(tensor);
    assert_int_equal(destroyed, 1);
    DLManagedTensorVersioned managed{};
    float y = 2;
    managed.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    managed.deleter = [](DLManagedTensorVersioned *) { destroy(nullptr); };
    managed.dl_tensor.data = &y;
    managed.dl_tensor.device = {kDLCPU, 0};
    managed.dl_tensor.dtype = {kDLFloat, 32, 1};
    assert_int_equal(tutti_tensor_take_dlpack(&managed, &tensor, nullptr), TUTTI_OK);
    tutti_tensor_unref(tensor);
    assert_int_equal(destroyed, 2);
  }
}

/// Of an Arrow stream: the function that throws. All that is released throws.
enum class Producer { schema, batch, error_text, release };
Producer producer = Producer::schema;

template <typename Struct>
void throw_from_release(Struct *given) {
  given->release = nullptr;
  destroy(nullptr);
}

ArrowSchema child_schema{};
ArrowSchema *child_schemas[] = {&child_schema};
ArrowArray child_array{};
ArrowArray *child_arrays[] = {&child_array};
const float kColumn[] = {1, 2};
const void *column_buffers[] = {nullptr, kColumn};
const void *no_buffers[] = {nullptr};

int give_schema(ArrowArrayStream *, ArrowSchema *out) {
  if (producer == Producer::schema) throw_something();
  if (producer == Producer::error_text) return 5;
  child_schema = {};
  child_schema.format = "f", child_schema.name = "x";
  *out = {};
  out->format = "+s", out->n_children = 1, out->children = child_schemas;
  out->release = throw_from_release<ArrowSchema>;
  return 0;
}

int give_batch(ArrowArrayStream *stream, ArrowArray *out) {
  if (producer == Producer::batch) throw_something();
  *out = {};
  if (std::exchange(stream->private_data, nullptr) == nullptr) return 0;
  child_array = {};
  child_array.length = 2, child_array.n_buffers = 2, child_array.buffers = column_buffers;
  out->length = 2, out->n_buffers = 1, out->buffers = no_buffers, out->n_children = 1, out->children = child_arrays;
  out->release = throw_from_release<ArrowArray>;
  return 0;
}

void test_arrow_streams(void **) {
  for (const Thrown thrown : {Thrown::exception, Thrown::memory, Thrown::number}) {
    kind = thrown;
    for (const auto &[function, what] :
         {std::pair(Producer::schema, "get_schema"), std::pair(Producer::error_text, "get_schema"),
          std::pair(Producer::batch, "get_next"), std::pair(Producer::release, "")}) {
      producer = function;
      destroyed = 0;
      ArrowArrayStream stream{};
      stream.get_schema = give_schema, stream.get_next = give_batch;
      stream.get_last_error = [](ArrowArrayStream *) -> const char * { throw_something(); };
      stream.release = throw_from_release<ArrowArrayStream>;
      stream.private_data = &stream;
      tutti_pipeline *pipeline = nullptr;
      tutti_dataset *dataset = nullptr;
      tutti_error *error = nullptr;
      assert_int_equal(tutti_pipeline_create(nullptr, &pipeline, &error), TUTTI_OK);
      tutti_pipeline_set_arrow_stream(pipeline, &stream);
      tutti_source_arrow(pipeline, nullptr);
      const int32_t code = tutti_pipeline_build(pipeline, &dataset, &error);
      if (function == Producer::release)
        assert_int_equal(code, TUTTI_OK);
      else
        assert_told(code, error, what);
      tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
      /* The stream; its schema, where there is one; its batch. */
      assert_int_equal(destroyed, function == Producer::release ? 3 : function == Producer::batch ? 2 : 1);
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

tutti_dataset *rows_in_batches(tutti_context *context) {
  tutti_pipeline *pipeline = nullptr;
  tutti_dataset *dataset = nullptr;
  assert_int_equal(tutti_pipeline_create(context, &pipeline, nullptr), TUTTI_OK);
  add_rows(pipeline);
  tutti_pipeline_batch(pipeline, 4, 0);
  assert_int_equal(tutti_pipeline_build(pipeline, &dataset, nullptr), TUTTI_OK);
  tutti_pipeline_unref(pipeline);
  return dataset;
}

int32_t train(Training training, tutti_context *context, tutti_error **error) {
  tutti_dataset *const dataset = rows_in_batches(context);
  tutti_hooks *hooks = nullptr;
  tutti_estimator *estimator = nullptr;
  assert_int_equal(tutti_hooks_create(&hooks, error), TUTTI_OK);
  assert_int_equal(tutti_hooks_add(hooks, hook, &training, destroy, 1, error), TUTTI_OK);
  assert_int_equal(tutti_estimator_create(context, model, &training, destroy, nullptr, nullptr, &estimator, error),
                   TUTTI_OK);
  const int32_t code = tutti_estimator_train(estimator, dataset, nullptr, hooks, nullptr, nullptr, error);
  tutti_estimator_unref(estimator), tutti_hooks_unref(hooks);
  tutti_dataset_unref(dataset);
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

int32_t make_input(void *user, const char *, int64_t, int64_t, tutti_dataset **out, tutti_error **) {
  if (*static_cast<const bool *>(user)) throw_something();
  *out = rows_in_batches(nullptr);
  return TUTTI_OK;
}

void test_input_functions(void **) {
  for (const Thrown thrown : {Thrown::exception, Thrown::memory, Thrown::number}) {
    kind = thrown;
    Training training{false, false};
    bool input_throws = true;
    tutti_estimator *estimator = nullptr;
    tutti_error *error = nullptr;
    assert_int_equal(tutti_estimator_create(nullptr, model, &training, nullptr, nullptr, nullptr, &estimator, nullptr),
                     TUTTI_OK);
    const auto train = [&] {
      return tutti_estimator_train_fn(estimator, make_input, &input_throws, nullptr, nullptr, nullptr, nullptr, &error);
    };
    const auto evaluate = [&] {
      tutti_result *result = nullptr;
      const int32_t code =
          tutti_estimator_evaluate_fn(estimator, make_input, &input_throws, 0, nullptr, &result, &error);
      tutti_result_unref(result);
      return code;
    };
    int32_t code = train();
    assert_told(code, std::exchange(error, nullptr), "the input function");
    input_throws = false;
    assert_int_equal(train(), TUTTI_OK);
    input_throws = true;
    code = evaluate();
    assert_told(code, std::exchange(error, nullptr), "the input function");
    input_throws = false;
    assert_int_equal(evaluate(), TUTTI_OK);
    tutti_estimator_unref(estimator);
  }
}

int32_t step(tutti_graph *g, int32_t, void *user, tutti_error **err) {
  if (*static_cast<const bool *>(user)) throw_something();
  tutti_graph_set_output(g, "x", tutti_graph_get_feature(g, "x"));
  return tutti_graph_check(g, err);
}

void test_step_functions(void **) {
  for (const Thrown thrown : {Thrown::exception, Thrown::memory, Thrown::number}) {
    kind = thrown;
    destroyed = 0;
    Training training{false, false};
    bool step_throws = true;
    tutti_estimator *estimator = nullptr;
    tutti_session *session = nullptr;
    tutti_error *error = nullptr;
    tutti_dataset *const dataset = rows_in_batches(nullptr);
    assert_int_equal(tutti_estimator_create(nullptr, model, &training, nullptr, nullptr, nullptr, &estimator, nullptr),
                     TUTTI_OK);
    assert_int_equal(tutti_estimator_add_step_function(estimator, "second", TUTTI_MODE_EVAL, step, &step_throws,
                                                       destroy, nullptr, nullptr),
                     TUTTI_OK);
    const auto open = [&] {
      return tutti_session_open(estimator, dataset, nullptr, nullptr, nullptr, &session, &error);
    };
    const int32_t code = open();
    assert_told(code, std::exchange(error, nullptr), "step function 'second'");
    step_throws = false;
    assert_int_equal(open(), TUTTI_OK);
    assert_int_equal(tutti_session_run(session, 1, nullptr, nullptr), TUTTI_OK);
    tutti_session_unref(session), tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
    assert_int_equal(destroyed, 1);
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_pipelines),       cmocka_unit_test(test_graphs_of_pipelines),
      cmocka_unit_test(test_file_systems),    cmocka_unit_test(test_memory),
      cmocka_unit_test(test_arrow_streams),   cmocka_unit_test(test_training),
      cmocka_unit_test(test_input_functions), cmocka_unit_test(test_step_functions),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
