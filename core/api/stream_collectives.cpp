// SPDX-License-Identifier: BSD-3-Clause
// Collectives of every type in the order of a stream.
#include "core/api/collectives.hpp"
#include "core/api/stream_queue.hpp"
#include "npushmemx.h"

namespace npushmem::api {

namespace {

// The arguments of a collective without a root.
struct Arrays {
    npushmem_team_t team;
    void* dest;
    const void* source;
    std::size_t count;
};

// `by` is the size of an element.
using SizedCall = int (*)(const char*, const Result<Team*>&, void*, const void*, std::size_t, std::size_t by);
using ReduceCall = int (*)(const char*, const Result<Team*>&, void*, const void*, std::size_t, coll::ReduceOperation,
                           coll::ReduceElement);

int queue_sized(const char* function, npushmemx_stream_t stream, const Arrays& at, SizedCall call, std::size_t size) {
    return queue_collective(function, function, stream,
                            [=] { return call(function, team_of(at.team), at.dest, at.source, at.count, size); });
}

int queue_reduce(const char* function, npushmemx_stream_t stream, const Arrays& at, ReduceCall call,
                 coll::ReduceOperation operation, coll::ReduceElement element) {
    return queue_collective(function, function, stream, [=] {
        return call(function, team_of(at.team), at.dest, at.source, at.count, operation, element);
    });
}

int queue_broadcast(const char* function, npushmemx_stream_t stream, const Arrays& at, std::size_t size, int root) {
    return queue_collective(function, function, stream, [=] {
        return broadcast_any(function, team_of(at.team), at.dest, at.source, at.count, size, root, true);
    });
}

int alltoall_any(const char* function, const Result<Team*>& team, void* dest, const void* source, std::size_t count,
                 std::size_t size) {
    return alltoalls_any(function, team, dest, source, 1, 1, count, size);
}

}  // namespace

// The functions of the table, by their names there.
template <class T>
int broadcast_on_stream(const char* function, npushmem_team_t team, void* dest, const void* source, std::size_t count,
                        int root, npushmemx_stream_t stream) {
    return queue_broadcast(function, stream, {team, dest, source, count}, sizeof(T), root);
}

#define NPUSHMEM_COLLECTIVE(NAME, CALL)                                                                     \
    template <class T>                                                                                      \
    int NAME(const char* function, npushmem_team_t team, void* dest, const void* source, std::size_t count, \
             npushmemx_stream_t stream) {                                                                   \
        return queue_sized(function, stream, {team, dest, source, count}, CALL, sizeof(T));                 \
    }
NPUSHMEM_COLLECTIVE(collect_on_stream, collect_any)
NPUSHMEM_COLLECTIVE(fcollect_on_stream, fcollect_any)
NPUSHMEM_COLLECTIVE(alltoall_on_stream, alltoall_any)
#undef NPUSHMEM_COLLECTIVE

#define NPUSHMEM_REDUCE(NAME, CALL, OPERATION)                                                                     \
    template <class T>                                                                                             \
    int NAME(const char* function, npushmem_team_t team, T* dest, const T* source, std::size_t count,              \
             npushmemx_stream_t stream) {                                                                          \
        return queue_reduce(function, stream, {team, dest, source, count}, CALL, coll::ReduceOperation::OPERATION, \
                            element_of<T>());                                                                      \
    }
#define NPUSHMEM_BOTH(OP, OPERATION)                              \
    NPUSHMEM_REDUCE(OP##_reduce_on_stream, reduce_any, OPERATION) \
    NPUSHMEM_REDUCE(OP##_reducescatter_on_stream, reduce_scatter_any, OPERATION)
NPUSHMEM_BOTH(and, and_)
NPUSHMEM_BOTH(or, or_)
NPUSHMEM_BOTH(xor, xor_)
NPUSHMEM_BOTH(max, max)
NPUSHMEM_BOTH(min, min)
NPUSHMEM_BOTH(sum, sum)
NPUSHMEM_BOTH(prod, prod)
#undef NPUSHMEM_BOTH
#undef NPUSHMEM_REDUCE

}  // namespace npushmem::api

#define NPUSHMEM_ONLY "npushmem/functions/stream_collectives.h"
#define NPUSHMEM_NAME(NAME) npushmemx_##NAME
#include "core/api/definitions.hpp"
#define NPUSHMEM_HALF_TYPES
#define NPUSHMEM_NAME(NAME) npushmemx_##NAME
#include "core/api/definitions.hpp"
