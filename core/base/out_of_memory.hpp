// SPDX-License-Identifier: BSD-3-Clause
// What a failed allocation does in the middle of a call. The other PEs may depend on the call, which cannot be taken
// back: so the process ends with a message, and they find it dead. A start is different: it reports the failure to
// them.
#pragma once

#include <new>
#include <type_traits>
#include <utility>

namespace npushmem {

// Ends the process with status 1. The message names the call. Allocates nothing.
[[noreturn]] void end_without_memory(const char* call) noexcept;

// Runs `body` as a part of the call. std::bad_alloc from it ends the process.
template <class Body>
[[gnu::always_inline]] inline std::invoke_result_t<Body> end_on_bad_alloc(const char* call, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const std::bad_alloc&) {
        end_without_memory(call);
    }
}

}  // namespace npushmem
