// What the data functions share: from the arguments to an address, or, out of line, to a transport or an error.
#pragma once

#include <cstdint>
#include <limits>

#include "core/api/library.hpp"
#include "core/ops/remote_access.hpp"
#include "npushmem.h"

namespace npushmem::api {

// Everything that the fast path refuses. Each function checks its arguments, tries the mapped path of PEs that the
// fast map does not hold, and else goes through the transport; failures are reported under the name of `function`.
// `deferred`: completed by quiet. The first four arguments are in the registers in which the callers of put and get
// left them, and all of them in registers.
void put_slow_path(void* dest, const void* source, std::uint64_t bytes, int pe, const char* function,
                   const Context& context);
void put_nbi_slow_path(void* dest, const void* source, std::uint64_t bytes, int pe, const char* function,
                       const Context& context);
void get_slow_path(void* dest, const void* source, std::uint64_t bytes, int pe, const char* function,
                   const Context& context);
void get_nbi_slow_path(void* dest, const void* source, std::uint64_t bytes, int pe, const char* function,
                       const Context& context);
// Strided blocks whose arguments have been checked, as blocking puts and gets; offset: filled in here. Strides are in
// bytes.
void put_blocks_slow_path(const Context& context, const char* function, void* dest, const void* source,
                          StridedBlocks blocks, int pe);
void get_blocks_slow_path(const Context& context, const char* function, void* dest, const void* source,
                          StridedBlocks blocks, int pe);
void put_signal_slow_path(const Context& context, const char* function, void* dest, const void* source,
                          std::uint64_t bytes, std::uint64_t* signal_word, std::uint64_t signal, int operation, int pe,
                          bool deferred);
// op: all but pe, offset and remote filled in.
void atomic_slow_path(const Context& context, const char* function, const void* object, npushmem_atomic op, int pe,
                      bool deferred);

// A count that overflows becomes a number of bytes that no heap holds, so that one check finds both mistakes.
inline std::uint64_t byte_count(std::size_t count, std::size_t size) {
    std::uint64_t bytes = 0;
    return __builtin_mul_overflow(count, size, &bytes) ? std::numeric_limits<std::uint64_t>::max() : bytes;
}

// The world's number of the context's PE `pe`; Code::range when it has none.
Result<int> world_pe(const Context& context, int pe);

// Is the argument's check for this object and world PE fine? Used by slow paths and by functions without a fast one.
Status check_object(const Runtime& runtime, const char* what, const void* object, std::uint64_t bytes, int pe);
// The same for an object that is used at all PEs.
Status check_object_on_all_pes(const Runtime& runtime, const char* what, const void* object, std::uint64_t bytes);

}  // namespace npushmem::api
