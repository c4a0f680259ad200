// SPDX-License-Identifier: BSD-3-Clause
// libnpushmem_openshmem: every function of OpenSHMEM under its own name, as a jump to the function of npushmem.
// Programs that use <shmem.h> link this library. libnpushmem itself has no name of OpenSHMEM, so that it can share a
// process with another OpenSHMEM. pshmem_<name> is the function, and shmem_<name> a weak alias that a profiling tool
// may replace.
#define NPUSHMEM_NO_GENERICS
#include "npushmem.h"
#include "shmem.h"

// The forwarders assume that the program's headers are the library's own.
#undef npushmem_init
#undef npushmem_init_thread
#define npushmem_init() npushmemx_openshmem_init()
#define npushmem_init_thread(requested, provided) npushmemx_openshmem_init_thread(requested, provided)

#define NPUSHMEM_UNWRAP(...) __VA_ARGS__
#define NPUSHMEM_FORWARD(NAME, RET, ARGS, ...)                      \
    RET pshmem_##NAME(__VA_ARGS__) { return npushmem_##NAME ARGS; } \
    [[gnu::weak, gnu::alias("pshmem_" #NAME)]] RET shmem_##NAME(__VA_ARGS__);
#define NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, RET, ARGS, ...) \
    NPUSHMEM_FORWARD(NAME##_##OP, RET, ARGS, __VA_ARGS__)  \
    NPUSHMEM_FORWARD(ctx_##NAME##_##OP, RET, (ctx, NPUSHMEM_UNWRAP ARGS), npushmem_ctx_t ctx, __VA_ARGS__)
#define NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_FORWARD(NAME##_##OP, RET, ARGS, __VA_ARGS__)
#define NPUSHMEM_SIZED_CTX(BITS, BYTES, PRE, POST, RET, ARGS, ...) \
    NPUSHMEM_FORWARD(PRE##BITS##POST, RET, ARGS, __VA_ARGS__)      \
    NPUSHMEM_FORWARD(ctx_##PRE##BITS##POST, RET, (ctx, NPUSHMEM_UNWRAP ARGS), npushmem_ctx_t ctx, __VA_ARGS__)
#define NPUSHMEM_UNTYPED_CTX(OP, RET, ARGS, ...) \
    NPUSHMEM_FORWARD(OP, RET, ARGS, __VA_ARGS__) \
    NPUSHMEM_FORWARD(ctx_##OP, RET, (ctx, NPUSHMEM_UNWRAP ARGS), npushmem_ctx_t ctx, __VA_ARGS__)
#define NPUSHMEM_PLAIN(OP, RET, ARGS, ...) NPUSHMEM_FORWARD(OP, RET, ARGS, __VA_ARGS__)
#define NPUSHMEM_OLD_REDUCTION(NAME, TYPE, OP, ARGS, ...) \
    NPUSHMEM_FORWARD(NAME##_##OP##_to_all, void, ARGS, __VA_ARGS__)
#define NPUSHMEM_OLD_ATOMIC(NAME, TYPE, OP, NEW, RET, ARGS, ...) NPUSHMEM_FORWARD(NAME##_##OP, RET, ARGS, __VA_ARGS__)
#define NPUSHMEM_OLD_WAIT(NAME, TYPE, OP, RET, ARGS, ...) NPUSHMEM_FORWARD(NAME##_##OP, RET, ARGS, __VA_ARGS__)
#define NPUSHMEM_OLD_WAIT_UNTIL(OP, RET, ARGS, ...) NPUSHMEM_FORWARD(OP, RET, ARGS, __VA_ARGS__)

// Calls that fail before shmem_init are reported in the standard's names too.
[[gnu::constructor]] static void use_openshmem_names() { npushmemx_openshmem_names(); }

extern "C" {
#include "npushmem/functions.h"

void pshmem_pcontrol(int, ...) {}
[[gnu::weak, gnu::alias("pshmem_pcontrol")]] void shmem_pcontrol(int level, ...);
void pstart_pes(int) { npushmemx_openshmem_init(); }
[[gnu::weak, gnu::alias("pstart_pes")]] void start_pes(int npes);
}
