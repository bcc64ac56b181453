// SPDX-License-Identifier: Apache-2.0
//
// Fields of the messages in profiles, as tsl/profiler/protobuf/xplane.proto numbers them. Times are picoseconds, those
// of lines nanoseconds since 1970.
//
// Internal to this folder.
#ifndef TUTTI_MONITOR_PROFILE_MESSAGES_H_
#define TUTTI_MONITOR_PROFILE_MESSAGES_H_

#include <protozero/types.hpp>

namespace tutti::impl::monitor::message {

enum class ProfileSpace : protozero::pbf_tag_type { plane = 1, host_name = 4 };
enum class ProfilePlane : protozero::pbf_tag_type { id = 1, name = 2, line = 3, event_metadata = 4, stat_metadata = 5 };
enum class ProfileLine : protozero::pbf_tag_type { id = 1, name = 2, timestamp_ns = 3, event = 4 };
enum class ProfileEvent : protozero::pbf_tag_type { metadata_id = 1, offset_ps = 2, duration_ps = 3, stat = 4 };
enum class ProfileStat : protozero::pbf_tag_type { metadata_id = 1, int64_value = 4, str_value = 5 };
/// Of events and of stats.
enum class ProfileMetadata : protozero::pbf_tag_type { id = 1, name = 2, display_name = 4 };

}  // namespace tutti::impl::monitor::message

#endif  // TUTTI_MONITOR_PROFILE_MESSAGES_H_
