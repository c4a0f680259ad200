// SPDX-License-Identifier: BSD-3-Clause
// Turns an allocation that the host refuses into a failure of the call that made it.
#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Runs `body` and returns its Status or Result; Code::memory if it throws std::bad_alloc.
template <class Body>
std::invoke_result_t<Body> guarded(Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const std::bad_alloc&) {
        return Status{Code::memory, "this process cannot allocate private memory (is it limited? ulimit -v)"};
    }
}

}  // namespace npushmem
