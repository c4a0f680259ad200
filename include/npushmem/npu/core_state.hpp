// SPDX-License-Identifier: BSD-3-Clause
// The data members of a Core. For the library only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "npushmem/npu/compare.hpp"
#include "npushmem/npu/export.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/hazard.hpp"
#include "npushmem/npu/source_location.hpp"
#include "npushmem/npu/vector_ops.hpp"
#include "npushmem/npu/wait_policy.hpp"

namespace npushmem::npu {

class CoreHooks;

// Receives one line per call, including the newline. The threads that run cores call it.
using Print = std::function<void(std::string_view line)>;

namespace detail {

class CoreContext;
using Where = SourceLocation;

struct CorePosition {
    int block = 0;
    int blocks = 1;
    int sub_core = 0;
    int sub_cores = 1;
};

struct UbRegion {
    std::byte* base = nullptr;
    std::size_t bytes = 0;     // bytes that kernels may allocate
    std::size_t reserved = 0;  // bytes above them, reserved for the library
};

struct CoreState {
    CorePosition position;
    UbRegion ub;
    Window window;
    int my_pe = 0;
    int n_pes = 1;
    const Fabric* fabric = nullptr;
    RemoteOperations* unmapped = nullptr;  // null: every PE is mapped or unreachable
    CoreContext* context = nullptr;        // null only in tests whose operations never wait
    CoreHooks* hooks = nullptr;
    const Print* print = nullptr;  // null or empty: standard output
};

// The condition on a 64-bit word that a core waits for, and the PE whose store is expected.
struct Condition {
    const std::uint64_t* word;
    Compare compare;
    std::uint64_t value;
    Awaited from;
};

// Combines the data of a copy out of UB with the contents of GM.
using Accumulate = void (*)(void* target, const void* source, std::size_t bytes);

// All throw KernelError with the operation, the values, the rule, and the source line of the kernel.
[[noreturn]] NPUSHMEM_NPU_EXPORT void fail_plain_copy(const char* operation, const void* ub, const void* gm,
                                                      std::size_t element, std::size_t count, std::size_t ub_room,
                                                      std::size_t gm_room, const Where& where);
[[noreturn]] NPUSHMEM_NPU_EXPORT void fail_shape(Hazard hazard, const char* operation, const char* rule,
                                                 std::size_t value, const Where& where);
[[noreturn]] NPUSHMEM_NPU_EXPORT void fail_vector(const char* operation, std::uintptr_t addresses, std::size_t count,
                                                  std::size_t room, const Where& where);
[[noreturn]] NPUSHMEM_NPU_EXPORT void fail_flag(const char* operation, int id, const Where& where);
[[noreturn]] NPUSHMEM_NPU_EXPORT void fail_scalar(const char* operation, const void* address, std::size_t size,
                                                  const Where& where);
[[noreturn]] NPUSHMEM_NPU_EXPORT void fail_ub(std::size_t wanted, std::size_t offset, const UbRegion& ub,
                                              const Where& where);
[[noreturn]] NPUSHMEM_NPU_EXPORT void fail_argument(Hazard hazard, const char* operation, const char* rule,
                                                    const Where& where);

}  // namespace detail
}  // namespace npushmem::npu
