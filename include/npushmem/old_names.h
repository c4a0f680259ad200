/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that OpenSHMEM has dropped and that programs still use, defined by today's names: of SHMEM and of OpenSHMEM
 * 1.0, and the calls for caches that some machines needed. Included by shmem.h, unless NPUSHMEM_NO_OLD_NAMES is
 * defined, for a program that has functions of these names. Errors, threads and ordering: as for today's functions; the
 * calls for caches do nothing, because memory is coherent. */
#ifndef NPUSHMEM_OLD_NAMES_H
#define NPUSHMEM_OLD_NAMES_H

#include <stddef.h>

static inline int _my_pe(void) { return shmem_my_pe(); }
static inline int _num_pes(void) { return shmem_n_pes(); }
static inline void* shmalloc(size_t bytes) { return shmem_malloc(bytes); }
static inline void* shmemalign(size_t alignment, size_t bytes) { return shmem_align(alignment, bytes); }
static inline void* shrealloc(void* object, size_t bytes) { return shmem_realloc(object, bytes); }
static inline void shfree(void* object) { shmem_free(object); }

static inline void shmem_set_cache_inv(void) {}
static inline void shmem_set_cache_line_inv(void* target) { (void)target; }
static inline void shmem_clear_cache_inv(void) {}
static inline void shmem_clear_cache_line_inv(void* target) { (void)target; }
static inline void shmem_udcflush(void) {}
static inline void shmem_udcflush_line(void* target) { (void)target; }

#endif
