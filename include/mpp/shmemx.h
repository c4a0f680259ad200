/* SPDX-License-Identifier: BSD-3-Clause */
/* Where programs from before OpenSHMEM 1.1 look for the header. */
#include <shmemx.h>
