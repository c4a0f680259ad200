// SPDX-License-Identifier: BSD-3-Clause
// Visibility of the kernel language's functions that live in the library.
#pragma once

#if defined(__GNUC__)
#define NPUSHMEM_NPU_EXPORT __attribute__((visibility("default")))
#else
#define NPUSHMEM_NPU_EXPORT
#endif
