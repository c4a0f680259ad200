// The additional checks of NPUSHMEM_CHECK=1. The contexts' maps are empty then, so that every data operation takes its
// slow path, which calls these checks; fast paths need no code for them.
#pragma once

#include <cstdint>

#include "core/api/library.hpp"
#include "core/team/team.hpp"

namespace npushmem::api {

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

}  // namespace npushmem::api
