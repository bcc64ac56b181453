// SPDX-License-Identifier: Apache-2.0
//
// NameIndex: positions of names in a list, for lists that are too long to be searched once for every name.
//
//   const NameIndex index(columns, [](const Column &column) -> std::string_view { return column.name; });
//   const NameIndex::Place *place = index.find("age");            // null when there is none
//
// The names are looked at where they lie: they must stay there.
//
// Threads: values without hidden state.
#ifndef TUTTI_DATA_ELEMENT_NAME_INDEX_H_
#define TUTTI_DATA_ELEMENT_NAME_INDEX_H_

#include <cstddef>
#include <string_view>
#include <unordered_map>

namespace tutti::impl::data {

class NameIndex {
 public:
  struct Place {
    size_t first = 0;
    size_t count = 0;  ///< elements of this name
  };

  template <typename List, typename NameOf>
  NameIndex(const List &list, NameOf name_of) {
    for (const auto &one : list)
      add(name_of(one));
  }
  /// Of a list of texts.
  template <typename List>
  explicit NameIndex(const List &names) : NameIndex(names, [](const auto &name) { return std::string_view(name); }) {}

  /// One more at the end of the list.
  void add(std::string_view name) {
    Place &place = places_[name];
    if (place.count++ == 0) place.first = size_;
    ++size_;
  }
  const Place *find(std::string_view name) const {
    const auto found = places_.find(name);
    return found == places_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::string_view, Place> places_;
  size_t size_ = 0;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ELEMENT_NAME_INDEX_H_
