/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport table: the boundary between the runtime and a transport plugin.
 *
 * A plugin `libnpushmem_transport_<name>.so` exports one function, NPUSHMEM_TRANSPORT_ENTRY, that returns its table.
 * Authors in C++ derive from `npushmem::Transport` (transport.hpp) and use NPUSHMEM_EXPORT_TRANSPORT instead of filling
 * this table by hand.
 *
 * Life of an instance, in this order:
 *   open → devices → use_devices → address → reach(peer)… → register_memory → import_memory(peer)… → map(peer)…
 *   → create_queue → [connect(peer) at first use] → data path → [forget(peer) that has died] → destroy_queue
 *   → deregister/release → close
 * `address` and `reach` may be called repeatedly; `close` may follow any call.
 *
 * Threads: one thread at a time calls set-up functions, possibly while others are on the data path or in
 * `destroy_queue`, which may wait. Data-path functions of different queues may run in different threads at once; the
 * caller serialises calls on one queue, `test` and `quiet` included. Any thread may call `progress` and `poll_event` at
 * any time. The caller must not release memory that an operation in flight uses.
 *
 * Ordering: operations posted to a queue are unordered until `fence`, which orders all earlier updates (puts,
 * strided puts, put_signals, all atomics but FETCH) to each peer before all later operations to the same peer. Only
 * their completion orders earlier gets and FETCHes. put_signal delivers its data before its signal. (OpenSHMEM 1.6,
 * section "Memory Ordering Routines".)
 *
 * Torn words: a put of 4 or 8 bytes whose source and target are aligned to its size is one store at the target: no load
 * and no get of the word sees a mixture of old and new bytes. An aligned get of 4 or 8 bytes is likewise one load.
 * Longer, shorter and misaligned transfers may be seen in parts, in any order.
 *
 * Progress of the target: with NPUSHMEM_CAP_TARGET_PROGRESS an operation completes while its target makes no call.
 * Without it the caller may have to wait until the target calls `progress`, `quiet` or `test`; a host that waits for
 * anything therefore calls `progress` of every transport in use.
 *
 * Death of a peer: with NPUSHMEM_CAP_REPORTS_DEATH a transport detects it within the time that its variables give.
 * Then outstanding and later operations to that peer fail with NPUSHMEM_E_PEER_DEAD (NPUSHMEM_E_UNREACHABLE or
 * NPUSHMEM_E_TIMEOUT if the transport cannot distinguish a dead peer from a broken path), and `poll_event` reports
 * the peer once. Without the capability the host detects the death of PEs of its own host, and calls `forget`;
 * otherwise NPUSHMEM_TIMEOUT applies. A peer that has called `close` is not dead: the end of its connection is no event
 * and no error, unless an operation to it is outstanding or is posted later, which then fails as above.
 *
 * Several instances: a process may open instances of several PEs and of several jobs (the contract suite does), at the
 * same time or one after the other. Instances of different jobs may have equal PE numbers. Within a job a PE number has
 * one open instance at a time. Instances find each other by their addresses only.
 *
 * Refusals: every function but `close` checks what it is given. It returns an error, and does not return NPUSHMEM_AGAIN
 * indefinitely, for
 *  - a number of a queue, region or remote memory that it did not give out, or that has been destroyed;
 *  - a range outside the remote memory, an unknown operation, a wrong width, a misaligned atomic or signal;
 *  - a token that it did not give out: an error, or NPUSHMEM_OK as for a completed one;
 *  - a handle or address that is empty, truncated, too long or of another transport. The first byte of a handle
 *    belongs to its format: a handle whose first byte has changed is refused.
 * A refused call has no effect, and the instance remains usable. The addresses of structures and of local memory are
 * not checked.
 *
 * Completion: the token of a put, put_strided or put_signal completes when its source may be changed again; the token
 * of a get or a fetching atomic when the fetched value is in place. `quiet` returns NPUSHMEM_OK when everything posted
 * to the queue is complete in this sense and delivered at its target. `test` and `quiet` make progress for their queue,
 * so that a caller may wait by repeating one of them. An operation may also fail after it was posted: then `test` of
 * its token, or the next `quiet` of its queue, returns the code, once; `poll_event` may have the message.
 */
#ifndef NPUSHMEM_PLUGIN_TRANSPORT_H
#define NPUSHMEM_PLUGIN_TRANSPORT_H

#include "npushmem/plugin/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NPUSHMEM_TRANSPORT_MAJOR 1
#define NPUSHMEM_TRANSPORT_MINOR 2
/* In a file of several plugins each plugin defines its entry symbol: npushmem_transport_entry_v1_<name>. */
#ifndef NPUSHMEM_TRANSPORT_ENTRY
#define NPUSHMEM_TRANSPORT_ENTRY npushmem_transport_entry_v1
#endif
#define NPUSHMEM_TRANSPORT_ENTRY_NAME "npushmem_transport_entry_v1"

/* Capabilities: of the plugin (it may offer them) and of one peer (it offers them). */
#define NPUSHMEM_CAP_MAP UINT64_C(0x1) /* peer memory can be mapped: loads, stores and atomics by the CPU */
#define NPUSHMEM_CAP_PUT UINT64_C(0x2)
#define NPUSHMEM_CAP_GET UINT64_C(0x4)
#define NPUSHMEM_CAP_ATOMIC UINT64_C(0x8) /* natively, for the operations and widths in npushmem_reach.atomic_* */
#define NPUSHMEM_CAP_PUT_SIGNAL UINT64_C(0x10)
#define NPUSHMEM_CAP_ORDERED UINT64_C(0x20)    /* puts to one peer arrive in order even without a fence */
#define NPUSHMEM_CAP_DEVICES UINT64_C(0x40)    /* has NICs: `devices` enumerates them for the assignment */
#define NPUSHMEM_CAP_REMOTE UINT64_C(0x80)     /* reaches PEs of other hosts */
#define NPUSHMEM_CAP_DECORATOR UINT64_C(0x100) /* wraps an inner transport given to `open` */
/* a NIC pins the pages of registered memory: the caller that registered it keeps them until it deregisters them */
#define NPUSHMEM_CAP_PINS UINT64_C(0x200)
/* Since minor 1. Detects that a peer has died: operations to it fail with NPUSHMEM_E_PEER_DEAD, _UNREACHABLE or
 * _TIMEOUT, by the way in which it was detected, and poll_event reports it once with such a code, without a call of the
 * peer. Without this capability the death is not detected by the transport. */
#define NPUSHMEM_CAP_REPORTS_DEATH UINT64_C(0x400)
/* Since minor 1. Operations are delivered to a PE that makes no call. Without it a PE must call progress, quiet or test
 * so that operations to it are delivered. */
#define NPUSHMEM_CAP_TARGET_PROGRESS UINT64_C(0x800)
#define NPUSHMEM_CAP_PUT_STRIDED UINT64_C(0x1000) /* since minor 1 */

/* Atomic operations. Fetching ones return the old value into `result`. */
#define NPUSHMEM_ATOMIC_FETCH 0
#define NPUSHMEM_ATOMIC_SET 1
#define NPUSHMEM_ATOMIC_ADD 2
#define NPUSHMEM_ATOMIC_AND 3
#define NPUSHMEM_ATOMIC_OR 4
#define NPUSHMEM_ATOMIC_XOR 5
#define NPUSHMEM_ATOMIC_SWAP 6
#define NPUSHMEM_ATOMIC_COMPARE_SWAP 7
#define NPUSHMEM_ATOMIC_FETCH_ADD 8
#define NPUSHMEM_ATOMIC_FETCH_AND 9
#define NPUSHMEM_ATOMIC_FETCH_OR 10
#define NPUSHMEM_ATOMIC_FETCH_XOR 11
#define NPUSHMEM_ATOMIC_COUNT 12

#define NPUSHMEM_SIGNAL_SET 0
#define NPUSHMEM_SIGNAL_ADD 1

/* Upper bounds for the host's buffers. */
#define NPUSHMEM_ADDRESS_MAX 256 /* bytes of an endpoint address */
#define NPUSHMEM_HANDLE_MAX 256  /* bytes of an exported memory handle */

/* Upper bound for the data of one put_strided, in bytes: what a transport can copy into one message. */
#define NPUSHMEM_PUT_STRIDED_MAX 2048

/* Identity of a host for reachability. Two PEs are on one host if `machine`, `space` and `emulated` are equal
 * (npushmem::is_same_host in transport.hpp). Two PEs with equal identities can map each other's memory if the system's
 * permissions allow it. Other namespaces (mount, network, IPC) are not part of the identity: PEs of one host may have
 * different ones; even PID namespaces, if the PEs can pass descriptors to each other. Then their symmetric memory is
 * one file that each has open. */
typedef struct npushmem_host_id {
    uint64_t machine; /* hash of the boot id of the running kernel: the containers of one machine share it */
    uint64_t space;   /* the PID namespace, or namespaces, of the PEs that share memory; compare it only if `machine` is
                       * equal */
    int32_t emulated; /* number of the emulated host, or -1; PEs of different emulated hosts count as remote */
    uint32_t user;    /* effective user id */
} npushmem_host_id;

typedef struct npushmem_transport_params {
    uint32_t struct_size;
    int32_t pe;
    int32_t npes;
    int32_t local_index; /* of this PE among the PEs of its host */
    int32_t local_count;
    int32_t process_id; /* of this PE, in its own PID namespace */
    npushmem_host_id host;
    /* Decorators only: the wrapped transport. The host opens it before this one and closes it after.
     */
    const struct npushmem_transport_v1* inner;
    void* inner_self;
} npushmem_transport_params;

typedef struct npushmem_peer {
    uint32_t struct_size;
    int32_t pe;
    npushmem_host_id host;
    /* getpid() of the peer. It names a process of this PE's /proc, kill and pidfd_open only if `machine` and `space` of
     * both hosts are equal; an emulated host does not change it. 0: the peer's PID namespace is not this PE's. */
    int32_t process_id;
    uint32_t address_bytes;
    const void*
        address; /* the result of the peer's `address` for the same transport; NULL if the peer has not opened it */
    const char* host_name;
} npushmem_peer;

typedef struct npushmem_reach {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t capabilities; /* 0: the peer cannot be reached, for the reason in `why` */
    uint32_t atomic_32;    /* bit NPUSHMEM_ATOMIC_x set: native on 32-bit objects */
    uint32_t atomic_64;
    char why[256]; /* one clause, for people: "same host, shared memory" or "different host" */
    /* Since minor 1: typical cost of the path to the peer, by which the host compares transports. An estimate, not a
     * measurement; 0: unknown. The callee writes these fields only if struct_size includes them. */
    uint64_t latency_ns;       /* of a small put, until it is visible at the peer */
    uint64_t bytes_per_second; /* of long transfers in one direction */
} npushmem_reach;

#define NPUSHMEM_PORT_DOWN 0
#define NPUSHMEM_PORT_ACTIVE 1

typedef struct npushmem_device {
    uint32_t struct_size;
    uint32_t port;
    uint32_t state; /* NPUSHMEM_PORT_x */
    uint32_t reserved;
    uint64_t bits_per_second;
    char name[64];        /* the system's name, for instance mlx5_0 */
    char pci_address[32]; /* 0000:3b:00.0, or empty */
    /* Since minor 1: one more than the number of the port's rail; 0: unknown. Ports of equal rails on all hosts are
     * connected to each other: they belong to one network plane. */
    uint32_t rail;
    uint32_t reserved_1;
} npushmem_device;

typedef struct npushmem_memory {
    uint32_t struct_size;
    int32_t fd;         /* file that backs the memory, or -1 */
    uint64_t fd_offset; /* of `base` within the file */
    void* base;
    uint64_t bytes;
    void* mapping;           /* the whole mapping that contains `base`; equals `base` if there is no larger one */
    uint64_t mapping_offset; /* of `mapping` within the file */
    uint64_t mapping_bytes;
} npushmem_memory;

/* The four operations below carry no size: they do not change within a major version.
 * One put or get. `remote` names an imported region; `offset` counts bytes from its start. */
typedef struct npushmem_rma {
    int32_t pe;
    uint32_t reserved;
    uint64_t remote;
    uint64_t offset;
    void* local; /* put: source, not written; get: destination */
    uint64_t bytes;
} npushmem_rma;

typedef struct npushmem_atomic {
    int32_t pe;
    uint8_t operation; /* NPUSHMEM_ATOMIC_x */
    uint8_t width;     /* 4 or 8 bytes; the address is aligned to it */
    uint16_t reserved;
    uint64_t remote;
    uint64_t offset;
    uint64_t operand; /* low `width` bytes */
    uint64_t compare; /* NPUSHMEM_ATOMIC_COMPARE_SWAP only */
    void* result;     /* fetching operations: `width` bytes, written before the token completes */
} npushmem_atomic;

typedef struct npushmem_put_signal {
    npushmem_rma data;
    uint64_t signal_remote;
    uint64_t signal_offset; /* of the 64-bit signal word, aligned to 8 */
    uint64_t signal;
    uint32_t operation; /* NPUSHMEM_SIGNAL_x */
    uint32_t reserved;
} npushmem_put_signal;

/* Since minor 1. `count` blocks of block.bytes bytes each. block.local and block.offset place the first one; each
 * further block begins local_stride and remote_stride bytes after the one before it. */
typedef struct npushmem_put_strided {
    npushmem_rma block;
    uint64_t count;
    uint64_t remote_stride;
    uint64_t local_stride;
} npushmem_put_strided;

/* An error that belongs to no pending call. */
typedef struct npushmem_event {
    uint32_t struct_size;
    int32_t code;
    int32_t pe; /* or -1 */
    char message[500];
} npushmem_event;

/* Every function returns NPUSHMEM_OK, NPUSHMEM_AGAIN where documented, or an error code. `token`, if not NULL, receives
 * a number that `test` accepts on the same queue; 0 means already complete.
 *
 * One structure, although it has many members: it is the whole interface of a transport in a binary form, and members
 * are only ever appended. */
typedef struct npushmem_transport_v1 {
    uint32_t struct_size;
    uint16_t major;
    uint16_t minor;
    const char* name;    /* equals <name> of the file's name */
    const char* summary; /* one line for people */
    uint64_t capabilities;
    const npushmem_config_row* config;
    uint32_t config_count;
    uint32_t reserved;

    /* mandatory */
    int32_t (*open)(const npushmem_host* host, const npushmem_transport_params* params, void** self,
                    npushmem_error* error);
    void (*close)(void* self);
    int32_t (*reach)(void* self, const npushmem_peer* peer, npushmem_reach* out);
    int32_t (*register_memory)(void* self, const npushmem_memory* memory, uint64_t* region, void* handle,
                               uint32_t* handle_bytes, npushmem_error* error); /* handle_bytes: in capacity, out used */
    int32_t (*deregister_memory)(void* self, uint64_t region);
    /* Gives out a new number at each call, also for equal handles. */
    int32_t (*import_memory)(void* self, int32_t pe, const void* handle, uint32_t handle_bytes, uint64_t* remote,
                             npushmem_error* error);
    int32_t (*release_memory)(void* self, uint64_t remote);
    int32_t (*create_queue)(void* self, uint64_t* queue, npushmem_error* error);
    /* Delivers or drops outstanding operations; after it returns, no local memory is accessed. */
    int32_t (*destroy_queue)(void* self, uint64_t queue);
    int32_t (*fence)(void* self, uint64_t queue);
    int32_t (*quiet)(void* self, uint64_t queue); /* NPUSHMEM_AGAIN while something is outstanding; never blocks */

    /* with NPUSHMEM_CAP_DEVICES. `out` is an array of structures of `device_bytes` bytes each (the host's size of
     * npushmem_device); count: in capacity, out the number of devices. `index` counts in the order of `devices`. */
    int32_t (*devices)(void* self, void* out, uint32_t device_bytes, uint32_t* count, npushmem_error* error);
    int32_t (*use_devices)(void* self, const uint32_t* index, uint32_t count, npushmem_error* error);
    /* with NPUSHMEM_CAP_MAP: the address of the region; valid until release_memory */
    int32_t (*map)(void* self, uint64_t remote, void** base, npushmem_error* error);
    /* with NPUSHMEM_CAP_PUT, GET, ATOMIC, PUT_SIGNAL. NPUSHMEM_AGAIN: nothing was posted, no room */
    int32_t (*put)(void* self, uint64_t queue, const npushmem_rma* op, uint64_t* token);
    int32_t (*get)(void* self, uint64_t queue, const npushmem_rma* op, uint64_t* token);
    int32_t (*atomic)(void* self, uint64_t queue, const npushmem_atomic* op, uint64_t* token);
    int32_t (*put_signal)(void* self, uint64_t queue, const npushmem_put_signal* op, uint64_t* token);

    /* optional; the host's assumption for an absent function is in brackets.
     * connect: makes the connection that `reach` promised. The host calls it only for a peer for which `reach` returned
     * capabilities, before the first operation to it. This PE itself is such a peer if `reach` returned capabilities
     * for it: then connect to its own number and address succeeds, and operations to itself complete. A transport that
     * does not serve its own PE returns no capabilities for it from `reach`. */
    int32_t (*address)(void* self, void* out, uint32_t* bytes,
                       npushmem_error* error); /* bytes: in capacity, out used [no bytes] */
    int32_t (*connect)(void* self, const npushmem_peer* peer, npushmem_error* error); /* [nothing to do] */
    int32_t (*test)(void* self, uint64_t queue, uint64_t token); /* OK complete, AGAIN not yet [tokens are always 0] */
    int32_t (*progress)(void* self);                             /* OK something happened, AGAIN nothing did [AGAIN] */
    int32_t (*poll_event)(void* self, npushmem_event* out);      /* OK one delivered, AGAIN none [AGAIN] */

    /* Since minor 1, optional. The host knows that the peer has died or left. May close the connection to it and
     * free what is held for it alone. A set-up function, called for any peer, connected or not, any number of times;
     * does not wait for the peer. Operations to it that are outstanding complete, or fail with NPUSHMEM_E_PEER_DEAD,
     * without its help; later ones do either. Until destroy_queue returns, local memory of those that failed may still
     * be accessed. Operations to other peers are not affected. Numbers of the peer's imported memory remain valid for
     * release_memory, and its mapped memory remains mapped until then. A number that is no peer's is refused with
     * NPUSHMEM_E_ARGUMENT, or has no effect. [nothing to do] */
    int32_t (*forget)(void* self, int32_t pe);
    /* Since minor 1, with NPUSHMEM_CAP_PUT_STRIDED. Puts all blocks, each like a put of its own, in any order, with one
     * token. NPUSHMEM_AGAIN: nothing was posted, no room. Any stride is valid, 0 included: of blocks that overlap at
     * the target, any may prevail in each byte. A count or block size of 0 transfers nothing. NPUSHMEM_E_RANGE: the
     * blocks have more than NPUSHMEM_PUT_STRIDED_MAX bytes together, or some byte is outside the remote memory; nothing
     * was put. */
    int32_t (*put_strided)(void* self, uint64_t queue, const npushmem_put_strided* op, uint64_t* token);
    /* Since minor 2, optional. From now on the instance calls `arrived` with `context` each time after operations of
     * peers have changed memory that it has registered, soon, and without a call of the host. So a host that waits for
     * a change of the memory may sleep until then. Meanwhile it calls `progress` rarely, down to four times a second:
     * operations that it has posted should not need more. The instance may call `arrived` although nothing has changed,
     * which wakes the host needlessly. Any thread may call `arrived`, also within a data-path function, until `close`
     * returns. `arrived` does not block and calls no function of the table. A set-up function, called at most once.
     * NPUSHMEM_E_UNSUPPORTED: peers change the memory without the knowledge of the instance, or it depends on calls of
     * `progress`; it never calls `arrived`. [NPUSHMEM_E_UNSUPPORTED] */
    int32_t (*report_arrivals)(void* self, void (*arrived)(void* context), void* context);
} npushmem_transport_v1;

typedef const npushmem_transport_v1* (*npushmem_transport_entry)(void);

#ifdef __cplusplus
}
#endif
#endif
