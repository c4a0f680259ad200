// SPDX-License-Identifier: BSD-3-Clause
// Ends the process when an allocation fails in the middle of a call. The other PEs may depend on the call, which cannot
// be taken back: they find the process dead. A step of a start is different: it reports its failure to the other PEs.
#pragma once

#include <new>
#include <type_traits>
#include <utility>

namespace npushmem {

inline constexpr const char* no_private_memory =
    "this process cannot allocate private memory (is it limited? ulimit -v)";

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
