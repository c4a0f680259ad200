/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the program that is C11: the structures as a C program sees them. */
#ifndef NPUSHMEM_TEST_SELECTIONS_H
#define NPUSHMEM_TEST_SELECTIONS_H

#include "npushmemx.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes and places of members, as the C compiler lays them out. */
typedef struct selections_layout {
    size_t route, bootstrap, nics, barrier;
    size_t route_capabilities, route_peer_nics, barrier_pes_per_core;
} selections_layout;
selections_layout selections_layout_in_c(void);

/* A program of an older version, whose route ends before the capabilities: returns the code of the call, and in *after
 * the byte behind its structure, which it has set to 77. */
int selections_old_route(int pe, char transport[64], uint32_t* written, unsigned char* after);

#ifdef __cplusplus
}
#endif
#endif
