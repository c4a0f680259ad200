/* SPDX-License-Identifier: BSD-3-Clause */
/* A shared object that is no plugin. */
__attribute__((visibility("default"))) int npushmem_test_nothing_in_particular(void) { return 1; }
