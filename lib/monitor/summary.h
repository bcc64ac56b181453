// SPDX-License-Identifier: Apache-2.0
//
// What is to be seen of one step: values with tags, encoded as TensorFlow's message Summary (core/framework/
// summary.proto) in the forms that TensorBoard and other readers take as they are.
//
//   Summary summary;
//   summary.add_scalar("loss", 0.25);
//   summary.add_text("notes", "learning rate **halved**");
//   TUTTI_TRY(file.add({.time_ns = now, .step = 100, .kind = EventKind::summary, .message = summary.bytes()}));
//
// Tags are any text: case, spaces and "/", by which TensorBoard groups, stay. What is not UTF-8 is replaced by U+FFFD.
//
// Threads: a value.
#ifndef TUTTI_MONITOR_SUMMARY_H_
#define TUTTI_MONITOR_SUMMARY_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "monitor/histogram.h"

namespace tutti::impl::monitor {

/// A tag whose scalars come again and again: encoding one costs no more than copying it.
class ScalarTag {
 public:
  explicit ScalarTag(std::string_view tag);

 private:
  friend class Summary;
  std::string form_;  // a value but for its number, which comes last
};

class Summary {
 public:
  /// Stored as f32, which is what readers expect; NaN and infinities are legal.
  void add_scalar(std::string_view tag, double value);
  void add_scalar(const ScalarTag &tag, double value);
  /// In Markdown.
  void add_text(std::string_view tag, std::string_view text);

  void add_histogram(std::string_view tag, const Histogram &histogram);
  /// Images of one size, as PNG files.
  void add_images(std::string_view tag, int64_t height, int64_t width, std::span<const std::string> files);
  /// A matrix of f32 for a plug-in of TensorBoard, and what that wants to know of it.
  void add_matrix(std::string_view tag, std::string_view plugin, std::string_view content, int64_t rows,
                  std::span<const float> elements);
  /// What a plug-in of TensorBoard wants to know of a run, a message of its own, in place of a value.
  void add_plugin_content(std::string_view tag, std::string_view plugin, std::string_view content);

  bool is_empty() const { return message_.empty(); }
  /// Keeps the memory.
  void clear() { message_.clear(); }
  std::string_view bytes() const { return message_; }

 private:
  std::string message_;
};

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_SUMMARY_H_
