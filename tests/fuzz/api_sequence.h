// SPDX-License-Identifier: Apache-2.0
//
// Bytes become a sequence of calls over the whole C interface: handles of every kind, owned, lent, dropped already, of
// another type or never ours; callbacks that call back; small graphs and datasets, trained for a step or two. What must
// hold whatever the bytes say:
//
//   nothing crashes;
//   an error is set exactly when the code is not TUTTI_OK, with that code and a text;
//   output handles are NULL after a failure;
//   a destroy callback runs exactly once;
//   when every reference has been dropped, no object is alive.
//
// A violation prints what it was and aborts. generate_calls.py writes one call for every public function.
#ifndef TUTTI_TESTS_FUZZ_API_SEQUENCE_H_
#define TUTTI_TESTS_FUZZ_API_SEQUENCE_H_

#include <tutti/tutti.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace tutti_fuzz {

class Sequence;

/// What the bytes decide. Gives zeros when there are no more.
class Input {
 public:
  Input(const uint8_t *data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  uint8_t byte() { return empty() ? 0 : data_[at_++]; }
  /// 0 ... count - 1; takes two bytes only when one cannot say it.
  size_t below(size_t count) {
    const size_t high = count > 256 ? static_cast<size_t>(byte()) << 8 : 0;
    return (high | byte()) % count;
  }

 private:
  const uint8_t *data_;
  size_t size_, at_ = 0;
};

/// The user pointer of one callback. Lives until the sequence ends, so that a second destroy is seen.
struct Registration {
  Sequence *sequence = nullptr;
  uint8_t behaviour = 0;
  bool has_destroy = false;
  const char *function = "";  // that got it
  std::atomic<int> destroyed{0};
  /// Memory lent to a tensor: freed by its release callback, so that a later use is seen.
  std::unique_ptr<char[]> memory;
};

template <typename T>
struct KindOf;

struct Function {
  const char *name;
  void (*call)(Sequence &);
  bool on_graph;
};

/// One run. Callbacks on the calling thread come back into it; those on library threads look at their Registration.
class Sequence {
 public:
  Sequence(const uint8_t *data, size_t size);
  Sequence(const Sequence &) = delete;
  Sequence &operator=(const Sequence &) = delete;
  ~Sequence();

  /// Calls until the bytes are used up, then drops everything and checks that nothing is left.
  void run();
  /// A few calls from within a callback.
  void run_nested(size_t most, bool on_graph);

  // --- arguments ---
  template <typename T>
  T *handle() {
    return static_cast<T *>(pick_handle(KindOf<T>::value));
  }
  template <typename T>
  std::unique_ptr<T *[]> handles(int64_t count) { return filled<T *>(count, [this] { return handle<T>(); }); }
  /// A token that ends every wait.
  tutti_cancel *token();
  int64_t count();
  int64_t i64(const char *argument);
  int32_t i32(const char *argument);
  uint8_t u8(const char *) { return static_cast<uint8_t>(input_.byte() % 3); }
  double f64(const char *argument);
  tutti_value value(const char *argument);
  /// Arrays have exactly `count` elements, or are absent.
  std::unique_ptr<int64_t[]> dims(int64_t count);
  std::unique_ptr<double[]> doubles(int64_t count);
  std::unique_ptr<tutti_value[]> values(int64_t count);
  std::unique_ptr<const char *[]> texts(int64_t count);
  /// May be NULL; lives as long as the sequence.
  const char *text(const char *argument);
  const char *directory();
  const char *json();
  /// For a callback of `function`, "" where it is none of the interface by itself.
  Registration *registration(bool has_destroy, const char *function = "");
  template <typename F>
  F *sometimes_null(F *function) {
    return input_.byte() < 8 ? nullptr : function;
  }

  // --- results ---
  void check_code(const char *function, int32_t code, class Err &error);
  void keep_handle(int kind, void *handle, int owned);
  template <typename T>
  void keep(T *handle, int owned) {
    keep_handle(KindOf<T>::value, handle, owned);
  }
  template <typename T>
  void count_reference(T *handle) {
    count_one(KindOf<T>::value, handle);
  }
  void keep_value(tutti_value value) { values_.push_back(value); }
  void keep_values(const tutti_value *values, int64_t count);
  void keep_text(const char *text);
  void look_at(const char *text) const;

  Input &input() { return input_; }
  bool is_deep() const { return depth_ >= 2; }

  // --- whole tasks, so that the calls above meet something alive ---
  void make_dataset();
  void make_estimator();
  void train();
  void predict();
  void iterate();
  void use_feed();
  void use_session();
  void make_tensor();
  void stream();
  /// A loop of one's own: batches of any size, and what the model said of them.
  void train_on_batches();
  /// A model that can be trained, with calls in between.
  void write_model(tutti_graph *graph, int32_t mode);
  void write_any_op(tutti_graph *graph);

 private:
  struct Entry {
    void *handle;
    int owned;
  };
  template <typename T, typename Draw>
  std::unique_ptr<T[]> filled(int64_t count, Draw draw) {
    if (input_.byte() < 6) return nullptr;
    std::unique_ptr<T[]> array(new T[count > 0 ? static_cast<size_t>(count) : 0]());
    for (int64_t i = 0; i < count; ++i)
      array[static_cast<size_t>(i)] = draw();
    return array;
  }
  void *pick_handle(int kind);
  void count_one(int kind, const void *handle);
  void call(const Function &function);
  void call_one(bool on_graph);
  void drop_everything();
  /// Runs a step on the batch that was pushed last.
  void run_batch(tutti_session *session, tutti_estimator *estimator, int64_t rows);

  Input input_;
  std::vector<std::vector<Entry>> pools_;
  std::vector<tutti_value> values_;
  std::deque<std::string> texts_;
  std::deque<Registration> registrations_;
  int depth_ = 0, waits_ = 0;
  bool wrote_files_ = false;
};

/// The `err` of a call.
class Err {
 public:
  explicit Err(Sequence &s) : wanted_(s.input().byte() >= 8) {}
  tutti_error **get() { return wanted_ ? &error_ : nullptr; }
  bool wanted() const { return wanted_; }
  tutti_error *error() const { return error_; }

 private:
  tutti_error *error_ = nullptr;
  bool wanted_;
};

[[noreturn]] void violation(const char *function, const std::string &what);

/// An output handle of a call.
template <typename T>
class Out {
 public:
  explicit Out(Sequence &s) : sequence_(s), wanted_(s.input().byte() >= 6) {}
  T **get() { return wanted_ ? &handle_ : nullptr; }
  void done(const char *function, int32_t code) {
    if (!wanted_) return;
    if (code != TUTTI_OK && handle_ != nullptr) violation(function, "an output handle is not NULL after a failure");
    if (handle_ == untouched()) violation(function, "an output handle was left untouched");
    if (handle_ != nullptr) sequence_.keep(handle_, 1);
  }

 private:
  static T *untouched() { return reinterpret_cast<T *>(uintptr_t{1}); }
  Sequence &sequence_;
  T *handle_ = untouched();
  bool wanted_;
};

/// A text that a call lends.
class OutText {
 public:
  explicit OutText(Sequence &s) : sequence_(s), wanted_(s.input().byte() >= 6) {}
  const char **get() { return wanted_ ? &text_ : nullptr; }
  void done(int32_t code) {
    if (wanted_ && code == TUTTI_OK) sequence_.keep_text(text_);
  }

 private:
  Sequence &sequence_;
  const char *text_ = nullptr;
  bool wanted_;
};

// Callbacks; `user` is a Registration.
int32_t model_callback(tutti_graph *graph, int32_t mode, void *user, tutti_error **err);
int32_t map_graph_callback(tutti_graph *graph, void *user, tutti_error **err);
int32_t map_callback(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count, tutti_error **err);
int32_t map_to_callback(void *user, tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs,
                        int64_t output_count, tutti_error **err);
int32_t scan_callback(void *user, tutti_tensor *const *state, tutti_tensor **new_state, int64_t state_count,
                      tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs, int64_t output_count,
                      tutti_error **err);
int32_t predicate_callback(void *user, tutti_tensor *const *inputs, int64_t count, uint8_t *answer, tutti_error **err);
int32_t expand_callback(void *user, tutti_tensor *const *inputs, int64_t count, tutti_dataset **dataset,
                        tutti_error **err);
int32_t input_callback(void *user, const char *params, int64_t input_pipeline_id, int64_t input_pipeline_count,
                       tutti_dataset **dataset, tutti_error **err);
int32_t generator_callback(void *user, int64_t pass, int64_t index, tutti_tensor **outputs, int64_t count,
                           uint8_t *has_element, tutti_error **err);
int32_t hook_callback(void *user, const tutti_hook_event *event, tutti_error **err);
void log_callback(void *user, int32_t severity, const char *text);
void destroy_callback(void *user);

}  // namespace tutti_fuzz

#endif  // TUTTI_TESTS_FUZZ_API_SEQUENCE_H_
