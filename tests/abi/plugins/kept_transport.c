/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport in C, by the raw table, compiled against each kept set of headers. It reaches the own PE, by copying, has
 * one device, and uses every field that its headers have. */
#include <stdlib.h>
#include <string.h>

#include "npushmem/plugin/transport.h"

typedef struct {
    int32_t pe;
    char* base;
    uint64_t bytes;
    uint64_t queues;
} instance;

static int32_t failed(int32_t code, const char* message, npushmem_error* error) {
    if (error != NULL) {
        error->code = code;
        strcpy(error->message, message);
    }
    return code;
}

static int32_t open_instance(const npushmem_host* host, const npushmem_transport_params* params, void** self,
                             npushmem_error* error) {
    instance* made = calloc(1, sizeof *made);
    if (made == NULL) return failed(NPUSHMEM_E_MEMORY, "no memory", error);
    made->pe = params->pe;
    host->log(host->context, NPUSHMEM_LOG_DEBUG, PLUGIN_NAME, host->config(host->context, "KEPT_WORD"));
    *self = made;
    return NPUSHMEM_OK;
}
static void close_instance(void* self) { free(self); }
static int32_t reach(void* self, const npushmem_peer* peer, npushmem_reach* out) {
    const int own = peer->pe == ((instance*)self)->pe;
    npushmem_reach made;
    memset(&made, 0, sizeof made);
    made.struct_size = out->struct_size;
    made.capabilities = own ? NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET : 0;
    strcpy(made.why, own ? "the PE itself" : "another PE");
#if NPUSHMEM_TRANSPORT_MINOR >= 1
    made.latency_ns = 1500;
    made.bytes_per_second = 8000000000;
#endif
    memcpy(out, &made, out->struct_size < sizeof made ? out->struct_size : sizeof made);
    return NPUSHMEM_OK;
}
static int32_t register_memory(void* self, const npushmem_memory* memory, uint64_t* region, void* handle,
                               uint32_t* handle_bytes, npushmem_error* error) {
    instance* own = self;
    if (*handle_bytes < 4) return failed(NPUSHMEM_E_RANGE, "no room for the handle", error);
    own->base = memory->base;
    own->bytes = memory->bytes;
    memcpy(handle, "kept", 4);
    *handle_bytes = 4;
    *region = 5;
    return NPUSHMEM_OK;
}
static int32_t deregister_memory(void* self, uint64_t region) {
    (void)self;
    return region == 5 ? NPUSHMEM_OK : NPUSHMEM_E_ARGUMENT;
}
static int32_t import_memory(void* self, int32_t pe, const void* handle, uint32_t handle_bytes, uint64_t* remote,
                             npushmem_error* error) {
    if (pe != ((instance*)self)->pe || handle_bytes != 4 || memcmp(handle, "kept", 4) != 0)
        return failed(NPUSHMEM_E_PROTOCOL, "not a handle of this transport", error);
    *remote = 6;
    return NPUSHMEM_OK;
}
static int32_t release_memory(void* self, uint64_t remote) {
    (void)self;
    return remote == 6 ? NPUSHMEM_OK : NPUSHMEM_E_ARGUMENT;
}
static int32_t create_queue(void* self, uint64_t* queue, npushmem_error* error) {
    (void)error;
    *queue = 100 + ++((instance*)self)->queues;
    return NPUSHMEM_OK;
}
static int32_t check_queue(void* self, uint64_t queue) {
    return queue > 100 && queue <= 100 + ((instance*)self)->queues ? NPUSHMEM_OK : NPUSHMEM_E_ARGUMENT;
}
static int32_t devices(void* self, void* out, uint32_t device_bytes, uint32_t* count, npushmem_error* error) {
    npushmem_device device;
    (void)self;
    (void)error;
    memset(&device, 0, sizeof device);
    device.struct_size = sizeof device;
    device.port = 2;
    device.state = NPUSHMEM_PORT_ACTIVE;
    device.bits_per_second = 64000000000;
    strcpy(device.name, "kept_0");
#if NPUSHMEM_TRANSPORT_MINOR >= 1
    device.rail = 4;
#endif
    if (*count > 0) memcpy(out, &device, device_bytes < sizeof device ? device_bytes : sizeof device);
    *count = 1;
    return NPUSHMEM_OK;
}
static int32_t use_devices(void* self, const uint32_t* index, uint32_t count, npushmem_error* error) {
    (void)self;
    return count == 0 || *index == 0 ? NPUSHMEM_OK : failed(NPUSHMEM_E_ARGUMENT, "no such device", error);
}
static int32_t copy(void* self, uint64_t queue, const npushmem_rma* op, int is_put, uint64_t* token) {
    const instance* own = self;
    if (check_queue(self, queue) != NPUSHMEM_OK || op->remote != 6) return NPUSHMEM_E_ARGUMENT;
    if (op->offset > own->bytes || op->bytes > own->bytes - op->offset) return NPUSHMEM_E_RANGE;
    if (is_put)
        memcpy(own->base + op->offset, op->local, op->bytes);
    else
        memcpy(op->local, own->base + op->offset, op->bytes);
    if (token != NULL) *token = 77;
    return NPUSHMEM_OK;
}
static int32_t put(void* self, uint64_t queue, const npushmem_rma* op, uint64_t* token) {
    return copy(self, queue, op, 1, token);
}
static int32_t get(void* self, uint64_t queue, const npushmem_rma* op, uint64_t* token) {
    return copy(self, queue, op, 0, token);
}
static int32_t test(void* self, uint64_t queue, uint64_t token) {
    return token == 77 ? check_queue(self, queue) : NPUSHMEM_E_ARGUMENT;
}
static int32_t poll_event(void* self, npushmem_event* out) {
    (void)self;
    out->code = NPUSHMEM_E_TIMEOUT;
    out->pe = 2;
    strcpy(out->message, "an event");
    return NPUSHMEM_OK;
}
#if NPUSHMEM_TRANSPORT_MINOR >= 1
static int32_t forget(void* self, int32_t pe) {
    (void)self;
    return pe == 7 ? NPUSHMEM_E_ARGUMENT : NPUSHMEM_OK;
}
#endif
#if NPUSHMEM_TRANSPORT_MINOR >= 2
static int32_t report_arrivals(void* self, void (*arrived)(void* context), void* context) {
    (void)self;
    arrived(context);
    return NPUSHMEM_OK;
}
#endif

static const npushmem_config_row rows[] = {{"KEPT_WORD", "kept", "string", "a word"}};

__attribute__((visibility("default"))) const npushmem_transport_v1* NPUSHMEM_TRANSPORT_ENTRY(void) {
    static npushmem_transport_v1 table;
    table.struct_size = sizeof table;
    table.major = NPUSHMEM_TRANSPORT_MAJOR;
    table.minor = NPUSHMEM_TRANSPORT_MINOR;
    table.name = PLUGIN_NAME;
    table.summary = "a plugin of an earlier version";
    table.capabilities = NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_DEVICES;
    table.config = rows;
    table.config_count = 1;
    table.open = open_instance;
    table.close = close_instance;
    table.reach = reach;
    table.register_memory = register_memory;
    table.deregister_memory = deregister_memory;
    table.import_memory = import_memory;
    table.release_memory = release_memory;
    table.create_queue = create_queue;
    table.destroy_queue = check_queue;
    table.fence = check_queue;
    table.quiet = check_queue;
    table.devices = devices;
    table.use_devices = use_devices;
    table.put = put;
    table.get = get;
    table.test = test;
    table.poll_event = poll_event;
#if NPUSHMEM_TRANSPORT_MINOR >= 1
    table.forget = forget;
#endif
#if NPUSHMEM_TRANSPORT_MINOR >= 2
    table.report_arrivals = report_arrivals;
#endif
    return &table;
}
