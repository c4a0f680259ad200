// What NPUSHMEM_CHECK=1 looks at besides. The contexts' maps are empty then, so that every data operation takes its
// slow path, where these are called; without it nothing on a fast path knows of them.
#pragma once

#include <cstdint>

#include "core/api/library.hpp"
#include "core/team/team.hpp"

namespace npushmem::api {

// Takes the mapped PEs out of a context's map where calls are to be checked.
void disable_fast_paths(const Runtime& runtime, FastMap& map);

// Do these bytes of the symmetric heap belong to one object that lives? `pe`: where they are used, for the message.
Status check_allocated(const Runtime& runtime, const char* what, const void* object, std::uint64_t bytes, int pe);

// Source and dest on the same PE must not overlap.
Status check_no_overlap(const Runtime& runtime, const void* dest, std::uint64_t dest_bytes, const void* source,
                        std::uint64_t source_bytes);

// What the members of a team must give alike to a collective call, besides its function.
struct Call {
    std::uint64_t count = 0;
    std::int64_t root = 0;
    std::int64_t dst = 0;
    std::int64_t sst = 0;
    std::uint64_t dest = 0;  // offsets; looked at where the count is not 0
    std::uint64_t source = 0;
    bool counts_differ = false;
};
// Collective over the team, if calls are checked: do all members make this call? `own`: what this PE has found about
// its own arguments, which is returned unless another member has a better reason.
Status check_same_call(Team& team, const char* function, const Call& call = {}, const Status& own = {});

}  // namespace npushmem::api
