// SPDX-License-Identifier: Apache-2.0
#include "monitor/event_messages.h"

#include "base/text.h"

namespace tutti::impl::monitor::message {

std::string as_utf8(std::string_view text) {
  std::string all;
  for (;;) {
    const size_t good = base::well_formed_prefix(text);
    all.append(text.substr(0, good));
    if (good == text.size()) return all;
    all.append("\xef\xbf\xbd");
    text.remove_prefix(good + 1);
  }
}

}  // namespace tutti::impl::monitor::message
