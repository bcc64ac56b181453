// SPDX-License-Identifier: Apache-2.0
//
// How the components of a data element become the inputs of a model: by name. Internal to this folder; immutable.
#ifndef TUTTI_DISTRIBUTE_INPUT_INPUT_BINDING_H_
#define TUTTI_DISTRIBUTE_INPUT_INPUT_BINDING_H_

#include <string>
#include <vector>

#include "backend/executable.h"
#include "base/status.h"
#include "data/element/element.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

/// Splits rows so that sizes differ by at most one, larger shares first: [begin, end) of share `index`.
struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t rows() const { return end - begin; }
};
RowRange share_of_rows(int64_t rows, int32_t index, int32_t count);

class InputBinding {
 public:
  /// `inputs`: the model's features, and labels unless it only predicts. INVALID_ARGUMENT naming an input that has no
  /// component of its name, dtype and rank.
  static base::Result<InputBinding> make(const std::vector<graph::InputSpec> &inputs, const data::ElementSpec &spec);

  /// Different for every binding made; tells a new one from an old one at the same address.
  int64_t number() const { return number_; }

  /// Rows of an element: INVALID_ARGUMENT when its components disagree among themselves or with the model, whose
  /// symbols each stand for one number.
  base::Result<int64_t> check(const data::Element &element) const;

  /// Symbols of the model's inputs; "batch" is the first.
  const std::vector<std::string> &symbols() const { return symbols_; }
  /// Their values for `rows` rows of the element, in that order, without allocation once `key` has the capacity.
  void fill_key(const data::Element &element, int64_t rows, std::vector<int64_t> &key) const;
  graph::SymbolBindings bindings(const std::vector<int64_t> &key) const;

  /// Positions of the components that the model takes, each once.
  const std::vector<int32_t> &components() const { return components_; }
  /// Position of the component that an input of the model takes; -1 if it has none of this name.
  int32_t component_of(std::string_view input) const;
  /// Positions of the components in the order of a program's inputs.
  base::Result<std::vector<int32_t>> components_of(const backend::ExecutableDescription &description) const;
  /// First byte of row `row` of a component.
  static const void *row_pointer(const data::Element &element, int32_t component, int64_t row);

 private:
  struct Input {
    std::string name;
    int32_t component = 0;
    graph::Dims dims;
    std::vector<int32_t> symbols;  // of each dimension, as a position in symbols_; -1 = it is none
  };
  struct SymbolPlace {
    int32_t component = 0, axis = 0;
  };

  base::Status misfit(const Input &input, int64_t rows, const tensor::Tensor &tensor) const;
  base::Result<bool> fits(const Input &input, const data::Element &element, int64_t rows) const;

  int64_t number_ = -1;
  std::vector<Input> inputs_;
  std::vector<int32_t> components_;
  std::vector<std::string> symbols_{std::string(graph::kBatchSymbol)};
  std::vector<SymbolPlace> places_{{0, 0}};  // where the value of each symbol is found
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_INPUT_INPUT_BINDING_H_
