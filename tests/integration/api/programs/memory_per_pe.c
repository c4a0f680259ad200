/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints how many bytes of private memory PE 0 has allocated after init. */
#include <malloc.h>
#include <stdio.h>

#include "npushmem.h"

int main(void) {
    npushmem_init();
    npushmem_barrier_all();
    const struct mallinfo2 allocated = mallinfo2();
    if (npushmem_my_pe() == 0) printf("%zu\n", allocated.uordblks + allocated.hblkhd);
    npushmem_finalize();
    return 0;
}
