/* SPDX-License-Identifier: BSD-3-Clause */
/* Where profiling tools look for the functions under the names that they call: pshmem_<name> and shmem_<name>. */
#include <shmem.h>
