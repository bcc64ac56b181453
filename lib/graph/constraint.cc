// SPDX-License-Identifier: Apache-2.0
#include "graph/constraint.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/name_suggestions.h"
#include "base/text.h"

namespace tutti::impl::graph {
namespace {

template <typename T>
bool read(std::string_view text, T &number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// "0 1"
bool read_axes(std::string_view text, std::vector<int64_t> &axes) {
  for (text = base::trim(text); !text.empty(); text = base::trim(text)) {
    const size_t end = std::min(text.find(' '), text.size());
    int64_t axis = 0;
    if (!read(text.substr(0, end), axis)) return false;
    axes.push_back(axis);
    text.remove_prefix(end);
  }
  return !axes.empty();
}

/// "3", "limit=3" or "axes=0 1".
bool read_argument(std::string_view text, bool is_first, ConstraintSpec &constraint) {
  const size_t equals = text.find('=');
  const std::string_view name = equals == std::string_view::npos ? "" : base::trim(text.substr(0, equals));
  const std::string_view value = equals == std::string_view::npos ? text : base::trim(text.substr(equals + 1));
  if (name == "axes") return constraint.axes.empty() && read_axes(value, constraint.axes);
  const bool is_limit = name == "limit" || (equals == std::string_view::npos && is_first);
  return is_limit && constraint.kind == "max_norm" && read(value, constraint.limit) &&
         std::isfinite(constraint.limit) && constraint.limit > 0;
}

std::string constraint_usage(std::string_view kind) {
  if (kind == "max_norm") return "max_norm(limit, axes), with a limit above 0 and axes such as 0 1";
  return kind == "unit_norm" ? "unit_norm(axes), with axes such as 0 1" : "non_negative without arguments";
}

bool read_arguments(std::string_view text, ConstraintSpec &constraint) {
  text = base::trim(text);
  if (text.empty() || text.back() != ')' || constraint.kind == "non_negative") return false;
  text = base::trim(text.substr(0, text.size() - 1));
  for (bool is_first = true; !text.empty(); is_first = false) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma + 1 == text.size() || !read_argument(base::trim(text.substr(0, comma)), is_first, constraint))
      return false;
    text = base::trim(text.substr(std::min(comma + 1, text.size())));
  }
  return true;
}

}  // namespace

const std::vector<std::string> &constraint_names() {
  static const auto *const names = new std::vector<std::string>{"max_norm", "unit_norm", "non_negative"};
  return *names;
}

base::Result<ConstraintSpec> parse_constraint(std::string_view text) {
  ConstraintSpec constraint;
  const size_t open = text.find('(');
  constraint.kind = base::trim(text.substr(0, open));
  if (constraint.kind == "none" && open == std::string_view::npos) return ConstraintSpec();
  if (std::ranges::find(constraint_names(), constraint.kind) == constraint_names().end()) {
    return base::invalid_argument("unknown constraint ", base::quoted(std::string(text)),
                                  base::but_there_are(constraint.kind, constraint_names()));
  }
  if (open == std::string_view::npos || read_arguments(text.substr(open + 1), constraint)) return constraint;
  return base::invalid_argument("constraint ", base::quoted(std::string(text)), ": expected ",
                                constraint_usage(constraint.kind));
}

base::Result<ConstraintSpec> settle_axes(ConstraintSpec constraint, size_t rank) {
  if (!constraint.has_norms()) return constraint;
  if (!(constraint.limit > 0) || !std::isfinite(constraint.limit))
    return base::invalid_argument("constraint '", constraint.kind, "': the limit is ", constraint.limit,
                                  ", expected a ", "finite number above 0");
  const auto count = static_cast<int64_t>(rank);
  const std::vector<int64_t> given = std::move(constraint.axes);
  constraint.axes.clear();
  for (int64_t axis = 0; given.empty() && axis < std::max<int64_t>(count - 1, std::min<int64_t>(count, 1)); ++axis)
    constraint.axes.push_back(axis);
  for (const int64_t axis : given) {
    const int64_t counted = axis < 0 ? axis + count : axis;
    if (counted < 0 || counted >= count || std::ranges::find(constraint.axes, counted) != constraint.axes.end()) {
      return base::invalid_argument("constraint '", constraint.kind, "': axis ", axis, " of a variable with ", rank,
                                    " axes, expected different ones from ", -count, " to ", count - 1);
    }
    constraint.axes.push_back(counted);
  }
  std::ranges::sort(constraint.axes);
  return constraint;
}

}  // namespace tutti::impl::graph
