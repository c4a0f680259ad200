/* SPDX-License-Identifier: BSD-3-Clause */
/* As wrong_transport.c, for the bootstrap table. */
#include "npushmem/plugin/bootstrap.h"

#include <stddef.h>
#include <string.h>

#ifndef WRONG_MAJOR
#define WRONG_MAJOR NPUSHMEM_BOOTSTRAP_MAJOR
#endif
#ifndef WRONG_SIZE
#define WRONG_SIZE sizeof(npushmem_bootstrap_v1)
#endif
#ifndef WRONG_ENTRY
#define WRONG_ENTRY NPUSHMEM_BOOTSTRAP_ENTRY
#endif
#ifndef WRONG_BARRIER
#define WRONG_BARRIER barrier
#endif
#ifndef WRONG_RANK
#define WRONG_RANK 0
#endif
#ifndef WRONG_OPEN_CODE
#define WRONG_OPEN_CODE NPUSHMEM_OK
#endif

static int32_t open_instance(const npushmem_host* host, const npushmem_bootstrap_params* params, void** self,
                             int32_t* rank, int32_t* nranks, npushmem_error* error) {
    (void)host;
    (void)params;
    if (WRONG_OPEN_CODE != NPUSHMEM_OK) strcpy(error->message, "rank 1 never joined");
    *self = NULL; /* an instance need not be an object */
    *rank = WRONG_RANK;
    *nranks = 1;
    return WRONG_OPEN_CODE;
}
static void close_instance(void* self) { (void)self; }
static int32_t allgather(void* self, const void* send, uint64_t bytes, void* receive, npushmem_error* error) {
    (void)self;
    (void)error;
    for (uint64_t i = 0; i < bytes; ++i) ((char*)receive)[i] = ((const char*)send)[i];
    return NPUSHMEM_OK;
}
__attribute__((unused)) static int32_t barrier(void* self, npushmem_error* error) {
    (void)self;
    (void)error;
    return NPUSHMEM_OK;
}

__attribute__((visibility("default"))) const npushmem_bootstrap_v1* WRONG_ENTRY(void) {
    static npushmem_bootstrap_v1 table;
    table.struct_size = (uint32_t)(WRONG_SIZE);
    table.major = WRONG_MAJOR;
    table.name = PLUGIN_NAME;
    table.open = open_instance;
    table.close = close_instance;
    table.allgather = allgather;
    table.barrier = WRONG_BARRIER;
    return &table;
}
