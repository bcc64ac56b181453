// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/dataset_list.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;

namespace {

Cardinality sum(Cardinality a, Cardinality b) {
  if (a == Cardinality::infinite() || b == Cardinality::infinite()) return Cardinality::infinite();
  if (a.is_infinite() || b.is_infinite()) return Cardinality::presumed_infinite();
  if (a.is_unknown() || b.is_unknown()) return Cardinality::unknown();
  return Cardinality::exactly(a.value() + b.value());
}

}  // namespace

Status check_equal(const ElementSpec &expected, const ElementSpec &got) {
  if (expected.components == got.components && expected.batch_size == got.batch_size) return Status();
  return base::invalid_argument("expected datasets of equal specs, got ", expected.to_string(), " and ",
                                got.to_string());
}

Result<DatasetList> list_datasets(const DatasetRef &first, const std::vector<DatasetRef> &others) {
  DatasetList list{{first}, first->spec(), first->cardinality()};
  for (const DatasetRef &other : others) {
    if (other == nullptr) return base::invalid_argument("argument 'others': a dataset is missing");
    TUTTI_TRY(check_equal(first->spec(), other->spec()));
    list.spec.exact_batches = list.spec.exact_batches && other->spec().exact_batches;
    list.cardinality = sum(list.cardinality, other->cardinality());
    list.datasets.push_back(other);
  }
  return list;
}

}  // namespace tutti::impl::data
