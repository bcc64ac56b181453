// SPDX-License-Identifier: Apache-2.0
//
// Functions of nn.yaml.
#include "entries/entry_case.h"

namespace tutti::testing::entries {

namespace {

Cases elementwise_functions() {
  Cases cases;
  for (const char *function : {"relu6", "selu", "mish", "hard_sigmoid", "hard_swish", "softsign", "log_sigmoid", "tan",
                               "sinh", "cosh", "atan"})
    cases.push_back({.entry = function, .inputs = {rows({4})}});
  for (const char *function : {"log2", "log10", "asin", "acos"})
    cases.push_back({.entry = function, .inputs = {rows({4}, Fill::unit)}});
  for (const char *function : {"is_nan", "is_inf"})
    cases.push_back({.entry = function, .inputs = {rows({4})}, .is_flat = true});
  append(cases, {{.entry = "clip", .inputs = {rows({4})}, .attributes = {{"low", -0.5}, {"high", 0.25}}},
                 {.entry = "prelu", .inputs = {rows({2, 3}), weights({3})}},
                 {.entry = "atan2", .inputs = {rows({4}), rows({4})}}});
  return cases;
}

Cases reduction_functions() {
  const Ints last = {-1}, batch = {0};
  return {
      {.entry = "logsumexp", .inputs = {rows({3, 2})}, .attributes = {{"axes", last}}},
      {.entry = "norm", .inputs = {rows({3, 2})}, .attributes = {{"axes", last}}},
      {.entry = "norm", .inputs = {rows({3, 2})}, .attributes = {{"axes", batch}}, .in_micro_batches = kInPieces},
      {.entry = "norm", .inputs = {rows({3, 2})}, .attributes = {{"order", text("l1")}, {"axes", batch}}},
      {.entry = "norm", .inputs = {rows({3, 2})}, .attributes = {{"order", text("infinity")}, {"axes", last}}},
      {.entry = "l2_normalize", .inputs = {rows({3, 2})}},
      {.entry = "reduce_any", .inputs = {flags({3})}, .attributes = {{"axes", last}}},
      {.entry = "reduce_all", .inputs = {flags({3})}, .attributes = {{"axes", last}, {"keep_dims", true}}},
      {.entry = "reduce_any", .inputs = {flags({3})}, .attributes = {{"axes", batch}}, .in_pieces = kInPieces},
      {.entry = "reduce_all", .inputs = {flags({3})}, .in_pieces = kInPieces},
      {.entry = "bincount", .inputs = {numbers(4, {3})}, .attributes = {{"bins", whole(3)}, {"by_row", true}}},
      {.entry = "bincount",
       .inputs = {numbers(4, {3})},
       .named = {{"weights", rows({3})}},
       .attributes = {{"bins", whole(4)}}},
  };
}

Cases shape_functions() {
  const Ints second = {1};
  return {
      {.entry = "split", .inputs = {rows({4, 2})}, .attributes = {{"parts", whole(2)}, {"axis", whole(1)}}},
      {.entry = "split",
       .inputs = {rows({4})},
       .attributes = {{"parts", whole(2)}, {"axis", whole(-1)}, {"sizes", Ints{1, 3}}}},
      {.entry = "stack", .inputs = {rows({3}), rows({3})}, .attributes = {{"axis", whole(1)}}},
      {.entry = "unstack", .inputs = {rows({3, 2})}, .attributes = {{"length", whole(3)}, {"axis", whole(1)}}},
      {.entry = "tile", .inputs = {rows({3})}, .attributes = {{"multiples", Ints{1, 2}}}},
      {.entry = "roll", .inputs = {rows({4})}, .attributes = {{"shifts", second}, {"axes", second}}},
      {.entry = "reverse", .inputs = {rows({4})}, .attributes = {{"axes", second}}},
      {.entry = "band_part", .inputs = {rows({3, 4})}, .attributes = {{"lower", whole(1)}, {"upper", whole(0)}}},
      {.entry = "lower_triangle", .inputs = {rows({3, 4})}},
      {.entry = "upper_triangle", .inputs = {rows({3, 4})}, .attributes = {{"diagonal", whole(1)}}},
      {.entry = "band_mask", .attributes = {{"rows", whole(3)}, {"columns", whole(4)}, {"upper", whole(0)}}},
      {.entry = "cumsum", .inputs = {rows({4})}, .attributes = {{"axis", whole(1)}, {"exclusive", true}}},
      {.entry = "cumprod", .inputs = {rows({4})}, .attributes = {{"axis", whole(1)}, {"backward", true}}},
      {.entry = "sort", .inputs = {rows({5})}, .attributes = {{"descending", true}}},
      {.entry = "argsort", .inputs = {rows({5})}, .is_flat = true},
      {.entry = "gather_nd", .inputs = {weights({4, 3, 2}), numbers(3, {2, 2})}},
  };
}

Cases scatter_functions() {
  Cases cases;
  for (const char *function : {"scatter_add", "scatter_max", "scatter_replace"})
    cases.push_back({.entry = function, .inputs = {weights({5, 3}), fixed_numbers(5, {4}), weights({4, 3})}});
  return cases;
}

Cases product_functions() {
  return {
      {.entry = "einsum", .inputs = {rows({3}), weights({3, 4})}, .attributes = {{"equation", text("bi,io->bo")}}},
      {.entry = "einsum", .inputs = {rows({3}), rows({2})}, .attributes = {{"equation", text("bi,bo->io")}}},
      {.entry = "einsum", .inputs = {rows({2, 3}), rows({3, 2})}, .attributes = {{"equation", text("bij,bjk->bik")}}},
      {.entry = "conv1d", .inputs = {rows({5, 2}), weights({3, 2, 3}), weights({3})}},
      {.entry = "max_pool1d", .inputs = {rows({5, 2})}, .attributes = {{"window", whole(2)}}},
      {.entry = "avg_pool1d",
       .inputs = {rows({5, 2})},
       .attributes = {{"window", whole(2)}, {"padding", text("same")}}},
      {.entry = "conv1d_transpose",
       .inputs = {rows({4, 2}), weights({3, 3, 2}), weights({3})},
       .attributes = {{"stride", whole(2)}}},
      {.entry = "conv2d_transpose",
       .inputs = {rows({3, 2, 2}), weights({2, 3, 3, 2}), weights({3})},
       .attributes = {{"stride", Ints{2, 1}}}},
      {.entry = "conv3d", .inputs = {rows({3, 2, 4, 2}), weights({2, 1, 3, 2, 2}), weights({2})}},
      {.entry = "conv3d_transpose",
       .inputs = {rows({2, 2, 3, 2}), weights({2, 1, 3, 2, 2}), weights({2})},
       .attributes = {{"stride", Ints{2, 1, 1}}}},
      {.entry = "max_pool3d", .inputs = {rows({4, 2, 3, 2})}, .attributes = {{"window", Ints{2, 2, 3}}}},
      {.entry = "avg_pool3d", .inputs = {rows({4, 2, 3, 2})}, .attributes = {{"window", Ints{2, 1, 3}}}},
      {.entry = "resize2d", .inputs = {rows({3, 4, 2})}, .attributes = {{"size", Ints{5, 3}}}},
  };
}

/// What needs all rows of a step at once, and is no sum.
Cases functions_over_rows() {
  Cases cases = {
      {.entry = "logsumexp", .inputs = {rows({3})}, .attributes = {{"axes", Ints{0}}}},
      {.entry = "norm", .inputs = {rows({3})}, .attributes = {{"order", text("infinity")}, {"axes", Ints{0}}}},
  };
  for (EntryCase &one : cases)
    one.in_pieces = kInPieces;
  // Of sums.
  append(cases, {{.entry = "l2_normalize",
                  .inputs = {rows({3})},
                  .attributes = {{"axes", Ints{0}}},
                  .in_micro_batches = kInPieces},
                 {.entry = "scatter_add", .inputs = {weights({5, 3}), numbers(5, {}), rows({3})}}});
  return cases;
}

}  // namespace

Cases function_cases() {
  Cases cases;
  for (const auto &list : {elementwise_functions, reduction_functions, shape_functions, scatter_functions,
                           product_functions, functions_over_rows})
    append(cases, list());
  return cases;
}

}  // namespace tutti::testing::entries
