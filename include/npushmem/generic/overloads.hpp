// SPDX-License-Identifier: BSD-3-Clause
// The generic functions of OpenSHMEM for C++: overloads of shmem_<op> for every type that the compiler tells apart,
// with and without a context. Included by shmem.h.
#ifndef NPUSHMEM_GENERIC_OVERLOADS_HPP
#define NPUSHMEM_GENERIC_OVERLOADS_HPP

#define NPUSHMEM_UNWRAP(...) __VA_ARGS__
#define NPUSHMEM_DISTINCT_TYPES
#define NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, RET, ARGS, ...)                  \
    inline RET shmem_##OP(__VA_ARGS__) { return shmem_##NAME##_##OP ARGS; } \
    inline RET shmem_##OP(shmem_ctx_t ctx, __VA_ARGS__) { return shmem_ctx_##NAME##_##OP(ctx, NPUSHMEM_UNWRAP ARGS); }
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) \
    inline RET shmem_##OP(__VA_ARGS__) { return shmem_##NAME##_##OP ARGS; }
#define NPUSHMEM_UNTYPED_CTX(OP, RET, ARGS, ...) \
    inline RET shmem_##OP(shmem_ctx_t ctx, __VA_ARGS__) { return shmem_ctx_##OP(ctx, NPUSHMEM_UNWRAP ARGS); }
#define NPUSHMEM_OLD_ATOMIC(NAME, TYPE, OP, NEW, RET, ARGS, ...) \
    inline RET shmem_##OP(__VA_ARGS__) { return shmem_##NAME##_##OP ARGS; }
#include "npushmem/functions.h"
#undef NPUSHMEM_DISTINCT_TYPES
#undef NPUSHMEM_UNWRAP

inline int shmem_sync(shmem_team_t team) { return shmem_team_sync(team); }

#endif
