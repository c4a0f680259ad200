/* SPDX-License-Identifier: BSD-3-Clause */
/* Extensions of npushmem for programs that use <shmem.h>: they have their own prefix, npushmemx_. */
#ifndef SHMEMX_H
#define SHMEMX_H

#include "shmem.h"

#ifndef NPUSHMEMX_H
#include "npushmemx.h"
#endif

#endif
