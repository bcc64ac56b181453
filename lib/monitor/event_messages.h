// SPDX-License-Identifier: Apache-2.0
//
// Fields of the messages in event files, as TensorFlow numbers them: core/util/event.proto, and in core/framework
// summary.proto, tensor.proto, graph.proto, node_def.proto and attr_value.proto.
//
// Internal to this folder; functions without state.
#ifndef TUTTI_MONITOR_EVENT_MESSAGES_H_
#define TUTTI_MONITOR_EVENT_MESSAGES_H_

#include <protozero/pbf_builder.hpp>
#include <string>
#include <string_view>

namespace tutti::impl::monitor::message {

enum class Event : protozero::pbf_tag_type {
  wall_time = 1,
  step = 2,
  file_version = 3,
  graph_def = 4,
  summary = 5,
  session_log = 7
};
enum class SessionLog : protozero::pbf_tag_type { status = 1 };
constexpr int32_t session_start = 1;

enum class Summary : protozero::pbf_tag_type { value = 1 };
enum class Value : protozero::pbf_tag_type {
  tag = 1,
  simple_value = 2,
  image = 4,
  histo = 5,
  tensor = 8,
  metadata = 9
};
enum class Metadata : protozero::pbf_tag_type { plugin_data = 1, data_class = 4 };
enum class PluginData : protozero::pbf_tag_type { plugin_name = 1, content = 2 };
enum class DataClass : int32_t { scalar = 1, tensor = 2, blob_sequence = 3 };

enum class Tensor : protozero::pbf_tag_type { dtype = 1, shape = 2, content = 4, float_val = 5, string_val = 8 };
enum class Shape : protozero::pbf_tag_type { dim = 2, unknown_rank = 3 };
enum class Dim : protozero::pbf_tag_type { size = 1 };
enum class DataType : int32_t {
  invalid = 0,
  f32 = 1,
  f64 = 2,
  i32 = 3,
  u8 = 4,
  i16 = 5,
  i8 = 6,
  string = 7,
  i64 = 9,
  boolean = 10,
  bf16 = 14,
  u16 = 17,
  f16 = 19
};

enum class GraphDef : protozero::pbf_tag_type { node = 1, versions = 4 };
enum class Versions : protozero::pbf_tag_type { producer = 1 };
enum class NodeDef : protozero::pbf_tag_type { name = 1, op = 2, input = 3, device = 4, attr = 5 };
/// Of every map.
enum class MapEntry : protozero::pbf_tag_type { key = 1, value = 2 };
enum class AttrValue : protozero::pbf_tag_type { list = 1, s = 2, i = 3, f = 4, b = 5, type = 6, shape = 7 };
enum class AttrList : protozero::pbf_tag_type { s = 2, i = 3, f = 4, b = 5, shape = 7 };

/// A text with what is not UTF-8 replaced by U+FFFD: readers refuse a whole message with anything else.
std::string as_utf8(std::string_view text);

/// A field of type string, whatever the text.
template <typename Message>
void add_text(protozero::pbf_builder<Message> &to, Message field, std::string_view text) {
  to.add_string(field, as_utf8(text));
}

}  // namespace tutti::impl::monitor::message

#endif  // TUTTI_MONITOR_EVENT_MESSAGES_H_
