/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the program with the names of the library's: they count, and call the same on the default context. */
#include <npushmem.h>

int calls_of_p = 0;
int calls_of_putmem = 0;

NPUSHMEM_API void npushmem_long_p(long* dest, long value, int pe) {
    ++calls_of_p;
    npushmem_ctx_long_p(NPUSHMEM_CTX_DEFAULT, dest, value, pe);
}

NPUSHMEM_API void npushmem_putmem(void* dest, const void* source, size_t bytes, int pe) {
    ++calls_of_putmem;
    npushmem_ctx_putmem(NPUSHMEM_CTX_DEFAULT, dest, source, bytes, pe);
}
