// SPDX-License-Identifier: Apache-2.0
#include "monitor/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include "base/text.h"
#include "base/trace.h"
#include "data/format/record.h"
#include "monitor/event_messages.h"

namespace tutti::impl::monitor {

using base::Result;
using base::Status;
using protozero::pbf_builder;

namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr std::string_view kVersion = "brain.Event:2";

void begin_event(pbf_builder<message::Event> &event, int64_t time_ns, int64_t step) {
  event.add_double(message::Event::wall_time, static_cast<double>(time_ns) * 1e-9);
  if (step != 0) event.add_int64(message::Event::step, step);
}

// So that the name comes behind those that are there, in the order of their bytes.
int64_t seconds_behind(const std::vector<std::string> &names, int64_t seconds) {
  for (const std::string &name : names) {
    if (!name.starts_with(kPrefix)) continue;
    const std::string_view rest = std::string_view(name).substr(kPrefix.size());
    const auto other = base::parse_integer(rest.substr(0, rest.find('.')));
    if (other && *other >= seconds && *other < INT64_MAX) seconds = *other + 1;
  }
  return seconds;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "host";
  std::string host(name.data());
  std::replace(host.begin(), host.end(), '/', '_');
  return host;
}

int64_t wall_time_ns() { return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count(); }

Status EventFile::open() {
  static std::atomic<int64_t> last_number{0};
  TUTTI_TRY(base::make_directories(folder_));
  TUTTI_ASSIGN(const std::vector<std::string> names, base::list_directory(folder_));
  const int64_t now = wall_time_ns(), seconds = seconds_behind(names, now / 1'000'000'000);
  const std::string name = base::concat(kPrefix, seconds, ".", host_name(), ".", getpid(), ".", last_number++);
  TUTTI_ASSIGN(base::AppendFile file, base::AppendFile::open(base::concat(folder_, "/", name)));
  std::string version;
  {
    pbf_builder<message::Event> event(version);
    begin_event(event, now, 0);
    event.add_string(message::Event::file_version, kVersion.data(), kVersion.size());
  }
  std::string record;
  data::append_record(version, record);
  TUTTI_TRY(file.append(record));
  file_ = std::move(file);
  return Status();
}

Status EventFile::start(int64_t step) {
  message_.clear();
  {
    pbf_builder<message::Event> event(message_);
    begin_event(event, wall_time_ns(), step);
    pbf_builder<message::SessionLog> log(event, message::Event::session_log);
    log.add_enum(message::SessionLog::status, message::session_start);
  }
  return append_waiting();
}

Status EventFile::add(const Event &event) {
  message_.clear();
  {
    pbf_builder<message::Event> builder(message_);
    begin_event(builder, event.time_ns, event.step);
    builder.add_bytes(static_cast<message::Event>(event.kind), event.message.data(), event.message.size());
  }
  return append_waiting();
}

Status EventFile::append_waiting() {
  if (!waiting_.empty() && waiting_.size() + message_.size() > kMostWaiting) {
    if (has_failed_ && !is_due()) return Status();
    TUTTI_TRY(flush());
  }
  data::append_record(message_, waiting_);
  return flush_if_due();
}

bool EventFile::is_due() const {
  return flushed_ns_ == INT64_MIN || static_cast<double>(base::now_ns() - flushed_ns_) * 1e-9 >= flush_secs_;
}

Status EventFile::flush_if_due() { return !waiting_.empty() && is_due() ? flush() : Status(); }

Status EventFile::flush() {
  if (waiting_.empty()) return Status();
  flushed_ns_ = base::now_ns();
  has_failed_ = true;
  if (!file_) TUTTI_TRY(open());
  TUTTI_TRY(file_->append(waiting_));
  has_failed_ = false;
  waiting_.clear();
  return Status();
}

}  // namespace tutti::impl::monitor
