/* SPDX-License-Identifier: BSD-3-Clause */
/* As wrong_transport.c, for the table of collectives. */
#include "npushmem/plugin/collectives.h"

#include <stddef.h>
#include <string.h>

#ifndef WRONG_MAJOR
#define WRONG_MAJOR NPUSHMEM_COLLECTIVES_MAJOR
#endif
#ifndef WRONG_SIZE
#define WRONG_SIZE sizeof(npushmem_collectives_v1)
#endif
#ifndef WRONG_ENTRY
#define WRONG_ENTRY NPUSHMEM_COLLECTIVES_ENTRY
#endif
#ifndef WRONG_NAME
#define WRONG_NAME PLUGIN_NAME
#endif
#ifndef WRONG_TEST
#define WRONG_TEST test
#endif
#ifndef WRONG_OPEN_CODE
#define WRONG_OPEN_CODE NPUSHMEM_OK
#endif

static int32_t open_instance(const npushmem_host* host, const npushmem_collectives_params* params, void** self,
                             npushmem_error* error) {
    (void)host;
    (void)params;
    if (WRONG_OPEN_CODE != NPUSHMEM_OK) strcpy(error->message, "no accelerator here");
    *self = NULL; /* an instance need not be an object */
    return WRONG_OPEN_CODE;
}
static void close_instance(void* self) { (void)self; }
static uint64_t supports(void* self, uint32_t collective, uint32_t operation) {
    (void)self;
    return collective == NPUSHMEM_COLL_BARRIER && operation == 0;
}
static int32_t create_team(void* self, const npushmem_coll_team* team, uint64_t* id, npushmem_error* error) {
    (void)self;
    (void)team;
    (void)error;
    *id = 1;
    return NPUSHMEM_OK;
}
static void destroy_team(void* self, uint64_t id) {
    (void)self;
    (void)id;
}
static int32_t start(void* self, uint64_t team, const npushmem_coll_call* call, uint64_t* request,
                     npushmem_error* error) {
    (void)self;
    (void)team;
    (void)call;
    (void)error;
    *request = 1;
    return NPUSHMEM_AGAIN;
}
__attribute__((unused)) static int32_t test(void* self, uint64_t request, npushmem_error* error) {
    (void)self;
    (void)request;
    strcpy(error->message, "the network is gone");
    return NPUSHMEM_E_SYSTEM;
}

__attribute__((visibility("default"))) const npushmem_collectives_v1* WRONG_ENTRY(void) {
    static npushmem_collectives_v1 table;
    table.struct_size = (uint32_t)(WRONG_SIZE);
    table.major = WRONG_MAJOR;
    table.name = WRONG_NAME;
    table.open = open_instance;
    table.close = close_instance;
    table.supports = supports;
    table.create_team = create_team;
    table.destroy_team = destroy_team;
    table.start = start;
    table.test = WRONG_TEST;
    return &table;
}
