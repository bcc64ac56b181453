// SPDX-License-Identifier: Apache-2.0
//
// What the generated table of entries (generate_table.py) is written with: a call for each part of an entry, which
// takes less code than lists of objects would.
//
//   table.entry("layer_dense", 1, "A fully connected layer ...", false, &expand_layer_dense);
//   table.input("x", graph::DTypeClass::any);
//   table.integer("units", "number of results", {.minimum = 1});
//   table.number("kernel_l1", 0, "times the sum of |w| ...", {.minimum = 0});
//
// Texts are literals: the table refers to them. Threads: none, it is made once.
#ifndef TUTTI_NN_DEFINITION_TABLE_H_
#define TUTTI_NN_DEFINITION_TABLE_H_

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "nn/registry.h"

namespace tutti::impl::nn {

struct AttributeBounds {
  double minimum = -std::numeric_limits<double>::infinity(), maximum = std::numeric_limits<double>::infinity();
  bool excludes_minimum = false, excludes_maximum = false;
  int64_t length = -1;  ///< of a list; -1 = any
};

class DefinitionTable {
 public:
  /// What follows belongs to this entry, up to the next one.
  void entry(const char *name, int32_t revision, const char *doc, bool is_function, ExpandFunction expand);
  void input(const char *name, graph::DTypeClass dtype_class, char match = 0, bool optional = false,
             bool variadic = false, int32_t minimum_count = 0);
  // ---- attributes: without a default they are required ----
  void required(const char *name, graph::AttributeType type, const char *doc, const AttributeBounds &bounds = {});
  void boolean(const char *name, bool value, const char *doc);
  void integer(const char *name, int64_t value, const char *doc, const AttributeBounds &bounds = {});
  void number(const char *name, double value, const char *doc, const AttributeBounds &bounds = {});
  void text(const char *name, const char *value, const char *doc);
  /// `choices` of an enumeration, also of a required one: separated by commas. `value`: null where it is required.
  void choice(const char *name, const char *choices, const char *value, const char *doc);
  /// `values` of a list: numbers separated by commas.
  void integers(const char *name, const char *values, const char *doc, const AttributeBounds &bounds = {});
  void numbers(const char *name, const char *values, const char *doc, const AttributeBounds &bounds = {});

  std::vector<Definition> take() { return std::move(entries_); }

 private:
  graph::AttributeDefinition &add(const char *name, graph::AttributeType type, const char *doc,
                                  const AttributeBounds &bounds);

  std::vector<Definition> entries_;
};

}  // namespace tutti::impl::nn

#endif  // TUTTI_NN_DEFINITION_TABLE_H_
