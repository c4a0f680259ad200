/* SPDX-License-Identifier: BSD-3-Clause */
/* Which calls npushmem/inline.h expands: none of those reaches the functions in inlined_calls.c, which stand in front
 * of the library's. Prints what differs; the exit status is 1 then. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include <npushmem/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int calls_of_p;
extern int calls_of_putmem;

static int failures = 0;
static long variable; /* symmetric, but not in the heap */

#define EXPECT(CONDITION)                                                        \
    do {                                                                         \
        if (!(CONDITION)) {                                                      \
            ++failures;                                                          \
            fprintf(stderr, "inlined.c:%d: not so: %s\n", __LINE__, #CONDITION); \
        }                                                                        \
    } while (0)

static int is_empty(void) {
    static const npushmemx_inline_map_t empty;
    return memcmp(npushmemx_inline_v1, &empty, sizeof empty) == 0;
}

/* The default world with a heap of this size. */
static void run(const char* bytes, int expands) {
    setenv("NPUSHMEM_SYMMETRIC_SIZE", bytes, 1);
    npushmem_init();
    const int me = npushmem_my_pe();
    const int right = (me + 1) % npushmem_n_pes();
    const int left = (me + npushmem_n_pes() - 1) % npushmem_n_pes();
    const npushmemx_inline_map_t* const map = npushmemx_inline_v1;
    long* const words = npushmem_calloc(16, sizeof *words);
    const long value = me + 1;
    calls_of_p = calls_of_putmem = 0;

    npushmem_long_p(words, value, right);
    EXPECT(calls_of_p == (expands ? 0 : 1));
    npushmem_putmem(words + 1, &value, sizeof value, right);
    EXPECT(calls_of_putmem == (expands ? 0 : 1));
    npushmem_putmem(words + 2, &value, 3, right); /* no word */
    EXPECT(calls_of_putmem == (expands ? 1 : 2));
    npushmem_long_p(&variable, value, right);
    EXPECT(calls_of_p == (expands ? 1 : 2));
    void (*volatile address)(long*, long, int) = npushmem_long_p;
    address(words + 3, value, right);
    EXPECT(calls_of_p == (expands ? 2 : 3));
    npushmem_barrier_all();
    EXPECT(words[0] == left + 1 && words[1] == left + 1 && words[3] == left + 1 && variable == left + 1);
    EXPECT(memcmp(words + 2, words, 3) == 0);
    EXPECT(npushmem_long_g(words, right) == me + 1);

    /* The documented meaning of the members. */
    if (expands) {
        const char* const there =
            (const char*)map->peers + ((uint32_t)right - map->first_pe) * map->stride + ((uintptr_t)words - map->heap);
        EXPECT(there == npushmem_ptr(words, right) || memcmp(there, npushmem_ptr(words, right), 64) == 0);
        EXPECT(map->heap_bytes >= strtoull(bytes, NULL, 10) << 20U && map->all_mapped == 1);
    } else {
        EXPECT((uint32_t)right - map->first_pe >= map->mapped_pes);
    }
    npushmem_barrier_all();
    npushmem_free(words);
    npushmem_finalize();
    EXPECT(is_empty());
}

/* Arguments: "expanded" or "called". The job runs more than one PE. */
int main(int argc, char** argv) {
    const int expands = argc > 1 && strcmp(argv[1], "expanded") == 0;
    EXPECT(is_empty());
    run("4M", expands);
    run("32M", expands);
    return failures != 0;
}
