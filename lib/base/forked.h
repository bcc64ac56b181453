// SPDX-License-Identifier: Apache-2.0
//
// Whether this process was forked from one that used the library: for what must do nothing then, and say nothing.
// check_not_forked() (thread.h) is for calls that tell.
//
// Threads: any; allocates nothing.
#ifndef TUTTI_BASE_FORKED_H_
#define TUTTI_BASE_FORKED_H_

namespace tutti::impl::base {

/// From the first call on remembers the process.
bool is_forked() noexcept;

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_FORKED_H_
