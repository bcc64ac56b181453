// SPDX-License-Identifier: Apache-2.0
//
// What an in-tree plug-in and the library must have in common. Its source is made from build_id.cc.in and holds nothing
// else: nothing else is compiled anew when it changes.
#ifndef TUTTI_BACKEND_BUILD_ID_H_
#define TUTTI_BACKEND_BUILD_ID_H_

namespace tutti::impl::backend {

extern const char kBuildId[];

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_BUILD_ID_H_
