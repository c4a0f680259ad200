// SPDX-License-Identifier: BSD-3-Clause
// The common part of the data functions: from the arguments to an address, or, out of line, to a transport or an error.
#pragma once

#include <cstdint>
#include <limits>

#include "core/api/library.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/remote/remote_access.hpp"
#include "core/team/team.hpp"
#include "npushmem.h"

namespace npushmem::api {

// The additional checks of NPUSHMEM_CHECK=1. The contexts' maps are empty then, so that every data operation takes its
// slow path, which calls these checks; fast paths need no code for them.

// Removes the mapped PEs from a context's map if calls are checked.
void disable_fast_paths(const Runtime& runtime, FastMap& map);

// Checks that these bytes of the symmetric heap belong to one allocated object. `pe` is the PE of the access, for the
// message.
Status check_allocated(const Runtime& runtime, const char* what, const void* object, std::uint64_t bytes, int pe);

// Checks that source and dest on the same PE do not overlap.
Status check_no_overlap(const Runtime& runtime, const void* dest, std::uint64_t dest_bytes, const void* source,
                        std::uint64_t source_bytes);

// The arguments of a collective call that must be equal on all members of a team, besides the function.
struct Call {
    std::uint64_t count = 0;
    std::int64_t root = 0;
    std::int64_t dst = 0;
    std::int64_t sst = 0;
    std::uint64_t dest = 0;  // offsets; compared if the count is not 0
    std::uint64_t source = 0;
    bool counts_differ = false;
};
// Checks that all members make the same call; collective over the team, if calls are checked. `own` is the result of
// this PE's argument checks, which is returned unless another member has a more precise failure.
Status check_same_call(Team& team, const char* function, const Call& call = {}, const Status& own = {});

// Runs `body`, which returns a Status, as a collective call of the team: reports of long waits name the call, and with
// NPUSHMEM_CHECK the members first compare their calls.
template <class Body>
Status run_same_call(const Runtime& up, Team& team, const char* function, Body&& body) try {
    const CollectiveCall in_progress(team.calls(), function);
    if (!up.settings().check) [[likely]]
        return body();
    Status same = check_same_call(team, function);
    return same.ok() ? body() : same;
} catch (const std::bad_alloc&) {
    end_without_memory(function);
}

// The slow paths, for all calls that the fast path rejects. Each function checks its arguments, tries the mapped path
// of PEs that the fast map does not contain, and otherwise uses the transport. Failures are reported under the name of
// `function`. `deferred`: completed by quiet. The first four arguments are in the registers in which the callers of put
// and get left them; all arguments are in registers.
void put_slow_path(void* dest, const void* source, std::uint64_t bytes, int pe, const char* function,
                   const Context& context);
void put_nbi_slow_path(void* dest, const void* source, std::uint64_t bytes, int pe, const char* function,
                       const Context& context);
void get_slow_path(void* dest, const void* source, std::uint64_t bytes, int pe, const char* function,
                   const Context& context);
void get_nbi_slow_path(void* dest, const void* source, std::uint64_t bytes, int pe, const char* function,
                       const Context& context);
// Strided blocks with checked arguments, as blocking puts and gets; the functions fill in the offset. Strides are in
// bytes.
void put_blocks_slow_path(const Context& context, const char* function, void* dest, const void* source,
                          StridedBlocks blocks, int pe);
void get_blocks_slow_path(const Context& context, const char* function, void* dest, const void* source,
                          StridedBlocks blocks, int pe);
void put_signal_slow_path(const Context& context, const char* function, void* dest, const void* source,
                          std::uint64_t bytes, std::uint64_t* signal_word, std::uint64_t signal, int operation, int pe,
                          bool deferred);
// `op`: the functions fill in pe, offset and remote. Returns false if it failed.
bool atomic_slow_path(const Context& context, const char* function, const void* object, npushmem_atomic op, int pe,
                      bool deferred);

// For a writer, after its store into the slice of a mapped PE while a PE of the host sleeps: wakes the PE if it awaits
// these bytes.
void wake_pe(std::byte* slice, const void* target, std::uint64_t bytes);

// An element of the untyped forms.
template <std::size_t Bytes>
struct Block {
    std::byte bytes[Bytes];
};

// Returns the number of bytes. An overflow becomes a number that no heap holds, so that one check finds both errors.
inline std::uint64_t byte_count(std::size_t count, std::size_t size) {
    std::uint64_t bytes = 0;
    return __builtin_mul_overflow(count, size, &bytes) ? std::numeric_limits<std::uint64_t>::max() : bytes;
}

// Returns the world PE of the context's PE `pe`; Code::range if it does not exist.
Result<int> world_pe(const Context& context, int pe);

// Checks the argument for this object and world PE. Slow paths and functions without a fast path use it.
Status check_object(const Runtime& runtime, const char* what, const void* object, std::uint64_t bytes, int pe);
// The same for an object that is used on all PEs.
Status check_object_on_all_pes(const Runtime& runtime, const char* what, const void* object, std::uint64_t bytes);

}  // namespace npushmem::api
