/* SPDX-License-Identifier: BSD-3-Clause */
/* A bootstrap in C, by the raw table, compiled against each kept set of headers: a job of one rank that uses every
 * function that its headers have. */
#include <stddef.h>
#include <string.h>

#include "npushmem/plugin/bootstrap.h"

static int aborted; /* a job of one rank has one instance */

static int32_t open_instance(const npushmem_host* host, const npushmem_bootstrap_params* params, void** self,
                             int32_t* rank, int32_t* nranks, npushmem_error* error) {
    (void)host;
    if (params->nranks > 1) {
        strcpy(error->message, "this bootstrap makes jobs of one rank");
        return NPUSHMEM_E_ARGUMENT;
    }
    aborted = 0;
    *self = &aborted;
    *rank = 0;
    *nranks = 1;
    return NPUSHMEM_OK;
}
static void close_instance(void* self) { *(int*)self = 0; }
static int32_t check(void* self, npushmem_error* error) {
    if (*(int*)self == 0) return NPUSHMEM_OK;
    strcpy(error->message, "the job was aborted");
    return NPUSHMEM_E_ABORTED;
}
static int32_t allgather(void* self, const void* send, uint64_t bytes, void* receive, npushmem_error* error) {
    if (check(self, error) != NPUSHMEM_OK) return NPUSHMEM_E_ABORTED;
    memmove(receive, send, bytes);
    return NPUSHMEM_OK;
}
static int32_t barrier(void* self, npushmem_error* error) { return check(self, error); }
static void abort_job(void* self, const char* reason) { *(int*)self = reason != NULL; }
static int32_t get_uniqueid(const npushmem_host* host, void* id, npushmem_error* error) {
    (void)host;
    (void)error;
    memset(id, 9, NPUSHMEM_UNIQUEID_BYTES);
    return NPUSHMEM_OK;
}
static int32_t recognise(const npushmem_host* host, const npushmem_bootstrap_params* params, npushmem_error* why) {
    (void)host;
    (void)params;
    strcpy(why->message, "a sign");
    return NPUSHMEM_RECOGNISED_LAUNCHER;
}
static int32_t rank_ended(const npushmem_host* host, const void* id, int32_t rank, int32_t nranks, const char* how,
                          npushmem_error* error) {
    (void)host;
    (void)error;
    return *(const char*)id == 9 && rank < nranks && *how != '\0' ? NPUSHMEM_OK : NPUSHMEM_E_ARGUMENT;
}

__attribute__((visibility("default"))) const npushmem_bootstrap_v1* NPUSHMEM_BOOTSTRAP_ENTRY(void) {
    static npushmem_bootstrap_v1 table;
    table.struct_size = sizeof table;
    table.major = NPUSHMEM_BOOTSTRAP_MAJOR;
    table.minor = NPUSHMEM_BOOTSTRAP_MINOR;
    table.name = PLUGIN_NAME;
    table.open = open_instance;
    table.close = close_instance;
    table.allgather = allgather;
    table.barrier = barrier;
    table.abort = abort_job;
    table.check = check;
    table.get_uniqueid = get_uniqueid;
    table.recognise = recognise;
    table.rank_ended = rank_ended;
    return &table;
}
