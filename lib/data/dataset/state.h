// SPDX-License-Identifier: Apache-2.0
//
// State: what an iterator saves, as a flat list of tokens: cheap enough to be taken at every element (no allocation
// once the list has grown), so that a stage running ahead keeps the state of its input beside each element it holds.
// Becomes JSON only when somebody asks for it.
//
//   state.open("shuffle");                    // {"kind": "shuffle",
//   state.number("draws", draws_);            //  "draws": 7,
//   state.key("input"), input_->save(state);  //  "input": {...}
//   state.close();                            // }
//
// Names and kinds are string literals: they are kept as pointers. Threads: a value.
#ifndef TUTTI_DATA_DATASET_STATE_H_
#define TUTTI_DATA_DATASET_STATE_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace tutti::impl::data {

class State {
 public:
  /// Begins an object {"kind": kind}; ended by close().
  void open(const char *kind) { tokens_.push_back({Type::open, kind, 0}); }
  /// Begins a list; ended by close(). Its elements have no key.
  void open_list() { tokens_.push_back({Type::open_list, nullptr, 0}); }
  void close() { tokens_.push_back({Type::close, nullptr, 0}); }
  /// The name of the object or list that follows.
  void key(const char *name) { tokens_.push_back({Type::key, name, 0}); }
  void number(const char *name, int64_t value) { tokens_.push_back({Type::number, name, value}); }
  /// A number in a list.
  void number(int64_t value) { tokens_.push_back({Type::number, nullptr, value}); }
  /// A complete object taken earlier.
  void append(const State &object);
  /// An object that was restored and is not needed yet.
  void append(std::shared_ptr<const base::Json> object) {
    tokens_.push_back({Type::document, nullptr, static_cast<int64_t>(documents_.size())});
    documents_.push_back(std::move(object));
  }

  void clear() {
    tokens_.clear();
    documents_.clear();
  }
  bool empty() const { return tokens_.empty(); }
  void swap(State &other) noexcept {
    tokens_.swap(other.tokens_);
    documents_.swap(other.documents_);
  }
  base::Json to_json() const;

 private:
  enum class Type : uint8_t { open, open_list, close, key, number, document };
  struct Token {
    Type type;
    const char *text;
    int64_t value;  // of a number; of a document, which
  };
  base::Json read_value(size_t &position) const;

  std::vector<Token> tokens_;
  std::vector<std::shared_ptr<const base::Json>> documents_;
};

/// INVALID_ARGUMENT unless the saved object is of this kind.
base::Status expect_kind(const base::JsonReader &state, std::string_view kind);
/// A saved count, from `minimum` to `maximum`.
base::Result<int64_t> saved_count(const base::JsonReader &state, std::string_view key, int64_t minimum = 0,
                                  int64_t maximum = INT64_MAX);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_DATASET_STATE_H_
