// SPDX-License-Identifier: BSD-3-Clause
// Queues calls of the host in a stream: each is a launch of one block whose first core makes the call.
#pragma once

#include <utility>

#include "core/api/library.hpp"
#include "npushmem/npu/npu.hpp"
#include "npushmem/npu/source_location.hpp"
#include "npushmem/on_stream.h"

namespace npushmem::api {

// The queued calls have no source line in the program.
inline constexpr npu::SourceLocation no_line;

// Returns the stream of a handle; NULL is the default one.
Result<npu::Stream*> stream_of(npushmemx_stream_t handle);
Result<npu::Compare> compare_of(int comparison);

// Launches `operation` on one core. `blocks_thread`: it waits for other PEs without letting other launches run.
template <class Operation>
Status launch_call(const char* function, npushmemx_stream_t handle, Operation operation, bool blocks_thread = false) {
    const auto stream = stream_of(handle);
    if (!stream.ok()) return stream.status();
    npu::LaunchConfig config(1, no_line);
    config.name = function;
    config.blocks_thread = blocks_thread;
    return npu::launch(*stream.value(), config, [operation](npu::Core& core) {
        if (core.index() == 0) operation(core);
    });
}

// The same as the body of an API function.
template <class Operation>
int queue(const char* function, npushmemx_stream_t handle, Operation operation, bool blocks_thread = false) {
    return code_of_call(function, [&] { return launch_call(function, handle, operation, blocks_thread); });
}

// Launches `call`, a plain call on this thread's current world, whose failure is the last one of the launch's thread.
template <class Call>
int queue_call(const char* function, npushmemx_stream_t handle, Call call, bool blocks_thread = false) {
    const auto operation = [call, world = current_world](npu::Core&) {
        const CurrentWorld in_world(*world);
        clear_failure();
        call();
        if (!last_failure().ok()) throw npu::KernelError(last_failure());
    };
    return queue(function, handle, operation, blocks_thread);
}

// Fails the launch if a collective has returned a code.
void expect_success(const char* what, int code);

// Launches a collective that returns its failure, which it has reported.
template <class Call>
int queue_collective(const char* function, const char* plain, npushmemx_stream_t handle, Call call) {
    const auto operation = [plain, call, world = current_world](npu::Core&) {
        const CurrentWorld in_world(*world);
        clear_failure();
        expect_success(plain, call());
    };
    return queue(function, handle, operation, true);
}

}  // namespace npushmem::api
