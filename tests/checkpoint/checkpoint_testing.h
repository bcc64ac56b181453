// SPDX-License-Identifier: Apache-2.0
//
// For tests of checkpoints: a directory that goes away, small versions of known content, a logger that remembers.
#ifndef TUTTI_TESTS_CHECKPOINT_CHECKPOINT_TESTING_H_
#define TUTTI_TESTS_CHECKPOINT_CHECKPOINT_TESTING_H_

#include <stdlib.h>

#include <mutex>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "checkpoint/weight_version.h"
#include "checkpoint/writer.h"

namespace tutti::impl::checkpoint {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const char *root = getenv("TMPDIR");
    std::string pattern = base::concat(root != nullptr ? root : "/tmp", "/tutti-test-XXXXXX");
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryDirectory() {
    if (!path_.empty()) (void)base::remove_tree(base::parent_directory(path_), base::base_name(path_)).ok();
  }
  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

class RememberingLogger {
 public:
  RememberingLogger() : logger_(base::make_ref<base::Logger>()) {
    logger_->set_sink([this](base::Severity severity, std::string_view message) {
      std::lock_guard lock(mutex_);
      text_ += base::concat(base::name(severity), ": ", message, "\n");
    });
  }
  const base::Ref<base::Logger> &logger() const { return logger_; }
  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  base::Ref<base::Logger> logger_;
  mutable std::mutex mutex_;
  std::string text_;
};

/// A version with weights "dense/kernel" f32 [2, 3] and "dense/bias" f64 [3] and a slot, all filled from `step`.
inline base::Ref<WeightVersion> small_version(int64_t step) {
  const auto base_value = static_cast<float>(step);
  std::vector<StateEntry> entries = {
      {"dense/kernel", StateRole::weight, tensor::DType::f32, tensor::Shape{2, 3}},
      {"dense/bias", StateRole::weight, tensor::DType::f64, tensor::Shape{3}},
      {"dense/kernel/velocity", StateRole::slot, tensor::DType::f32, tensor::Shape{2, 3}},
  };
  std::vector<tensor::Tensor> tensors = {
      *tensor::Tensor::from_values<float>({2, 3}, {base_value, 1, 2, 3, 4, 5}),
      *tensor::Tensor::from_values<double>({3}, {0.5, -0.0, 1e300}),
      *tensor::Tensor::from_values<float>({2, 3}, {0, 1, 2, 3, 4, base_value}),
  };
  return base::make_ref<TensorVersion>(step, std::move(entries), std::move(tensors));
}

inline Snapshot small_snapshot(int64_t step) {
  Snapshot snapshot;
  snapshot.state = small_version(step);
  snapshot.graph_text = "{\"graph\": \"text\"}";
  snapshot.run = base::JsonObject{{"seed", 7}, {"examples", step * 64}};
  snapshot.options = base::JsonObject{{"level", "repeatable"}};
  snapshot.iterator = base::JsonObject{{"position", step}};
  snapshot.metrics = base::JsonObject{{"loss", 0.25}};
  return snapshot;
}

/// Changes one bit of a file.
inline void flip_bit(const std::string &path, size_t byte, int bit = 0) {
  std::string text = base::read_file(path).value_or("");
  if (byte < text.size()) text[byte] = static_cast<char>(text[byte] ^ (1 << bit));
  (void)base::write_file_synced(path, text).ok();
}

inline void truncate_file(const std::string &path, size_t bytes) {
  std::string text = base::read_file(path).value_or("");
  text.resize(bytes);
  (void)base::remove_file(path).ok();
  (void)base::write_file_synced(path, text).ok();
}

}  // namespace tutti::impl::checkpoint

#endif  // TUTTI_TESTS_CHECKPOINT_CHECKPOINT_TESTING_H_
