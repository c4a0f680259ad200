// SPDX-License-Identifier: BSD-3-Clause
// Defines the functions of one family under their exported names: each row of the family's table becomes a call of the
// template of the same name in npushmem::api, with the context, the exported name for reports, and the arguments.
//     #define NPUSHMEM_ONLY "npushmem/functions/rma.h"
//     #include "core/api/definitions.hpp"
// Included once by each family's file, after its templates. NPUSHMEM_NAME selects the prefix: npushmem_ unless the
// including file defines it.
#ifndef NPUSHMEM_NAME
#define NPUSHMEM_NAME(NAME) npushmem_##NAME
#endif
#define NPUSHMEM_UNWRAP(...) __VA_ARGS__
// The form with a context: `CALL` if the handle names one, otherwise a call out of line.
#define NPUSHMEM_ON_CONTEXT(CALL, ARGS)                                                           \
    const char* const name = __func__;                                                            \
    if (const npushmem::api::Context* const known = npushmem::api::known_context(ctx)) [[likely]] \
        return CALL(*known, name, NPUSHMEM_UNWRAP ARGS);                                          \
    return [=]() __attribute__((noinline, cold)) {                                                \
        return CALL(npushmem::api::unknown_context(ctx), name, NPUSHMEM_UNWRAP ARGS);             \
    }                                                                                             \
    ();
#define NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, RET, ARGS, ...)                                              \
    RET NPUSHMEM_NAME(NAME##_##OP)(__VA_ARGS__) {                                                       \
        return npushmem::api::OP<TYPE>(npushmem::api::default_context, __func__, NPUSHMEM_UNWRAP ARGS); \
    }                                                                                                   \
    RET NPUSHMEM_NAME(ctx_##NAME##_##OP)(npushmem_ctx_t ctx, __VA_ARGS__) {                             \
        NPUSHMEM_ON_CONTEXT(npushmem::api::OP<TYPE>, ARGS)                                              \
    }
#define NPUSHMEM_SIZED_CTX(BITS, BYTES, PRE, POST, RET, ARGS, ...)                                             \
    RET npushmem_##PRE##BITS##POST(__VA_ARGS__) {                                                              \
        return npushmem::api::PRE##POST<npushmem::api::Block<BYTES>>(npushmem::api::default_context, __func__, \
                                                                     NPUSHMEM_UNWRAP ARGS);                    \
    }                                                                                                          \
    RET npushmem_ctx_##PRE##BITS##POST(npushmem_ctx_t ctx, __VA_ARGS__) {                                      \
        NPUSHMEM_ON_CONTEXT(npushmem::api::PRE##POST<npushmem::api::Block<BYTES>>, ARGS)                       \
    }
#define NPUSHMEM_UNTYPED_CTX(OP, RET, ARGS, ...)                                                  \
    RET npushmem_##OP(__VA_ARGS__) {                                                              \
        return npushmem::api::OP(npushmem::api::default_context, __func__, NPUSHMEM_UNWRAP ARGS); \
    }                                                                                             \
    RET npushmem_ctx_##OP(npushmem_ctx_t ctx, __VA_ARGS__) { NPUSHMEM_ON_CONTEXT(npushmem::api::OP, ARGS) }
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) \
    RET NPUSHMEM_NAME(NAME##_##OP)(__VA_ARGS__) { return npushmem::api::OP<TYPE>(__func__, NPUSHMEM_UNWRAP ARGS); }
#define NPUSHMEM_SIZED(BITS, BYTES, PRE, POST, RET, ARGS, ...)                                        \
    RET NPUSHMEM_NAME(PRE##BITS##POST)(__VA_ARGS__) {                                                 \
        return npushmem::api::PRE##POST<npushmem::api::Block<BYTES>>(__func__, NPUSHMEM_UNWRAP ARGS); \
    }
#define NPUSHMEM_OLD_REDUCTION(NAME, TYPE, OP, ARGS, ...)                 \
    void npushmem_##NAME##_##OP##_to_all(__VA_ARGS__) {                   \
        npushmem::api::OP##_to_all<TYPE>(__func__, NPUSHMEM_UNWRAP ARGS); \
    }
#define NPUSHMEM_OLD_ATOMIC(NAME, TYPE, OP, NEW, RET, ARGS, ...) \
    RET npushmem_##NAME##_##OP(__VA_ARGS__) { return npushmem_##NAME##_##NEW ARGS; }
#define NPUSHMEM_OLD_WAIT(NAME, TYPE, OP, RET, ARGS, ...) \
    RET npushmem_##NAME##_##OP(__VA_ARGS__) { return npushmem::api::OP<TYPE>(__func__, NPUSHMEM_UNWRAP ARGS); }
extern "C" {
#include "npushmem/functions.h"
}
#undef NPUSHMEM_NAME
#undef NPUSHMEM_ON_CONTEXT
#undef NPUSHMEM_UNWRAP
