// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/state.h"

#include <utility>

namespace tutti::impl::data {

using base::Json;
using base::JsonReader;
using base::Result;
using base::Status;

void State::append(const State &object) {
  const size_t first = tokens_.size();
  const auto documents = static_cast<int64_t>(documents_.size());
  tokens_.insert(tokens_.end(), object.tokens_.begin(), object.tokens_.end());
  if (object.documents_.empty()) return;
  documents_.insert(documents_.end(), object.documents_.begin(), object.documents_.end());
  for (size_t i = first; i < tokens_.size(); ++i) {
    if (tokens_[i].type == Type::document) tokens_[i].value += documents;
  }
}

Json State::to_json() const {
  size_t position = 0;
  return tokens_.empty() ? Json() : read_value(position);
}

Json State::read_value(size_t &position) const {
  const Token &first = tokens_[position++];
  if (first.type == Type::document) return *documents_[static_cast<size_t>(first.value)];
  const bool is_list = first.type == Type::open_list;
  base::JsonArray elements;
  base::JsonObject members;
  if (!is_list) members.emplace_back("kind", first.text);
  while (position < tokens_.size() && tokens_[position].type != Type::close) {
    const Token &token = tokens_[position];
    if (token.type == Type::number && is_list) {
      elements.push_back(token.value);
      ++position;
    } else if (token.type == Type::number) {
      members.emplace_back(token.text, token.value);
      ++position;
    } else if (token.type == Type::key) {
      ++position;
      members.emplace_back(token.text, read_value(position));
    } else {
      elements.push_back(read_value(position));
    }
  }
  ++position;
  return is_list ? Json(std::move(elements)) : Json(std::move(members));
}

Status expect_kind(const JsonReader &state, std::string_view kind) {
  TUTTI_ASSIGN(const std::string found, state.get_string("kind"));
  if (found == kind) return Status();
  return base::invalid_argument(state.path(), ": the saved state is of '", found, "', the pipeline has '", kind,
                                "' there");
}

Result<int64_t> saved_count(const JsonReader &state, std::string_view key, int64_t minimum, int64_t maximum) {
  TUTTI_ASSIGN(const int64_t value, state.get_integer(key));
  if (value >= minimum && value <= maximum) return value;
  const std::string bounds =
      maximum == INT64_MAX ? base::concat("at least ", minimum) : base::concat("from ", minimum, " to ", maximum);
  return base::invalid_argument(state.path(), ".", key, ": expected ", bounds, ", got ", value);
}

}  // namespace tutti::impl::data
