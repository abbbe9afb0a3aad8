#pragma once
// Says whether this build has an address or thread sanitizer. Such a build is slow, and valgrind
// cannot run it.

#include "memsim/cxx20.hpp"

namespace redblue {

#if defined(__SANITIZE_ADDRESS__)  // g++
inline constexpr bool kSanitized = true;
inline constexpr bool kThreadSanitized = false;
#elif defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
inline constexpr bool kThreadSanitized = true;
#elif defined(__clang__)
inline constexpr bool kThreadSanitized = __has_feature(thread_sanitizer);
inline constexpr bool kSanitized = __has_feature(address_sanitizer) || kThreadSanitized;
#else
inline constexpr bool kSanitized = false;
inline constexpr bool kThreadSanitized = false;
#endif

}  // namespace redblue
