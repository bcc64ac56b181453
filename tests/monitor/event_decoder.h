// SPDX-License-Identifier: Apache-2.0
//
// Reads event files by the description of their format alone, with nothing of what writes them: records of TensorFlow's
// core/lib/io/record_writer.h, messages in the encoding of protocol buffers.
#ifndef TUTTI_TESTS_MONITOR_EVENT_DECODER_H_
#define TUTTI_TESTS_MONITOR_EVENT_DECODER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::testing {

/// Fields of a message by number, in order; numbers of fixed size as their bytes, varints as eight bytes.
using Fields = std::vector<std::pair<int32_t, std::string>>;
/// Throws std::runtime_error where it is none.
Fields decode_message(std::string_view message);
/// The last field of this number; "" where there is none.
std::string field_of(const Fields &fields, int32_t number);
int64_t integer_of(const Fields &fields, int32_t number);
double double_of(std::string_view bytes);
float float_of(std::string_view bytes);

struct DecodedEvent {
  std::string file;
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version;
  bool is_start = false;
  std::map<std::string, Fields> values;  ///< of a summary, by their tags
  std::string graph;

  /// A scalar; NaN where there is none of this tag.
  double scalar(const std::string &tag) const;
};

/// How a file may end: of a process that was killed in a write, within a record.
enum class Tail { whole, may_be_cut };
/// Every event of a file, whose checksums must be right. Throws std::runtime_error.
std::vector<DecodedEvent> decode_event_file(const std::string &path, Tail tail = Tail::whole);
/// Of all event files of a folder, as readers take them: in the order of their names; [] for no folder.
std::vector<DecodedEvent> decode_event_folder(const std::string &folder, Tail tail = Tail::whole);
/// What TensorBoard shows of them: at each start but the first, events of its step and later ones go.
std::vector<DecodedEvent> shown_events(const std::vector<DecodedEvent> &events);
/// (step, scalar) of the events that have the tag.
std::vector<std::pair<int64_t, double>> curve(const std::vector<DecodedEvent> &events, const std::string &tag);

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_MONITOR_EVENT_DECODER_H_
