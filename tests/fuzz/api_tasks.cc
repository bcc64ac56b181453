// SPDX-License-Identifier: Apache-2.0
// Tasks of several calls that mostly work, and the callbacks.
#include <utility>

#include "api_calls.h"

namespace tutti_fuzz {
namespace {

constexpr int64_t features = 4;

tutti_options *train_options(Sequence &s, int64_t steps) {
  tutti_options *options = nullptr;
  if (tutti_options_create("train", &options, nullptr) != TUTTI_OK)
    violation("tutti_options_create", "no schema train");
  s.keep(options, 1);
  tutti_options_set_i64(options, "steps", steps);
  return options;
}

/// Checks what a task's own call says, and keeps its handle.
template <typename T, typename Call>
T *made(Sequence &s, const char *function, Call &&call) {
  Out<T> out(s);
  Err err(s);
  T **const place = out.get();
  const int32_t code = call(place, err.get());
  s.check_code(function, code, err);
  out.done(function, code);
  return code == TUTTI_OK && place != nullptr ? *place : nullptr;
}

tutti_tensor *small_tensor(Sequence &s, int32_t dtype, const std::vector<int64_t> &dims) {
  return made<tutti_tensor>(s, "tutti_tensor_create", [&](tutti_tensor **out, tutti_error **err) {
    return tutti_tensor_create(dtype, dims.data(), static_cast<int64_t>(dims.size()), out, err);
  });
}

}  // namespace

void Sequence::make_tensor() {
  const auto rows = static_cast<int64_t>(input_.below(6));
  tutti_tensor *const tensor = small_tensor(*this, TUTTI_DTYPE_F32, {rows, features});
  void *data = nullptr;
  if (tutti_tensor_get_mutable_data(tensor, &data, nullptr) != TUTTI_OK || data == nullptr) return;
  for (int64_t i = 0; i < rows * features; ++i)
    static_cast<float *>(data)[i] = static_cast<float>(f64("data"));
}

void Sequence::make_dataset() {
  const auto rows = static_cast<int64_t>(1 + input_.below(9));
  tutti_tensor *const x = small_tensor(*this, TUTTI_DTYPE_F32, {rows, features});
  tutti_tensor *const y = small_tensor(*this, TUTTI_DTYPE_I32, {rows});
  tutti_pipeline *const pipeline = made<tutti_pipeline>(*this, "tutti_pipeline_create", [&](auto **out, auto **err) {
    return tutti_pipeline_create(input_.byte() < 250 ? nullptr : handle<tutti_context>(), out, err);
  });
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, y);
  const uint8_t how = input_.byte();
  if (how & 1) tutti_pipeline_shuffle(pipeline, 3, nullptr);
  if (how & 2) tutti_pipeline_repeat(pipeline, nullptr);
  if (how & 4) tutti_pipeline_map(pipeline, map_callback, registration(true), destroy_callback, 1 + (how >> 6));
  if (how & 8) tutti_pipeline_map_graph(pipeline, map_graph_callback, registration(false), 2);
  if (!(how & 16)) tutti_pipeline_batch(pipeline, static_cast<int64_t>(1 + input_.below(4)), nullptr);
  if (how & 32) tutti_pipeline_prefetch(pipeline, nullptr);
  made<tutti_dataset>(*this, "tutti_pipeline_build",
                      [&](auto **out, auto **err) { return tutti_pipeline_build(pipeline, out, err); });
}

void Sequence::make_estimator() {
  tutti_options *options = nullptr;
  if (input_.byte() < 60) {
    options = made<tutti_options>(*this, "tutti_options_create",
                                  [](auto **out, auto **err) { return tutti_options_create("run", out, err); });
    tutti_options_set_string(options, "model_dir", directory());
  }
  tutti_strategy *strategy = nullptr;
  if (input_.byte() < 60)
    strategy = made<tutti_strategy>(*this, "tutti_strategy_create_mirrored", [](auto **out, auto **err) {
      return tutti_strategy_create_mirrored(nullptr, nullptr, 0, out, err);
    });
  Registration *const user = registration(true);
  made<tutti_estimator>(*this, "tutti_estimator_create", [&](auto **out, auto **err) {
    return tutti_estimator_create(nullptr, model_callback, user, destroy_callback, strategy, options, out, err);
  });
}

void Sequence::train() {
  tutti_options *const options = train_options(*this, static_cast<int64_t>(1 + input_.below(2)));
  tutti_hooks *hooks = nullptr;
  if (input_.byte() < 100) {
    hooks = made<tutti_hooks>(*this, "tutti_hooks_create",
                              [](auto **out, auto **err) { return tutti_hooks_create(out, err); });
    Err err(*this);
    check_code("tutti_hooks_add",
               tutti_hooks_add(hooks, hook_callback, registration(true), destroy_callback, 1, err.get()), err);
  }
  tutti_estimator *const estimator = handle<tutti_estimator>();
  tutti_dataset *const dataset = handle<tutti_dataset>();
  tutti_cancel *const cancel = token();
  made<tutti_result>(*this, "tutti_estimator_train", [&](auto **out, auto **err) {
    return tutti_estimator_train(estimator, dataset, options, hooks, cancel, out, err);
  });
}

void Sequence::predict() {
  tutti_estimator *const estimator = handle<tutti_estimator>();
  tutti_predictor *const predictor = made<tutti_predictor>(
      *this, "tutti_predictor_from_estimator",
      [&](auto **o, auto **e) { return tutti_predictor_from_estimator(estimator, nullptr, o, e); });
  tutti_tensor *const input = handle<tutti_tensor>();
  const char *const name = "x";
  tutti_cancel *const cancel = token();
  tutti_batch *const batch = made<tutti_batch>(*this, "tutti_predictor_run", [&](auto **out, auto **err) {
    return tutti_predictor_run(predictor, &name, &input, 1, cancel, out, err);
  });
  tutti_tensor *const output = tutti_batch_get_output(batch, "logits");
  keep(output, 0);
  if (output != nullptr && tutti_tensor_get_dim(output, 0) != tutti_batch_get_row_count(batch))
    violation("tutti_predictor_run", "another number of rows");
}

void Sequence::stream() {
  tutti_predictor *const predictor = handle<tutti_predictor>();
  tutti_dataset *const dataset = handle<tutti_dataset>();
  tutti_prediction_stream *const stream = made<tutti_prediction_stream>(
      *this, "tutti_prediction_stream_open",
      [&](auto **out, auto **err) { return tutti_prediction_stream_open(predictor, dataset, out, err); });
  for (size_t i = input_.below(4); i > 0; --i)
    made<tutti_batch>(*this, "tutti_prediction_stream_next",
                      [&](auto **out, auto **err) { return tutti_prediction_stream_next(stream, token(), out, err); });
}

void Sequence::iterate() {
  tutti_dataset *const dataset = handle<tutti_dataset>();
  tutti_iterator *const iterator = made<tutti_iterator>(*this, "tutti_iterator_create", [&](auto **out, auto **err) {
    return tutti_iterator_create(dataset, static_cast<int64_t>(input_.below(3)), out, err);
  });
  for (size_t i = input_.below(6); i > 0; --i) {
    uint8_t more = 0;
    if (tutti_iterator_next(iterator, token(), &more, nullptr) != TUTTI_OK || more == 0) break;
    keep(tutti_iterator_get_component(iterator, 0), 0);
  }
}

void Sequence::use_feed() {
  tutti_feed *const feed = made<tutti_feed>(*this, "tutti_feed_create", [&](auto **out, auto **err) {
    return tutti_feed_create(nullptr, static_cast<int64_t>(1 + input_.below(3)), out, err);
  });
  const int64_t dims[] = {features};
  static_cast<void>(tutti_feed_declare(feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, dims, 1, nullptr));
  tutti_pipeline *const pipeline = made<tutti_pipeline>(
      *this, "tutti_pipeline_create", [](auto **out, auto **err) { return tutti_pipeline_create(nullptr, out, err); });
  tutti_pipeline_add_feed(pipeline, feed);
  made<tutti_dataset>(*this, "tutti_pipeline_build",
                      [&](auto **out, auto **err) { return tutti_pipeline_build(pipeline, out, err); });
  for (size_t i = input_.below(4); i > 0; --i) {
    tutti_tensor *const row = small_tensor(*this, TUTTI_DTYPE_F32, {features});
    Err err(*this);
    check_code("tutti_feed_push", tutti_feed_push(feed, &row, 1, token(), err.get()), err);
  }
  if (input_.byte() < 200) static_cast<void>(tutti_feed_finish(feed, nullptr));
}

void Sequence::use_session() {
  tutti_estimator *const estimator = handle<tutti_estimator>();
  tutti_dataset *const dataset = handle<tutti_dataset>();
  tutti_cancel *const cancel = token();
  tutti_session *const session = made<tutti_session>(*this, "tutti_session_open", [&](auto **out, auto **err) {
    return tutti_session_open(estimator, dataset, nullptr, nullptr, cancel, out, err);
  });
  made<tutti_result>(*this, "tutti_session_run",
                     [&](auto **out, auto **err) { return tutti_session_run(session, 1, out, err); });
  run_nested(input_.below(4), false);
  if (input_.byte() < 128)
    made<tutti_result>(*this, "tutti_session_close",
                       [&](auto **out, auto **err) { return tutti_session_close(session, out, err); });
}

void Sequence::train_on_batches() {
  tutti_options *const options = made<tutti_options>(
      *this, "tutti_options_create", [](auto **out, auto **err) { return tutti_options_create("run", out, err); });
  tutti_options_set_bool(options, "keep_outputs", input_.byte() < 230);
  tutti_options_set_bool(options, "keep_gradients", input_.byte() < 128);
  Registration *const user = registration(true);
  tutti_estimator *const estimator =
      made<tutti_estimator>(*this, "tutti_estimator_create", [&](auto **out, auto **err) {
        return tutti_estimator_create(nullptr, model_callback, user, destroy_callback, nullptr, options, out, err);
      });
  tutti_feed *const feed = made<tutti_feed>(
      *this, "tutti_feed_create", [](auto **out, auto **err) { return tutti_feed_create(nullptr, 2, out, err); });
  const int64_t dims[] = {features}, most_rows = static_cast<int64_t>(1 + input_.below(5));
  static_cast<void>(tutti_feed_declare(feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, dims, 1, nullptr));
  static_cast<void>(tutti_feed_declare(feed, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_I32, dims, 0, nullptr));
  Err err(*this);
  check_code("tutti_feed_set_batch_size", tutti_feed_set_batch_size(feed, most_rows, err.get()), err);
  tutti_pipeline *const pipeline = made<tutti_pipeline>(
      *this, "tutti_pipeline_create", [](auto **out, auto **e) { return tutti_pipeline_create(nullptr, out, e); });
  tutti_pipeline_add_feed(pipeline, feed);
  tutti_dataset *const dataset = made<tutti_dataset>(
      *this, "tutti_pipeline_build", [&](auto **out, auto **e) { return tutti_pipeline_build(pipeline, out, e); });
  tutti_cancel *const cancel = token();
  tutti_session *const session = made<tutti_session>(*this, "tutti_session_open", [&](auto **out, auto **e) {
    return tutti_session_open(estimator, dataset, nullptr, nullptr, cancel, out, e);
  });
  for (size_t i = 1 + input_.below(4); i > 0; --i) {
    const auto rows = static_cast<int64_t>(input_.below(static_cast<size_t>(most_rows) + 2));
    tutti_tensor *const batch[] = {small_tensor(*this, TUTTI_DTYPE_F32, {rows, features}),
                                   small_tensor(*this, TUTTI_DTYPE_I32, {rows})};
    const int32_t code = tutti_feed_push(feed, batch, 2, token(), nullptr);
    if (code == TUTTI_OK && (rows == 0 || rows > most_rows))
      violation("tutti_feed_push", "took too many rows, or none");
    if (code == TUTTI_OK) run_batch(session, estimator, rows);
    run_nested(input_.below(3), false);
  }
}

void Sequence::run_batch(tutti_session *session, tutti_estimator *estimator, int64_t rows) {
  tutti_result *const result = made<tutti_result>(
      *this, "tutti_session_run", [&](auto **out, auto **err) { return tutti_session_run(session, 1, out, err); });
  tutti_tensor *const logits = made<tutti_tensor>(*this, "tutti_estimator_read_output", [&](auto **out, auto **err) {
    return tutti_estimator_read_output(estimator, "logits", out, err);
  });
  const bool is_of_batch = logits != nullptr && tutti_result_get_examples(result) == rows;
  if (is_of_batch && tutti_tensor_get_dim(logits, 0) != rows)
    violation("tutti_estimator_read_output", "another number of rows");
  made<tutti_tensor>(*this, "tutti_estimator_read_gradient", [&](auto **out, auto **err) {
    return tutti_estimator_read_gradient(estimator, "dense/kernel", out, err);
  });
}

// --- models ---------------------------------------------------------------------------------------------------------

/// An op by name on values that may fit.
void Sequence::write_any_op(tutti_graph *graph) {
  tutti_graph_begin(graph, registry_words()[input_.below(registry_words().size())], 1);
  for (size_t i = input_.below(4); i > 0; --i)
    tutti_graph_add_input(graph, value("input"));
  for (size_t i = input_.below(3); i > 0; --i) {
    const char *const key = registry_words()[input_.below(registry_words().size())];
    const uint8_t how = input_.byte();
    if (how < 80) {
      tutti_graph_set_i64(graph, key, i64("value"));
    } else if (how < 120) {
      tutti_graph_set_f64(graph, key, f64("value"));
    } else if (how < 180) {
      const int64_t length = count();
      tutti_graph_set_i64s(graph, key, dims(length).get(), length);
    } else {
      tutti_graph_set_string(graph, key, text("value"));
    }
  }
  keep_value(tutti_graph_end(graph, nullptr, 0));
}

void Sequence::write_model(tutti_graph *graph, int32_t mode) {
  const tutti_value x = tutti_graph_get_feature(graph, "x");
  keep_value(x);
  tutti_value hidden = tutti_layer_dense(graph, x, 3, nullptr);
  keep_value(hidden);
  for (size_t i = input_.below(4); i > 0; --i)
    write_any_op(graph);
  if (input_.byte() < 100) hidden = value("hidden");
  run_nested(input_.below(3), true);
  const tutti_value logits = tutti_layer_dense(graph, hidden, 2, nullptr);
  keep_value(logits);
  tutti_graph_set_output(graph, "logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return;
  const tutti_value y = tutti_graph_get_label(graph, "y");
  tutti_metric_accuracy(graph, "accuracy", logits, y, nullptr);
  tutti_graph_set_loss(graph, tutti_loss_sparse_softmax_cross_entropy(graph, logits, y, nullptr));
  tutti_optimizer_sgd(graph, tutti_graph_host_scalar(graph, "rate", 0.1), nullptr);
}

// --- callbacks ------------------------------------------------------------------------------------------------------

namespace {

/// How a callback answers: mostly well.
int32_t answer_of(uint8_t how, tutti_error **err) {
  if (how < 240) return TUTTI_OK;
  if (how < 246) return tutti_error_set(err, how - 239, "the callback failed");
  return how < 250 ? how : -(how & 3);
}

}  // namespace

int32_t model_callback(tutti_graph *graph, int32_t mode, void *user, tutti_error **err) {
  Sequence &s = *static_cast<Registration *>(user)->sequence;
  s.keep(graph, 0);
  const uint8_t how = s.input().byte();
  if (how < 30) {
    s.run_nested(8, true);
  } else {
    s.write_model(graph, mode);
  }
  return how < 200 ? tutti_graph_check(graph, err) : answer_of(how, err);
}

int32_t map_graph_callback(tutti_graph *graph, void *user, tutti_error **err) {
  Sequence &s = *static_cast<Registration *>(user)->sequence;
  s.keep(graph, 0);
  const tutti_value x = tutti_graph_get_feature(graph, "x");
  s.keep_value(x);
  for (size_t i = s.input().below(3); i > 0; --i)
    s.write_any_op(graph);
  tutti_graph_set_output(graph, "x", s.input().byte() < 128 ? tutti_relu(graph, x) : s.value("x"));
  const uint8_t how = s.input().byte();
  return how < 200 ? tutti_graph_check(graph, err) : answer_of(how, err);
}

// On library threads: looks at nothing but its Registration.
int32_t map_callback(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                     tutti_error **err) {
  const uint8_t how = static_cast<const Registration *>(user)->behaviour;
  for (int64_t i = 0; i < count; ++i) {
    if (how < 8) break;
    if (how < 16) {
      const int64_t dims[] = {1};
      static_cast<void>(tutti_tensor_create(TUTTI_DTYPE_F32, dims, 1, &outputs[i], nullptr));
      continue;
    }
    tutti_tensor_ref(inputs[i]);
    outputs[i] = inputs[i];
  }
  return answer_of(how, err);
}

// The tensors of the element in turn, for as many components as it is to give.
int32_t map_to_callback(void *user, tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs,
                        int64_t output_count, tutti_error **err) {
  const uint8_t how = static_cast<const Registration *>(user)->behaviour;
  for (int64_t i = 0; i < output_count && count > 0 && how >= 8; ++i) {
    tutti_tensor_ref(inputs[i % count]);
    outputs[i] = inputs[i % count];
  }
  return answer_of(how, err);
}

// On library threads too.
int32_t predicate_callback(void *user, tutti_tensor *const *, int64_t count, uint8_t *answer, tutti_error **err) {
  const uint8_t how = static_cast<const Registration *>(user)->behaviour;
  *answer = static_cast<uint8_t>(count > 0 && how < 200);
  return answer_of(how, err);
}

// The state stays; the element too, where it has as many tensors.
int32_t scan_callback(void *user, tutti_tensor *const *state, tutti_tensor **new_state, int64_t state_count,
                      tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs, int64_t output_count,
                      tutti_error **err) {
  const uint8_t how = static_cast<const Registration *>(user)->behaviour;
  for (int64_t i = 0; i < state_count && how >= 8; ++i) {
    tutti_tensor_ref(state[i]);
    new_state[i] = state[i];
  }
  for (int64_t i = 0; i < output_count && count > 0 && how >= 4; ++i) {
    tutti_tensor_ref(inputs[i % count]);
    outputs[i] = inputs[i % count];
  }
  return answer_of(how, err);
}

// A few scalars for all components, whatever was declared.
int32_t generator_callback(void *user, int64_t, int64_t index, tutti_tensor **outputs, int64_t count,
                           uint8_t *has_element, tutti_error **err) {
  const uint8_t how = static_cast<const Registration *>(user)->behaviour;
  if (index >= 5) return TUTTI_OK;
  *has_element = 1;
  for (int64_t i = 0; i < count && how >= 8; ++i) {
    const int64_t dims[] = {1};
    const int32_t code = tutti_tensor_create(TUTTI_DTYPE_F32, dims, how & 1, &outputs[i], err);
    if (code != TUTTI_OK) return code;
  }
  return answer_of(how, err);
}

// The rows of the first component; sometimes no dataset.
int32_t expand_callback(void *user, tutti_tensor *const *inputs, int64_t count, tutti_dataset **dataset,
                        tutti_error **err) {
  const uint8_t how = static_cast<const Registration *>(user)->behaviour;
  if (how >= 240 || how < 8 || count == 0) return answer_of(how, err);
  tutti_pipeline *pipeline = nullptr;
  int32_t code = tutti_pipeline_create(nullptr, &pipeline, err);
  if (code != TUTTI_OK) return code;
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, inputs[0]);
  code = tutti_pipeline_build(pipeline, dataset, err);
  tutti_pipeline_unref(pipeline);
  return code;
}

// A few rows in one batch; sometimes no dataset.
int32_t input_callback(void *user, const char *params, int64_t input_pipeline_id, int64_t input_pipeline_count,
                       tutti_dataset **dataset, tutti_error **err) {
  if (params == nullptr || input_pipeline_id >= input_pipeline_count) violation("input function", "wrong arguments");
  const uint8_t how = static_cast<const Registration *>(user)->behaviour;
  if (how >= 240 || how < 8) return answer_of(how, err);
  const int64_t dims[] = {how % 5, 4};
  tutti_tensor *rows = nullptr;
  int32_t code = tutti_tensor_create(TUTTI_DTYPE_F32, dims, 2, &rows, err);
  if (code != TUTTI_OK) return code;
  code = expand_callback(user, &rows, 1, dataset, err);
  tutti_tensor_unref(rows);
  return code;
}

int32_t hook_callback(void *user, const tutti_hook_event *event, tutti_error **err) {
  auto *const registration = static_cast<Registration *>(user);
  Sequence &s = *registration->sequence;
  s.keep(const_cast<tutti_hook_event *>(event), 0);
  s.run_nested(2, false);
  return answer_of(s.input().byte(), err);
}

void log_callback(void *, int32_t, const char *text) {
  if (text == nullptr) violation("log", "no text");
}

void destroy_callback(void *user) {
  if (user != nullptr) ++static_cast<Registration *>(user)->destroyed;
}

}  // namespace tutti_fuzz
