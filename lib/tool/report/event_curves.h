// SPDX-License-Identifier: Apache-2.0
//
// The curves in the event files of a folder: numbers by step, as TensorBoard shows them.
#ifndef TUTTI_TOOL_REPORT_EVENT_CURVES_H_
#define TUTTI_TOOL_REPORT_EVENT_CURVES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tutti::tool {

struct CurvePoint {
  int64_t step = 0;
  double time = 0;  ///< seconds since 1970
  float value = 0;
};

/// By tag. Steps need not be in order: evaluations may be of older weights.
using Curves = std::map<std::string, std::vector<CurvePoint>>;

struct EventCurves {
  Curves curves;
  int64_t files = 0;
  /// What could not be read, a sentence for each.
  std::vector<std::string> damages;
};

/// Of all event files in the folder, in the order of their names. A training that goes on from a checkpoint says where:
/// what was there of later steps is left out. A file is read up to what is damaged, or was not written to its end.
EventCurves read_event_curves(const std::string &folder);

/// At most about `most` points of a curve, in order: of each part of equal length the first, the least, the greatest,
/// and the first that is no number. A short curve stays as it is.
std::vector<CurvePoint> thinned(const std::vector<CurvePoint> &curve, size_t most);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_REPORT_EVENT_CURVES_H_
