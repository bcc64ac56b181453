// SPDX-License-Identifier: Apache-2.0
//
// What transforms make of a source: its elements and failures, as take() of the conformance suite has them, put
// together by the plainest code. A text that comes back is the beginning of an element, or a failure as a whole.
//
// Failures of the source come as they are, one for each element that fails, unless the transform passes these over:
// whoever makes one element of several fails with the first failure among them, and with all of them.
#ifndef TUTTI_TESTS_DATA_TRANSFORM_MODEL_H_
#define TUTTI_TESTS_DATA_TRANSFORM_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::testing {

using Strings = std::vector<std::string>;

inline bool is_failure(const std::string &element) { return element.compare(0, 8, "failed: ") == 0; }
// As it is in another pass over the source.
inline std::string in_pass(std::string element, int pass) {
  for (const std::string epoch : {"epoch=", "epoch "}) {
    const size_t at = is_failure(element) ? element.find(epoch + "0") : std::string::npos;
    if (at != std::string::npos) element.replace(at, epoch.size() + 1, impl::base::concat(epoch, pass));
  }
  return element;
}
// As it is of one of two equal sources, which a failure tells apart.
inline std::string of_source(std::string element, int number) {
  if (is_failure(element))
    element.insert(element.find(']', element.find("stage=")), impl::base::concat(" #", number, " of 2"));
  return element;
}

inline Strings same(const Strings &all) { return all; }
// Elements of any contents.
inline Strings any(Strings all) {
  for (std::string &one : all)
    one = is_failure(one) ? one : "";
  return all;
}
inline Strings first(const Strings &all, size_t count) {
  return Strings(all.begin(), all.begin() + static_cast<int64_t>(std::min(count, all.size())));
}
inline Strings behind(const Strings &all, size_t count) {
  return Strings(all.begin() + static_cast<int64_t>(std::min(count, all.size())), all.end());
}
inline Strings one_after_the_other(const Strings &all) {
  Strings both;
  for (const int number : {1, 2}) {
    for (const std::string &one : all)
      both.push_back(of_source(one, number));
  }
  return both;
}
inline Strings by_turns(const Strings &all) {
  Strings pairs;
  for (const std::string &one : all)
    pairs.insert(pairs.end(), {of_source(one, 1), of_source(one, 2)});
  return pairs;
}
inline Strings twice(const Strings &all) {
  Strings both;
  for (const int pass : {0, 1}) {
    for (const std::string &one : all)
      both.push_back(in_pass(one, pass));
  }
  return both;
}
// Those at positions offset, offset + step, ...
inline Strings each(const Strings &all, size_t offset, size_t step) {
  Strings some;
  for (size_t i = offset; i < all.size(); i += step)
    some.push_back(all[i]);
  return some;
}
// Those of which `keeps` is true, by position. Nobody asks it about a failure.
inline Strings chosen(const Strings &all, const std::function<bool(size_t position)> &keeps) {
  Strings some;
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_failure(all[i]) || keeps(i)) some.push_back(all[i]);
  }
  return some;
}
// The failure of elements that become one; empty when there is none.
inline std::string failure_among(std::span<const std::string> group) {
  const auto found = std::find_if(group.begin(), group.end(), is_failure);
  return found == group.end() ? "" : *found;
}
// One for each `size` elements; with `remainder` also for fewer of them at the end. A batch says that it fails even if
// it would be left out.
inline Strings batches(const Strings &all, size_t size, bool remainder) {
  Strings some;
  for (size_t i = 0; i < all.size(); i += size) {
    const std::span group = std::span(all).subspan(i, std::min(size, all.size() - i));
    const std::string failed = failure_among(group);
    if (remainder || group.size() == size || !failed.empty()) some.push_back(failed);
  }
  return some;
}
// One for each `size` elements from 0, `shift`, ... on. Of a window that is left out nothing is seen.
inline Strings windows(const Strings &all, size_t size, size_t shift) {
  Strings some;
  for (size_t i = 0; i + size <= all.size(); i += shift)
    some.push_back(failure_among(std::span(all).subspan(i, size)));
  return some;
}
// Through batches of so many.
inline Strings batched_and_unbatched(const Strings &all, size_t size) {
  Strings some;
  for (size_t i = 0; i < all.size(); i += size) {
    const std::span group = std::span(all).subspan(i, std::min(size, all.size() - i));
    const std::string failed = failure_among(group);
    if (failed.empty()) {
      some.insert(some.end(), group.begin(), group.end());
    } else {
      some.push_back(failed);
    }
  }
  return some;
}
// Batches of two, of lists of up to 3 and of others; at the end what is left of the one and the other.
inline Strings bucketed(const Strings &all) {
  Strings all_batches;
  std::vector<int> waiting[2];
  const auto give = [&all_batches](std::vector<int> &lengths) {
    if (lengths.empty()) return;
    const int longest = *std::max_element(lengths.begin(), lengths.end());
    all_batches.push_back(impl::base::concat("bytes [", lengths.size(), ", ", longest, "]"));
    lengths.clear();
  };
  for (const std::string &one : all) {
    if (is_failure(one)) {
      all_batches.push_back(one);
      continue;
    }
    const int length = std::stoi(one.substr(one.find('[') + 1));
    std::vector<int> &lengths = waiting[length > 3 ? 1 : 0];
    lengths.push_back(length);
    if (lengths.size() == 2) give(lengths);
  }
  give(waiting[0]);
  give(waiting[1]);
  return all_batches;
}

// The element with this number alone, without where it came from.
inline std::string number(int64_t value) {
  const impl::tensor::Tensor tensor = impl::tensor::Tensor::scalar(value).value();
  return tensor.describe() + std::string(static_cast<const char *>(tensor.data()), sizeof(value));
}
// 0 and 1 for each element.
inline Strings expanded(const Strings &all) {
  Strings numbers;
  for (const std::string &one : all) {
    if (is_failure(one)) {
      numbers.push_back(one);
    } else {
      numbers.insert(numbers.end(), {number(0), number(1)});
    }
  }
  return numbers;
}
// The same by turns from three elements at a time. Whose turn it is takes the next element when it has nothing more,
// and again when that fails.
inline Strings expanded_by_turns(const Strings &all) {
  Strings numbers;
  int64_t next[] = {2, 2, 2};  // of each place
  size_t taken = 0;
  const auto is_over = [](int64_t value) { return value == 2; };
  for (size_t turn = 0; taken < all.size() || !std::all_of(next, next + 3, is_over); ++turn) {
    int64_t &value = next[turn % 3];
    while (is_over(value) && taken < all.size()) {
      if (is_failure(all[taken])) {
        numbers.push_back(all[taken]);
      } else {
        value = 0;
      }
      ++taken;
    }
    if (!is_over(value)) numbers.push_back(number(value++));
  }
  return numbers;
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DATA_TRANSFORM_MODEL_H_
