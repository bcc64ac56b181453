// SPDX-License-Identifier: Apache-2.0
//
// What every dataset must do, whatever it is made of. A source or transform adds a case to a list; the suite walks over
// it in all the ways that must give the same bytes: twice, with 1 and 8 threads, in several epochs, with a look ahead,
// and interrupted after any number of elements by save, a trip through text, and restore in a new walk.
//
//   DatasetCase cases[] = {{"shuffle", [] { return DatasetInstance{shuffled()}; }}};
//   check_dataset_case(cases[0]);
#ifndef TUTTI_TESTS_CONFORMANCE_DATASET_CONFORMANCE_H_
#define TUTTI_TESTS_CONFORMANCE_DATASET_CONFORMANCE_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/json.h"
#include "data/dataset/dataset.h"
#include "tensor/bytes_tensor.h"
#include "testing.h"

namespace tutti::testing {

/// One dataset to walk over, and what must happen once the walk is open (and restored): a feed is pushed to.
struct DatasetInstance {
  impl::base::Result<impl::data::DatasetRef> dataset;
  std::function<void()> opened = nullptr;
};

struct DatasetCase {
  std::string name;
  /// A new instance of the same dataset.
  std::function<DatasetInstance()> make;
  /// Elements to look at, of a dataset that does not end or has very many.
  int64_t limit = 64;
  /// Who runs graphs.
  std::shared_ptr<impl::data::GraphRunner> graphs = nullptr;
  /// Does next() fail for some elements? Then their errors are compared too: element, file, stage and texts.
  bool fails = false;
};

/// Everything that can be seen of an element, as text.
inline std::string fingerprint(const impl::data::Element &element) {
  std::string text = impl::base::concat("lineage ", element.lineage.epoch, ":", element.lineage.index, "\n");
  for (const impl::tensor::Tensor &component : element.components) {
    text += component.describe();
    if (component.dtype() == impl::tensor::DType::bytes) {
      for (int64_t i = 0; i < component.elements(); ++i)
        text += impl::tensor::bytes_at(component, i);
    } else {
      text.append(static_cast<const char *>(component.data()), static_cast<size_t>(component.size_bytes()));
    }
  }
  return text;
}

/// The same of an element that fails.
inline std::string failure(const impl::base::Status &status) { return "failed: " + status.to_string(); }

inline impl::data::IteratorContext context_of(const DatasetCase &one, int64_t epoch = 0, int32_t threads = 1) {
  impl::data::IteratorContext context;
  context.seed = 7;
  context.epoch = epoch;
  context.threads = threads;
  context.graphs = one.graphs;
  return context;
}

/// Fails the test with a text that begins with the case's name.
inline void fail_case(const DatasetCase &one, const std::string &text) {
  print_error("%s: %s\n", one.name.c_str(), text.c_str());
  _fail(__FILE__, __LINE__);
}

/// A walk and what it is over.
struct DatasetWalk {
  DatasetInstance instance;
  std::unique_ptr<impl::data::Iterator> iterator;
};

inline DatasetWalk open_walk(const DatasetCase &one, const impl::data::IteratorContext &context,
                             const impl::base::Json *state = nullptr) {
  DatasetWalk walk{one.make(), nullptr};
  assert_ok(walk.instance.dataset);
  walk.iterator = assert_ok_value((*walk.instance.dataset)->make_iterator(context));
  if (state != nullptr) assert_ok(walk.iterator->restore(*state));
  if (walk.instance.opened) walk.instance.opened();
  return walk;
}

/// The next elements, up to `count`; a failing one is its error with details and causes. The last entry is "end" when
/// the walk ended.
inline std::vector<std::string> take(const DatasetCase &one, impl::data::Iterator &iterator, int64_t count) {
  std::vector<std::string> all;
  while (static_cast<int64_t>(all.size()) < count) {
    impl::data::Element element;
    const impl::base::Result<bool> more = iterator.next(element);
    if (!more.ok() && !one.fails) assert_ok(more);
    if (more.ok() && *more) {
      if (iterator.spec().components.size() != element.components.size()) fail_case(one, "wrong number of components");
      assert_ok(impl::data::check_element(element, iterator.spec(), one.name));
    }
    all.push_back(!more.ok() ? failure(more.status()) : *more ? fingerprint(element) : "end");
    if (all.back() == "end") break;
  }
  return all;
}

inline void check_equal(const DatasetCase &one, const std::vector<std::string> &expected,
                        const std::vector<std::string> &actual, const char *what) {
  if (expected == actual) return;
  const auto difference = std::mismatch(expected.begin(), expected.end(), actual.begin(), actual.end());
  const auto shown = [](const std::vector<std::string> &all, std::vector<std::string>::const_iterator at) {
    if (at == all.end()) return std::string("nothing");
    return at->starts_with("failed: ") || *at == "end" ? *at : at->substr(0, at->find('\n'));
  };
  fail_case(one, impl::base::concat(what, ": ", expected.size(), " elements expected, ", actual.size(),
                                    " came, the first difference is at ", difference.first - expected.begin(),
                                    ":\n  expected ", shown(expected, difference.first), "\n  got ",
                                    shown(actual, difference.second)));
}

inline void check_resume(const DatasetCase &one, const impl::data::IteratorContext &context,
                         const std::vector<std::string> &expected, int64_t at) {
  impl::base::Json state;
  {
    DatasetWalk walk = open_walk(one, context);
    take(one, *walk.iterator, at);
    state = walk.iterator->save();
  }
  const std::string text = state.dump();
  const impl::base::Json read = assert_ok_value(impl::base::Json::parse(text));
  DatasetWalk walk = open_walk(one, context, &read);
  if (walk.iterator->save().dump() != text) {
    fail_case(one, impl::base::concat("saved again after ", at, " elements: ", walk.iterator->save().dump(),
                                      " instead of ", text));
  }
  const std::vector<std::string> rest(expected.begin() + at, expected.end());
  check_equal(one, rest, take(one, *walk.iterator, static_cast<int64_t>(rest.size())), "resumed");
}

inline void check_dataset_case(const DatasetCase &one) {
  const impl::data::IteratorContext context = context_of(one);
  DatasetWalk first = open_walk(one, context);
  const std::vector<std::string> expected = take(one, *first.iterator, one.limit);
  const bool ended = expected.back() == "end";
  const impl::data::Cardinality cardinality = (*first.instance.dataset)->cardinality();
  if (cardinality.is_exact() && ended) {
    assert_int_equal(cardinality.value(), static_cast<int64_t>(expected.size()) - 1);
  }
  if (cardinality.is_infinite()) assert_false(ended);
  if (ended) check_equal(one, {"end"}, take(one, *first.iterator, 1), "after the end");

  DatasetWalk second = open_walk(one, context_of(one, 0, 8));
  check_equal(one, expected, take(one, *second.iterator, one.limit), "8 threads");

  const auto count = static_cast<int64_t>(expected.size());
  for (const int64_t at : {int64_t{0}, int64_t{1}, int64_t{2}, count / 3, count / 2, count - 1, count}) {
    if (at <= count) check_resume(one, context, expected, at);
  }
  DatasetWalk third = open_walk(one, context_of(one, 3));
  const std::vector<std::string> later = take(one, *third.iterator, one.limit);
  check_resume(one, context_of(one, 3, 8), later, static_cast<int64_t>(later.size()) / 2);

  // A look ahead changes nothing.
  DatasetWalk fourth = open_walk(one, context);
  impl::data::Element ahead;
  const impl::base::Result<bool> more = fourth.iterator->peek(ahead);
  if (more.ok() && *more) assert_true(fingerprint(ahead) == expected[0]);
  check_equal(one, expected, take(one, *fourth.iterator, one.limit), "after a look ahead");
}

/// A walk left in the middle, and one whose token was cancelled before.
inline void check_dataset_leaving(const DatasetCase &one) {
  {
    DatasetWalk walk = open_walk(one, context_of(one, 0, 8));
    take(one, *walk.iterator, 2);
  }
  impl::data::IteratorContext context = context_of(one);
  context.cancel = impl::base::CancelToken::create();
  DatasetWalk walk = open_walk(one, context);
  context.cancel->cancel();
  impl::data::Element element;
  assert_int_equal(static_cast<int>(walk.iterator->next(element).code()),
                   static_cast<int>(impl::base::Code::cancelled));
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_CONFORMANCE_DATASET_CONFORMANCE_H_
