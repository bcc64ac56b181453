// SPDX-License-Identifier: Apache-2.0
//
// Precompiled for the libraries of many sources, which takes nearly half off the time to build them: what most of
// them include of the standard library. Every source still includes what it uses; -Db_pch=false builds without it.
#ifndef TUTTI_BASE_PCH_STANDARD_LIBRARY_H_
#define TUTTI_BASE_PCH_STANDARD_LIBRARY_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#endif  // TUTTI_BASE_PCH_STANDARD_LIBRARY_H_
