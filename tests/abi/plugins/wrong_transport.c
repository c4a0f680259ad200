/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport table that is sound, except for what the build defines: one file, one wrong plugin per refusal stage. In
 * C, because the boundary is C: it also shows that a plugin needs no C++. */
#include "npushmem/plugin/transport.h"

#if defined(WRONG_TAKES_SIGNALS)
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#endif
#include <stddef.h>
#include <string.h>

#ifndef WRONG_NAME
#define WRONG_NAME PLUGIN_NAME
#endif
#ifndef WRONG_ENTRY
#define WRONG_ENTRY NPUSHMEM_TRANSPORT_ENTRY
#endif
#ifndef WRONG_MAJOR
#define WRONG_MAJOR NPUSHMEM_TRANSPORT_MAJOR
#endif
#ifndef WRONG_MINOR
#define WRONG_MINOR NPUSHMEM_TRANSPORT_MINOR
#endif
#ifndef WRONG_SIZE
#define WRONG_SIZE sizeof(npushmem_transport_v1)
#endif
#ifndef WRONG_CAPABILITIES
#define WRONG_CAPABILITIES NPUSHMEM_CAP_PUT
#endif
#ifndef WRONG_QUIET
#define WRONG_QUIET quiet
#endif
#ifndef WRONG_RESULT
#define WRONG_RESULT &table
#endif
#ifndef WRONG_PUT
#define WRONG_PUT put
#endif

#if defined(WRONG_UNDEFINED_SYMBOL)
extern int npushmem_test_symbol_that_nobody_defines(void);
#endif

#if defined(WRONG_AT_LOAD)
#include <signal.h>
#include <unistd.h>
__attribute__((constructor)) static void at_load(void) { WRONG_AT_LOAD; }
#endif

#if defined(WRONG_TAKES_SIGNALS)
static void taken(int number) { (void)number; }
static void leave(int number) {
    (void)number;
    _exit(1);
}
__attribute__((constructor)) static void take_signals(void) {
    signal(SIGFPE, taken);
    signal(SIGINT, taken);
    signal(SIGTERM, leave);
    if (getenv("WRONG_PLUGIN_IS_SIGNALLED") != NULL) kill(getpid(), SIGTERM);
}
#endif

#ifndef WRONG_OPEN_MESSAGE
#define WRONG_OPEN_MESSAGE "the wrong plugin opens nothing"
#endif
#ifndef WRONG_OPEN_CODE
#define WRONG_OPEN_CODE NPUSHMEM_OK
#endif

static int32_t open_instance(const npushmem_host* host, const npushmem_transport_params* params, void** self,
                             npushmem_error* error) {
    static int instance;
    (void)host;
    (void)params;
    *self = &instance;
    strcpy(error->message, WRONG_OPEN_MESSAGE);
#if defined(WRONG_OPEN_UNTERMINATED)
    memset(error->message, 'x', sizeof error->message);
#endif
    return WRONG_OPEN_CODE;
}
static void close_instance(void* self) { (void)self; }
static int32_t reach(void* self, const npushmem_peer* peer, npushmem_reach* out) {
    (void)self;
    (void)peer;
    out->capabilities = NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_MAP; /* more than the table declares */
    memset(out->why, 'y', sizeof out->why);                  /* without an end */
    return NPUSHMEM_OK;
}
static int32_t register_memory(void* self, const npushmem_memory* memory, uint64_t* region, void* handle,
                               uint32_t* handle_bytes, npushmem_error* error) {
    (void)self;
    (void)memory;
    (void)handle;
    (void)error;
    *region = 1;
    *handle_bytes = 100000; /* more than there is room for */
    return NPUSHMEM_OK;
}
static int32_t deregister_memory(void* self, uint64_t region) {
    (void)self;
    return region == 1 ? NPUSHMEM_OK : NPUSHMEM_E_ARGUMENT;
}
static int32_t import_memory(void* self, int32_t pe, const void* handle, uint32_t handle_bytes, uint64_t* remote,
                             npushmem_error* error) {
    (void)self;
    (void)pe;
    (void)handle;
    (void)handle_bytes;
    (void)error;
    *remote = 1;
    return NPUSHMEM_OK;
}
static int32_t release_memory(void* self, uint64_t remote) {
    (void)self;
    (void)remote;
    return NPUSHMEM_OK;
}
static int32_t create_queue(void* self, uint64_t* queue, npushmem_error* error) {
    (void)self;
    (void)error;
    *queue = 1;
    return NPUSHMEM_OK;
}
static int32_t destroy_queue(void* self, uint64_t queue) {
    (void)self;
    (void)queue;
    return NPUSHMEM_OK;
}
__attribute__((unused)) static int32_t quiet(void* self, uint64_t queue) {
    (void)self;
    (void)queue;
    return NPUSHMEM_OK;
}
static int32_t fence(void* self, uint64_t queue) { return quiet(self, queue); }
__attribute__((unused)) static int32_t put(void* self, uint64_t queue, const npushmem_rma* op, uint64_t* token) {
    (void)self;
    (void)queue;
    (void)op;
    (void)token;
    return NPUSHMEM_OK;
}

#if defined(WRONG_ROWS)
static const npushmem_config_row rows[] = {WRONG_ROWS};
#endif

__attribute__((visibility("default"))) const npushmem_transport_v1* WRONG_ENTRY(void) {
    static npushmem_transport_v1 table;
    table.struct_size = (uint32_t)(WRONG_SIZE);
    table.major = WRONG_MAJOR;
    table.minor = WRONG_MINOR;
    table.name = WRONG_NAME;
    table.capabilities = WRONG_CAPABILITIES;
#if defined(WRONG_ROWS)
    table.config = rows;
    table.config_count = sizeof rows / sizeof rows[0];
#elif defined(WRONG_ROW_COUNT)
    table.config_count = WRONG_ROW_COUNT;
#endif
    table.open = open_instance;
    table.close = close_instance;
    table.reach = reach;
    table.register_memory = register_memory;
    table.deregister_memory = deregister_memory;
    table.import_memory = import_memory;
    table.release_memory = release_memory;
    table.create_queue = create_queue;
    table.destroy_queue = destroy_queue;
    table.fence = fence;
    table.quiet = WRONG_QUIET;
    table.put = WRONG_PUT;
#if defined(WRONG_UNDEFINED_SYMBOL)
    table.minor = (uint16_t)npushmem_test_symbol_that_nobody_defines();
#endif
#if defined(WRONG_SUMMARY)
    table.summary = WRONG_SUMMARY;
#endif
#if defined(WRONG_ALL_ONES)
    memset(&table, 0xff, sizeof table);
#endif
    return WRONG_RESULT;
}
