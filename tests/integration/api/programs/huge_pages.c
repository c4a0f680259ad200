/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether an object has huge pages: huge_pages <megabytes of it that must have them>. Exits with 77 if Linux gives
 * none, or gives them by itself. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "npushmem.h"
#include "npushmemx.h"

#define MEBIBYTE ((size_t)1 << 20)

/* Whether Linux collapses a page of shared memory on request, and does not use huge pages anyway. */
static int depends_on_request(void) {
    const size_t huge = 2 * MEBIBYTE;
    const int file = memfd_create("huge_pages", MFD_CLOEXEC);
    char* space = mmap(NULL, 2 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* page = space + (huge - (size_t)space % huge) % huge;
    char mode[128] = "";
    FILE* modes = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "r");
    if (modes != NULL) {
        if (fgets(mode, sizeof mode, modes) == NULL) mode[0] = 0;
        fclose(modes);
    }
    if (strstr(mode, "[never]") == NULL && strstr(mode, "[advise]") == NULL) return 0;
    if (ftruncate(file, (off_t)huge) != 0) return 0;
    page = mmap(page, huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    page[0] = 1;
    return madvise(page, huge, 25 /* MADV_COLLAPSE */) == 0;
}

/* Sums the huge pages of all mappings, in MiB. */
static long mapped_huge_pages(void) {
    long kibibytes = 0;
    long sum = 0;
    char line[512];
    FILE* maps = fopen("/proc/self/smaps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "ShmemPmdMapped: %ld", &kibibytes) == 1) sum += kibibytes;
    if (maps != NULL) fclose(maps);
    return sum / 1024;
}

int main(int argc, char** argv) {
    const size_t bytes = 5 * MEBIBYTE;
    if (argc != 2) return 2;
    npushmem_init();
    char* object = npushmem_malloc_with_hints(bytes, NPUSHMEMX_MALLOC_HUGE_PAGES);
    memset(object, 1, bytes);
    const long found = mapped_huge_pages();
    printf("huge_pages: %ld MiB\n", found);
    const int skipped = !depends_on_request();
    npushmem_finalize();
    return skipped ? 77 : found != atol(argv[1]);
}
