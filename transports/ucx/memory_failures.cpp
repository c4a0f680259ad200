// SPDX-License-Identifier: BSD-3-Clause
#include "transports/ucx/memory_failures.hpp"

#include <ucs/debug/log_def.h>

#include <cstdarg>
#include <string_view>

namespace npushmem::ucx {
namespace {

thread_local MemoryFailures* counted = nullptr;

// mpool.c: "Failed to allocate memory pool (name=%s) chunk: %s"; tcp_ep.c: "... unable to get a buffer from %p memory
// pool".
ucs_log_func_rc_t count(const char* /*file*/, unsigned /*line*/, const char* /*function*/, ucs_log_level_t level,
                        const ucs_log_component_config_t* /*component*/, const char* message, va_list /*arguments*/) {
    const bool is_failure = counted != nullptr && level <= UCS_LOG_LEVEL_WARN &&
                            std::string_view(message).find("memory pool") != std::string_view::npos;
    return is_failure && !counted->add() ? UCS_LOG_FUNC_RC_STOP : UCS_LOG_FUNC_RC_CONTINUE;
}

}  // namespace

MemoryFailures::Counting::Counting(MemoryFailures& failures) {
    // For ever: this library stays mapped, and handlers can only be removed in reverse order.
    [[maybe_unused]] static const bool added = (ucs_log_push_handler(&count), true);
    counted = &failures;
}

MemoryFailures::Counting::~Counting() { counted = nullptr; }

}  // namespace npushmem::ucx
