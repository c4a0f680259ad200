/* SPDX-License-Identifier: BSD-3-Clause */
/* Start, end, memory, ordering. Expanded several times; see npushmem/functions.h for the rows.
 *
 * Errors: reported (npushmemx_last_error), and returned by functions with a value: a call outside init and finalize,
 * invalid arguments, lack of memory, different arguments of PEs in a collective call, a lost PE, an expired deadline.
 *
 * Ordering: barrier_all and the calls for symmetric memory complete all earlier operations of the caller on the default
 * context, finalize those on all contexts; sync_all, init and queries complete nothing.
 *
 * Parameters: requested: NPUSHMEM_THREAD_SINGLE to NPUSHMEM_THREAD_MULTIPLE; provided: receives the provided level;
 * initialized: receives 0 or 1; status: exit status of the job; addr: an address of this PE; alignment: a power of two;
 * hints: of NPUSHMEM_MALLOC_; pes: numbers of PEs, in the context's team; count: number of objects or PEs; size: bytes.
 */

/* ---- Start and end ----
 * init: collective over all PEs. Starts the runtime with the configuration of the environment (npushmem-info -c lists
 * the variables). It may be called again after finalize, and more than once: the library ends with the last matching
 * finalize. On failure the cause is reported, npushmem-run ends the job as failed (see NPUSHMEM_ON_ERROR), and every
 * other call fails, which is reported once. Programs that can continue without the library use init_thread or
 * npushmemx_init_attr, which return the failure instead. */
NPUSHMEM_PLAIN(init, void, (), void)
/* As init, with a requested level of thread support (init requests NPUSHMEM_THREAD_SINGLE); *provided (may be NULL)
 * receives the provided level: the requested one, or more if an earlier call requested more. Returns 0, or the code of
 * npushmem/plugin/abi.h. */
NPUSHMEM_PLAIN(init_thread, int, (requested, provided), int requested, int* provided)
/* Collective. Completes everything, waits for all PEs, releases everything. A program that was started by shmem_init or
 * start_pes and exits with status 0 without finalize does it at exit, if the thread that started the library exits:
 * before the functions that the program registered by atexit before the start, which must not use the library any more.
 */
NPUSHMEM_PLAIN(finalize, void, (), void)
/* Reports whether the library is between a successful init and finalize: *initialized receives 0 or 1. Any time. */
NPUSHMEM_PLAIN(query_initialized, void, (initialized), int* initialized)
/* Returns the level provided so far. Any time. */
NPUSHMEM_PLAIN(query_thread, void, (provided), int* provided)
/* Ends all PEs at once with this exit status. Does not return. May be called by one PE alone. */
NPUSHMEM_PLAIN(global_exit, void, (status), int status)
/* Number of this PE and of all PEs; -1 (and a report) outside init..finalize. */
NPUSHMEM_PLAIN(my_pe, int, (), void)
NPUSHMEM_PLAIN(n_pes, int, (), void)
/* 1 if the PE exists (addr_accessible: and the object can be reached there), else 0. */
NPUSHMEM_PLAIN(pe_accessible, int, (pe), int pe)
NPUSHMEM_PLAIN(addr_accessible, int, (addr, pe), const void* addr, int pe)
/* NPUSHMEM_MAJOR_VERSION and MINOR of the library that runs. Any time. */
NPUSHMEM_PLAIN(info_get_version, void, (major, minor), int* major, int* minor)
/* Copies the library's name into name[NPUSHMEM_MAX_NAME_LEN]. Any time. */
NPUSHMEM_PLAIN(info_get_name, void, (name), char* name)

/* ---- Symmetric memory ----
 * All but ptr are collective over all PEs, with equal arguments. A difference is reported, with the PEs and the values,
 * on every PE that can see it, and nothing is allocated. (In a program that was started by shmem_init, without
 * NPUSHMEM_CHECK=1, malloc, calloc and align accept different sizes other than 0, as before OpenSHMEM 1.2: each PE gets
 * the largest size.) NULL for size 0 and on failure, with a report that has the numbers. Objects are aligned to 64
 * bytes unless a larger alignment is requested. */
NPUSHMEM_PLAIN(malloc, void*, (bytes), size_t bytes)
/* Allocates count * bytes, zeroed before any PE can return and put into it. */
NPUSHMEM_PLAIN(calloc, void*, (count, bytes), size_t count, size_t bytes)
/* alignment: a power of two, at most 64 MiB or, if that is less, the size of the heap rounded up to a power of two (but
 * 2 MiB always). Values below sizeof(void *) count as that. */
NPUSHMEM_PLAIN(align, void*, (alignment, bytes), size_t alignment, size_t bytes)
/* As realloc: keeps the first min(old, new) bytes; NULL object: malloc; 0 bytes: free. On failure the object stays. */
NPUSHMEM_PLAIN(realloc, void*, (object, bytes), void* object, size_t bytes)
/* NULL does nothing. Waits for all PEs before the memory can be used again. */
NPUSHMEM_PLAIN(free, void, (object), void* object)
/* hints: of NPUSHMEM_MALLOC_... and NPUSHMEMX_MALLOC_HUGE_PAGES; neither known nor unknown hints change the use of the
 * object. */
NPUSHMEM_PLAIN(malloc_with_hints, void*, (bytes, hints), size_t bytes, long hints)
/* Returns the address at which this PE can load and store PE `pe`'s copy of a symmetric object; NULL if its memory
 * cannot be mapped or the arguments are wrong (the latter with a report). Fence and quiet order stores through it like
 * puts. */
NPUSHMEM_PLAIN(ptr, void*, (object, pe), const void* object, int pe)

/* ---- Ordering and synchronisation ----
 * fence: delivers the caller's earlier puts, atomics and stores to a PE before its later ones. quiet: completes all
 * operations of this PE and makes them visible to all PEs; _nbi results may be read. pe_quiet: the same for operations
 * to those PEs; a NULL array or no PEs: nothing. All of them cover the operations on the default context, the ctx_
 * forms those on that one, and all of the PE's own stores; NPUSHMEM_CTX_INVALID: nothing. barrier_all: quiet, then no
 * PE returns before all have entered. sync_all: the same without quiet. */
NPUSHMEM_PLAIN(fence, void, (), void)
NPUSHMEM_PLAIN(ctx_fence, void, (ctx), npushmem_ctx_t ctx)
NPUSHMEM_PLAIN(quiet, void, (), void)
NPUSHMEM_PLAIN(ctx_quiet, void, (ctx), npushmem_ctx_t ctx)
NPUSHMEM_PLAIN(pe_quiet, void, (pes, count), const int* pes, size_t count)
NPUSHMEM_PLAIN(ctx_pe_quiet, void, (ctx, pes, count), npushmem_ctx_t ctx, const int* pes, size_t count)
NPUSHMEM_PLAIN(barrier_all, void, (), void)
NPUSHMEM_PLAIN(sync_all, void, (), void)
