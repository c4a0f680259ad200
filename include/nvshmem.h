/* SPDX-License-Identifier: BSD-3-Clause */
/* Where programs of NVSHMEM look for its names. */
#include "npushmem/nvshmem.h"
