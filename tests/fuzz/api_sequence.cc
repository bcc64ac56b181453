// SPDX-License-Identifier: Apache-2.0
#include "api_sequence.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <thread>

#include "api_calls.h"

namespace tutti_fuzz {
namespace {

constexpr size_t recent = 16;  ///< Handles of a kind that can still be drawn.

int64_t live_objects_at_first() {
  // The default context lives for ever.
  static const int64_t count = (tutti_context_get_device_count(nullptr), tutti_debug_live_objects(nullptr));
  return count;
}

const std::string &scratch() {
  static const std::string path = [] {
    std::string name = (std::filesystem::temp_directory_path() / "tutti-fuzz-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) violation("mkdtemp", name);
    static std::string kept = name;
    std::atexit([] {
      std::error_code ignored;
      std::filesystem::remove_all(kept, ignored);
    });
    return name;
  }();
  return path;
}

/// With TUTTI_FUZZ_TRACE set, says what is called: the way to read a finding.
void trace(const char *what, int depth) {
  static const bool wanted = std::getenv("TUTTI_FUZZ_TRACE") != nullptr;
  if (wanted) std::fprintf(stderr, "%*s%s\n", 2 * depth, "", what);
}

}  // namespace

void violation(const char *function, const std::string &what) {
  std::fprintf(stderr, "%s: %s\n", function, what.c_str());
  std::abort();
}

Sequence::Sequence(const uint8_t *data, size_t size) : input_(data, size), pools_(kind_count) {
  static_cast<void>(live_objects_at_first());
}

Sequence::~Sequence() = default;

// --- handles --------------------------------------------------------------------------------------------------------

void *Sequence::pick_handle(int kind) {
  const uint8_t how = input_.byte();
  static char foreign[64];
  if (how == 1) return nullptr;
  if (how == 2) return foreign;
  if (how == 3) kind = static_cast<int>(input_.below(kind_count));
  const std::vector<Entry> &pool = pools_[static_cast<size_t>(kind)];
  if (pool.empty()) return nullptr;
  // The newest, mostly; a dropped handle stays here.
  const size_t back = how < 160 ? 0 : input_.below(std::min(recent, pool.size()));
  return pool[pool.size() - 1 - back].handle;
}

void Sequence::keep_handle(int kind, void *handle, int owned) {
  if (handle != nullptr) pools_[static_cast<size_t>(kind)].push_back({handle, owned});
}

void Sequence::count_one(int kind, const void *handle) {
  for (Entry &entry : pools_[static_cast<size_t>(kind)])
    if (entry.handle == handle) {
      ++entry.owned;
      return;
    }
}

tutti_cancel *Sequence::token() {
  tutti_cancel *token = input_.byte() < 4 ? handle<tutti_cancel>() : nullptr;
  if (token == nullptr) {
    if (tutti_cancel_create(&token, nullptr) != TUTTI_OK) violation("tutti_cancel_create", "no token");
    keep(token, 1);
  }
  // Sequences that wait often get less and less time.
  static_cast<void>(tutti_cancel_set_deadline(token, waits_ < 20 ? 100 : 1, nullptr));
  ++waits_;
  return token;
}

// --- numbers --------------------------------------------------------------------------------------------------------

int64_t Sequence::count() {
  const uint8_t how = input_.byte();
  return how < 250 ? how % 5 : how == 250 ? -1 : how == 251 ? 9 : how == 252 ? 70 : 1;
}

int64_t Sequence::i64(const char *) {
  static const int64_t odd[] = {-1,
                                -2,
                                7,
                                100,
                                65536,
                                1000000,
                                int64_t{1} << 31,
                                int64_t{1} << 50,
                                std::numeric_limits<int64_t>::max(),
                                std::numeric_limits<int64_t>::min()};
  const uint8_t how = input_.byte();
  return how < 200 ? how % 6 : odd[how % std::size(odd)];
}

int32_t Sequence::i32(const char *) {
  static const int32_t odd[] = {-1, 17, 99, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()};
  const uint8_t how = input_.byte();
  if (how < 120) return 1 + how % 3;
  return how < 235 ? how % 16 : odd[how % std::size(odd)];
}

double Sequence::f64(const char *) {
  static const double list[] = {0, 1, -1, 0.5, 1e-3, 0.1, 2, 1e308, -1e308, 1e-320, NAN, INFINITY, -INFINITY};
  return list[input_.below(std::size(list))];
}

tutti_value Sequence::value(const char *) {
  const uint8_t how = input_.byte();
  if (how < 4 || values_.empty()) return {how == 1 ? 0 : how == 2 ? -1 : static_cast<int64_t>(how) << 32 | how};
  return values_[values_.size() - 1 - (how % std::min(recent, values_.size()))];
}

void Sequence::keep_values(const tutti_value *values, int64_t count) {
  for (int64_t i = 0; values != nullptr && i < count; ++i)
    values_.push_back(values[i]);
}

std::unique_ptr<int64_t[]> Sequence::dims(int64_t count) {
  return filled<int64_t>(count, [this] {
    const uint8_t how = input_.byte();
    // Small, or so large that no memory holds it: nothing in between, which would only take time.
    return how < 240 ? how % 5 : how < 246 ? -1 : how < 250 ? int64_t{1} << 50 : i64("dim");
  });
}

std::unique_ptr<double[]> Sequence::doubles(int64_t count) {
  return filled<double>(count, [this] { return f64("values"); });
}

std::unique_ptr<tutti_value[]> Sequence::values(int64_t count) {
  return filled<tutti_value>(count, [this] { return value("values"); });
}

std::unique_ptr<const char *[]> Sequence::texts(int64_t count) {
  return filled<const char *>(count, [this] { return text("names"); });
}

// --- texts ----------------------------------------------------------------------------------------------------------

void Sequence::look_at(const char *text) const {
  // Reads every byte: the address sanitizer sees a text that is not there.
  static std::atomic<size_t> total;
  if (text != nullptr) total += std::strlen(text);
}

void Sequence::keep_text(const char *text) {
  if (text != nullptr) texts_.emplace_back(text);
}

const char *Sequence::text(const char *argument) {
  static const char *const likely[] = {"x",      "y",          "w",         "class",        "logits",    "accuracy",
                                       "rate",   "cpu:0",      "cpu:1",     "dense/kernel", "reference", "steps",
                                       "epochs", "seed",       "train",     "run",          "context",   "predictor",
                                       "zeros",  "batch_size", "max_steps", "tensor",       "dense/*",   "backend:cpu"};
  const std::string what = argument;
  if (what.ends_with("path") || what == "directory") return directory();
  const uint8_t how = input_.byte();
  if (how == 1) return nullptr;
  if (what == "text") return json();
  if (what == "state" && how < 200 && !texts_.empty()) return texts_[input_.below(texts_.size())].c_str();
  if (how < 120) return likely[input_.below(std::size(likely))];
  if (how < 230) return registry_words()[input_.below(registry_words().size())];
  std::string bytes;
  for (size_t length = input_.below(12); length > 0; --length) {
    const char byte = static_cast<char>(input_.byte());
    bytes += byte == '/' || byte == '.' || byte == 0 ? '\xFF' : byte;
  }
  texts_.push_back(bytes);
  return texts_.back().c_str();
}

const char *Sequence::directory() {
  const uint8_t how = input_.byte();
  if (how == 1) return nullptr;
  if (how == 2) return "";
  wrote_files_ = true;
  static const char *const names[] = {"/model", "/other", "/missing/deeper", "/model/checkpoint-1", "/file.idx"};
  texts_.push_back(scratch() + names[input_.below(std::size(names))]);
  return texts_.back().c_str();
}

const char *Sequence::json() {
  std::string out = "{";
  for (size_t members = input_.below(4); members > 0; --members) {
    const std::string key = input_.byte() < 128 ? "steps" : registry_words()[input_.below(registry_words().size())];
    const char *path = key == "model_dir" || key == "plugin" ? directory() : nullptr;
    static const char *const values[] = {"1",
                                         "2",
                                         "0",
                                         "true",
                                         "\"fast\"",
                                         "-1",
                                         "1e400",
                                         "[]",
                                         "null",
                                         "{}",
                                         "\"\"",
                                         "\"repeatable\"",
                                         "99999999999999999999",
                                         "0.5",
                                         "\"\\ud800\"",
                                         "\"reference\""};
    out += (out.size() > 1 ? ",\"" : "\"") + key + "\":";
    out += path != nullptr ? '"' + std::string(path) + '"' : values[input_.below(std::size(values))];
  }
  out += '}';
  const uint8_t how = input_.byte();
  if (how > 240) out.resize(input_.below(out.size()));
  if (how > 230) out.insert(out.begin(), static_cast<char>(input_.byte()));
  texts_.push_back(out);
  return texts_.back().c_str();
}

Registration *Sequence::registration(bool has_destroy, const char *function) {
  Registration &made = registrations_.emplace_back();
  made.sequence = this;
  made.behaviour = input_.byte();
  made.has_destroy = has_destroy;
  made.function = function;
  return &made;
}

// --- running --------------------------------------------------------------------------------------------------------

void Sequence::check_code(const char *function, int32_t code, Err &error) {
  if (code < TUTTI_OK || code > TUTTI_UNAUTHENTICATED) violation(function, "code " + std::to_string(code) + " is none");
  trace(function, depth_);
  if (!error.wanted()) return;
  trace(tutti_error_get_text(error.error()), depth_ + 1);
  if ((code == TUTTI_OK) != (error.error() == nullptr))
    violation(function,
              "code " + std::to_string(code) + (error.error() != nullptr ? " with" : " without") + " an error");
  if (error.error() == nullptr) return;
  if (tutti_error_get_code(error.error()) != code) violation(function, "the code is not that of the error");
  if (*tutti_error_get_text(error.error()) == 0) violation(function, "an error without a text");
  keep(error.error(), 1);
}

void Sequence::call(const Function &function) {
  trace(function.name, depth_);
  function.call(*this);
}

void Sequence::call_one(bool on_graph) {
  const uint8_t how = input_.byte();
  if (on_graph && how < 200) {
    for (size_t i = input_.below(functions().size()), tried = 0; tried < functions().size(); ++tried, ++i)
      if (const Function &function = functions()[i % functions().size()]; function.on_graph)
        return function.call(*this);
  }
  static void (Sequence::*const tasks[])() = {&Sequence::make_dataset, &Sequence::make_estimator, &Sequence::train,
                                              &Sequence::predict,      &Sequence::iterate,        &Sequence::use_feed,
                                              &Sequence::use_session,  &Sequence::make_tensor,    &Sequence::stream};
  if (how < 60 && !is_deep()) {
    trace("task", depth_);
    return (this->*tasks[how % std::size(tasks)])();
  }
  // Older sequences of the corpus begin no call so, and still say what they said.
  if ((how == 87 || how == 88) && !is_deep()) {
    trace("task", depth_);
    return train_on_batches();
  }
  call(functions()[input_.below(functions().size())]);
}

void Sequence::run_nested(size_t most, bool on_graph) {
  if (is_deep()) return;
  ++depth_;
  for (size_t i = 0; i < most && !input_.empty(); ++i)
    call_one(on_graph);
  --depth_;
}

void Sequence::drop_everything() {
  for (int kind = 0; kind < kind_count; ++kind)
    for (const Entry &entry : pools_[static_cast<size_t>(kind)])
      for (int i = 0; i < entry.owned; ++i)
        drop(kind, entry.handle);
  static_cast<void>(tutti_context_set_log(nullptr, nullptr, nullptr, nullptr, TUTTI_LOG_ERROR, nullptr));
}

void Sequence::run() {
  const int64_t before = live_objects_at_first();
  for (size_t calls = 0; calls < 200 && !input_.empty(); ++calls)
    call_one(false);
  drop_everything();
  // Dropping never waits; threads that still hold something need a moment.
  const auto is_clean = [&] {
    return tutti_debug_live_objects(nullptr) == before &&
           std::all_of(registrations_.begin(), registrations_.end(),
                       [](const Registration &r) { return r.destroyed == (r.has_destroy ? 1 : 0); });
  };
  for (int i = 0; i < 5000 && !is_clean(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (!is_clean()) {
    std::string what =
        std::to_string(tutti_debug_live_objects(nullptr)) + " objects, " + std::to_string(before) + " before:";
    for (int kind = 0; kind < kind_count; ++kind)
      if (const int64_t alive = tutti_debug_live_objects(name_of(kind)); alive != 0)
        what += std::string(" ") + name_of(kind) + " " + std::to_string(alive);
    for (const Registration &r : registrations_)
      if (r.destroyed != (r.has_destroy ? 1 : 0))
        what += std::string("; ") + r.function + ": destroyed " + std::to_string(r.destroyed) + " times";
    violation("at the end", what);
  }
  std::error_code ignored;
  if (wrote_files_)
    for (const auto &entry : std::filesystem::directory_iterator(scratch(), ignored))
      std::filesystem::remove_all(entry.path(), ignored);
}

}  // namespace tutti_fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tutti_fuzz::Sequence(data, size).run();
  return 0;
}
