// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset/example_features.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <protozero/exception.hpp>
#include <protozero/pbf_reader.hpp>

namespace tutti::tool {

namespace {

constexpr int kRecordsLookedAt = 100;

/// Of a feature in all examples seen.
struct Seen {
  const char *type = nullptr;  // null while it was empty everywhere
  int64_t examples = 0, least = INT64_MAX, most = 0;
};

/// How many values a list has, packed or not.
int64_t count_values(protozero::pbf_reader list, const char *type) {
  int64_t count = 0;
  while (list.next(1)) {
    const bool is_packed = list.wire_type() == protozero::pbf_wire_type::length_delimited;
    if (type[0] == 'b' || !is_packed) {
      list.skip();
      ++count;
    } else if (type[0] == 'f') {
      const auto values = list.get_packed_float();
      count += static_cast<int64_t>(values.size());
    } else {
      const auto values = list.get_packed_int64();
      count += static_cast<int64_t>(values.size());
    }
  }
  return count;
}

void add_feature(protozero::pbf_reader feature, Seen &seen) {
  static const char *const types[] = {nullptr, "bytes", "f32", "i64"};
  int64_t count = 0;
  while (feature.next()) {
    if (feature.tag() < 1 || feature.tag() > 3) {
      feature.skip();
      continue;
    }
    const char *type = types[feature.tag()];
    count = count_values(feature.get_message(), type);
    if (count > 0) seen.type = type;
  }
  ++seen.examples;
  seen.least = std::min(seen.least, count);
  seen.most = std::max(seen.most, count);
}

/// Example { 1: Features { 1: map<1: name, 2: Feature> } }.
void add_example(protozero::pbf_reader example, std::map<std::string, Seen> &found) {
  while (example.next()) {
    if (example.tag() != 1) throw protozero::invalid_tag_exception();
    protozero::pbf_reader features = example.get_message();
    while (features.next()) {
      if (features.tag() != 1) throw protozero::invalid_tag_exception();
      protozero::pbf_reader entry = features.get_message(), value;
      std::string name;
      while (entry.next()) {
        if (entry.tag() == 1) {
          name = entry.get_string();
        } else if (entry.tag() == 2) {
          value = entry.get_message();
        } else {
          throw protozero::invalid_tag_exception();
        }
      }
      add_feature(value, found[name]);
    }
  }
}

std::string declaration(const std::string &name, const Seen &seen, int64_t examples) {
  const std::string text = name + ": " + seen.type;
  if (seen.least != seen.most || seen.examples != examples) return text + "[?]";
  return seen.most == 1 ? text : text + "[" + std::to_string(seen.most) + "]";
}

}  // namespace

std::vector<std::string> find_features(const Dataset &records) {
  std::map<std::string, Seen> found;
  int64_t examples = 0;
  Iterator iterator(records);
  try {
    for (; examples < kRecordsLookedAt && iterator.next(); ++examples) {
      const Tensor record = iterator.component(0);
      const auto *data = static_cast<const char *>(tutti_tensor_get_element_data(record, 0));
      const auto size = static_cast<size_t>(tutti_tensor_get_element_size(record, 0));
      add_example(protozero::pbf_reader(data, size), found);
    }
  } catch (const protozero::exception &) {
    return {};
  }
  std::vector<std::string> features;
  for (const auto &[name, seen] : found) {
    // A colon would end the name.
    if (seen.type != nullptr && name.find(':') == std::string::npos)
      features.push_back(declaration(name, seen, examples));
  }
  return features;
}

}  // namespace tutti::tool
