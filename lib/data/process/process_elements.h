// SPDX-License-Identifier: Apache-2.0
//
// Elements and their specs in the messages between a process and its worker processes, whose forms
// <tutti/map_process.h> lists. Whoever receives an element checks it against the spec, and each size before it takes
// memory for it.
//
// Threads: functions without state.
#ifndef TUTTI_DATA_PROCESS_PROCESS_ELEMENTS_H_
#define TUTTI_DATA_PROCESS_PROCESS_ELEMENTS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "data/element/element.h"
#include "data/process/process_channel.h"

namespace tutti::impl::data {

/// The number of these forms.
inline constexpr int64_t kProcessProtocol = 1;
/// No tensor of a message has more bytes.
inline constexpr int64_t kMostTensorBytes = int64_t{1} << 36;

/// The first message: what the elements are that a worker gets, and those that it gives.
std::string greeting(const ElementSpec &inputs, const ElementSpec &outputs, int64_t seed);
/// Of such a message the specs under "inputs" and "outputs"; dimensions that it does not tell are unknown.
base::Result<ElementSpec> spec_in(const base::Json &greeting, std::string_view key);

/// Sends an element that fits the spec, under the number and the pass of its lineage.
base::Status send_element(ProcessChannel &channel, const ElementSpec &spec, const Element &element);
/// Sends the error of an element, or, without one, of a worker that cannot begin.
base::Status send_error(ProcessChannel &channel, const base::Status &error, const Lineage *lineage);
/// The error in a message, wherever it says that one has come; ok else.
base::Status error_in(const base::Json &header);

/// The lineage in the header of an element's message.
base::Result<Lineage> lineage_in(const base::Json &header);
/// Reads the tensors that the header announces. DATA_LOSS names the component, what was expected and what came.
base::Status receive_tensors(ProcessChannel &channel, const base::Json &header, const ElementSpec &spec,
                             Element &element);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PROCESS_PROCESS_ELEMENTS_H_
