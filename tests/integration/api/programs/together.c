/* SPDX-License-Identifier: BSD-3-Clause */
/* npushmem in a process that has another OpenSHMEM as well: our names work natively, under the standard's names from a
 * handle of their own, and the other library is not taken for ours, in whatever order they are loaded.
 *     together <libnpushmem_openshmem.so> <the other library> <ours-first|other-first> <local|global> */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <npushmem.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;
#define EXPECT(CONDITION)                                                         \
    do {                                                                          \
        if (!(CONDITION)) {                                                       \
            ++failures;                                                           \
            fprintf(stderr, "together.c:%d: not so: %s\n", __LINE__, #CONDITION); \
        }                                                                         \
    } while (0)

/* A function pointer from dlsym; null is a failure that ends the program. */
#define FIND(LIBRARY, NAME, TYPE)                                         \
    __typeof__(TYPE) NAME;                                                \
    *(void**)&NAME = dlsym(LIBRARY, "shmem_" #NAME);                      \
    if (NAME == NULL) {                                                   \
        fprintf(stderr, "together.c: no shmem_" #NAME " in a library\n"); \
        return 1;                                                         \
    }

static void* load(const char* path, int scope) {
    void* library = dlopen(path, RTLD_NOW | scope);
    if (library == NULL) fprintf(stderr, "together.c: %s\n", dlerror());
    return library;
}

/* From which file an address comes. */
static const char* home_of(void* address) {
    Dl_info info;
    return dladdr(address, &info) != 0 ? info.dli_fname : "";
}

static int test(void* ours, void* other) {
    FIND(ours, my_pe, int (*)(void))
    FIND(ours, long_p, void (*)(long*, long, int))
    FIND(ours, long_atomic_fetch_add, long (*)(long*, long, int))
    void* other_my_pe = dlsym(other, "shmem_my_pe");
    EXPECT(other_my_pe != NULL && other_my_pe != *(void**)&my_pe);
    EXPECT(strstr(home_of(other_my_pe), "liboshmem") != NULL);
    EXPECT(strstr(home_of(*(void**)&my_pe), "npushmem_openshmem") != NULL);
    npushmem_init();
    const int me = npushmem_my_pe();
    const int right = (me + 1) % npushmem_n_pes();
    const int left = (me + npushmem_n_pes() - 1) % npushmem_n_pes();
    long* slots = npushmem_calloc(3, sizeof *slots);
    npushmem_long_p(slots, me, right);
    long_p(slots + 1, me + 100L, right);
    EXPECT(my_pe() == me);
    npushmem_barrier_all();
    EXPECT(slots[0] == left && slots[1] == left + 100);
    (void)long_atomic_fetch_add(slots + 2, 1, 0);
    npushmem_long_atomic_inc(slots + 2, 0);
    npushmem_barrier_all();
    EXPECT(npushmem_long_g(slots + 2, 0) == 2L * npushmem_n_pes());
    npushmem_free(slots);
    npushmem_finalize();
    return failures != 0;
}

int main(int count, char** arguments) {
    if (count != 5) return 2;
    const int scope = strcmp(arguments[4], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
    const int ours_first = strcmp(arguments[3], "ours-first") == 0;
    void* first = load(arguments[ours_first ? 1 : 2], scope);
    void* second = load(arguments[ours_first ? 2 : 1], scope);
    if (first == NULL || second == NULL) return 1;
    return ours_first ? test(first, second) : test(second, first);
}
