// One stack that can be switched to: a core's, or the thread's own.
#pragma once

#include <boost/context/fiber.hpp>

#include "core/npu/exception_state.hpp"
#include "core/npu/sanitizer_fiber.hpp"

namespace npushmem::npu::detail {

struct Context {
    // Where to continue; empty while it runs.
    boost::context::fiber handle;
    SanitizerFiber sanitizer;
};

}  // namespace npushmem::npu::detail
