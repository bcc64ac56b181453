// SPDX-License-Identifier: Apache-2.0
//
// dropout and the random leaves: each element's number is a function of (seed, key, batch counter,
// iteration of a scan, row, element).
#include <algorithm>
#include <cmath>

#include "backend/random_elements.h"
#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::PhiloxWords;
using base::Result;
using base::Status;
using tensor::DType;

namespace {

/// Calls function(position, four words, which of them) for every element.
template <typename Function>
void for_elements(const RandomRows &plan, const int64_t *scalars, Function function) {
  const base::RandomKey key = plan.key(scalars, scalars[kScanIteration]);
  for (int64_t row = 0; row < plan.rows; ++row) {
    const uint64_t global_row = plan.global_row(row, scalars);
    PhiloxWords words{};
    for (int64_t element = 0; element < plan.elements_per_row(); ++element) {
      if (element % 4 == 0) words = key.words(global_row, static_cast<uint64_t>(element / 4));
      function(plan.position(row, element), words, static_cast<size_t>(element % 4));
    }
  }
}

template <typename Attributes>
Result<Kernel> make_normal(KernelRequest &request, bool is_truncated) {
  TUTTI_ASSIGN(const Attributes attributes, Attributes::from(request.node));
  const RandomRows plan = RandomRows::of(request.lowered, request.node, attributes.key);
  return Kernel([plan, is_truncated, dtype = request.output(0).dtype, mean = attributes.mean,
                 deviation = attributes.stddev](const Frame &frame) {
    for_elements(plan, frame.scalars(), [&](int64_t position, const PhiloxWords &words, size_t which) {
      const size_t pair = which & ~size_t{1};
      const double z = is_truncated ? base::truncated_normal(words[which])
                                    : base::normal_pair(words[pair], words[pair + 1])[which % 2];
      const double value = mean + deviation * z;
      store(dtype, frame.output(0), position, 1, &value);
    });
    return Status();
  });
}

}  // namespace

Result<Kernel> make_dropout(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::DropoutAttributes::from(request.node));
  const RandomRows plan = RandomRows::of(request.lowered, request.node, attributes.key);
  return Kernel([plan, dtype = request.output(0).dtype, rate = attributes.rate](const Frame &frame) {
    for_elements(plan, frame.scalars(), [&](int64_t position, const PhiloxWords &words, size_t which) {
      const bool is_kept = static_cast<double>(base::uniform_float(words[which])) >= rate;
      const double value = is_kept ? load_one(dtype, frame.input(0), position) / (1 - rate) : 0;
      store(dtype, frame.output(0), position, 1, &value);
    });
    return Status();
  });
}

Result<Kernel> make_random_uniform(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::RandomUniformAttributes::from(request.node));
  const RandomRows plan = RandomRows::of(request.lowered, request.node, attributes.key);
  return Kernel(
      [plan, dtype = request.output(0).dtype, low = attributes.low, high = attributes.high](const Frame &frame) {
        for_elements(plan, frame.scalars(), [&](int64_t position, const PhiloxWords &words, size_t which) {
          const double value = uniform_in(low, high, words[which]);
          store(dtype, frame.output(0), position, 1, &value);
        });
        return Status();
      });
}

Result<Kernel> make_random_normal(KernelRequest &request) {
  if (request.node.op == "random_truncated_normal")
    return make_normal<graph::ops::RandomTruncatedNormalAttributes>(request, true);
  return make_normal<graph::ops::RandomNormalAttributes>(request, false);
}

}  // namespace tutti::impl::backend::reference
