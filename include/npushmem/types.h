/* SPDX-License-Identifier: BSD-3-Clause */
/* The type tables of OpenSHMEM 1.6 as macros: X(NAME, TYPE) for every type of a family. Declarations, definitions and
 * tests are expanded from these tables only. */
#ifndef NPUSHMEM_TYPES_H
#define NPUSHMEM_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Types of point-to-point synchronisation and standard atomics (1.6, "Standard AMO Types"). */
#define NPUSHMEM_FOR_EACH_ATOMIC_TYPE(X) \
    X(int, int)                          \
    X(long, long)                        \
    X(longlong, long long)               \
    X(uint, unsigned int)                \
    X(ulong, unsigned long)              \
    X(ulonglong, unsigned long long)     \
    X(int32, int32_t)                    \
    X(int64, int64_t)                    \
    X(uint32, uint32_t)                  \
    X(uint64, uint64_t)                  \
    X(size, size_t)                      \
    X(ptrdiff, ptrdiff_t)

/* Types of fetch, set and swap (1.6, "Extended AMO Types"). */
#define NPUSHMEM_FOR_EACH_EXTENDED_ATOMIC_TYPE(X) \
    NPUSHMEM_FOR_EACH_ATOMIC_TYPE(X)              \
    X(float, float)                               \
    X(double, double)

/* Types of the floating-point addition, beyond OpenSHMEM. */
#define NPUSHMEM_FOR_EACH_FLOAT_ATOMIC_TYPE(X) X(float, float) X(double, double)

/* Types of and, or, xor (1.6, "Bitwise AMO Types"). */
#define NPUSHMEM_FOR_EACH_BITWISE_TYPE(X) \
    X(uint, unsigned int)                 \
    X(ulong, unsigned long)               \
    X(ulonglong, unsigned long long)      \
    X(int32, int32_t)                     \
    X(int64, int64_t)                     \
    X(uint32, uint32_t)                   \
    X(uint64, uint64_t)

/* Types of put and get (1.6, "Standard RMA Types"). */
#define NPUSHMEM_FOR_EACH_RMA_TYPE(X) NPUSHMEM_FOR_EACH_COMMON_RMA_TYPE(X) X(longdouble, long double)
/* Those of them that NVSHMEM has too. */
#define NPUSHMEM_FOR_EACH_COMMON_RMA_TYPE(X) \
    X(float, float)                          \
    X(double, double)                        \
    X(char, char)                            \
    X(schar, signed char)                    \
    X(short, short)                          \
    X(int, int)                              \
    X(long, long)                            \
    X(longlong, long long)                   \
    X(uchar, unsigned char)                  \
    X(ushort, unsigned short)                \
    X(uint, unsigned int)                    \
    X(ulong, unsigned long)                  \
    X(ulonglong, unsigned long long)         \
    X(int8, int8_t)                          \
    X(int16, int16_t)                        \
    X(int32, int32_t)                        \
    X(int64, int64_t)                        \
    X(uint8, uint8_t)                        \
    X(uint16, uint16_t)                      \
    X(uint32, uint32_t)                      \
    X(uint64, uint64_t)                      \
    X(size, size_t)                          \
    X(ptrdiff, ptrdiff_t)

/* Floating-point numbers of 16 bits, by their bits: IEEE binary16, and the upper half of a float. In C++
 * npushmem::npu::half and npushmem::npu::bfloat16 have the same representation. */
typedef struct npushmemx_half_s {
    uint16_t bits;
} npushmemx_half_t;
typedef struct npushmemx_bfloat16_s {
    uint16_t bits;
} npushmemx_bfloat16_t;
/* Types of the functions npushmemx_half_put, npushmemx_bfloat16_sum_reduce and others beyond OpenSHMEM. */
#define NPUSHMEM_FOR_EACH_HALF_TYPE(X) X(half, npushmemx_half_t) X(bfloat16, npushmemx_bfloat16_t)
#define NPUSHMEM_FOR_NO_TYPE(X)

/* Sizes, in bits, of the untyped put and get. */
#define NPUSHMEM_FOR_EACH_SIZE(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

/* Types of the reductions by and, or, xor (1.6, "Team reduction types"). */
#define NPUSHMEM_FOR_EACH_BITWISE_REDUCTION_TYPE(X) \
    X(uchar, unsigned char)                         \
    X(ushort, unsigned short)                       \
    X(uint, unsigned int)                           \
    X(ulong, unsigned long)                         \
    X(ulonglong, unsigned long long)                \
    X(int8, int8_t)                                 \
    X(int16, int16_t)                               \
    X(int32, int32_t)                               \
    X(int64, int64_t)                               \
    X(uint8, uint8_t)                               \
    X(uint16, uint16_t)                             \
    X(uint32, uint32_t)                             \
    X(uint64, uint64_t)                             \
    X(size, size_t)

/* Types of the reductions by max and min. */
#define NPUSHMEM_FOR_EACH_ORDERED_REDUCTION_TYPE(X) NPUSHMEM_FOR_EACH_RMA_TYPE(X)

/* Complex types: of the language if it has them, else of the compiler; the same in memory. */
#ifdef __cplusplus
__extension__ typedef double _Complex npushmem_complexd;
__extension__ typedef float _Complex npushmem_complexf;
#else
typedef double _Complex npushmem_complexd;
typedef float _Complex npushmem_complexf;
#endif
#define NPUSHMEM_COMPLEXD npushmem_complexd
#define NPUSHMEM_COMPLEXF npushmem_complexf
#define NPUSHMEM_FOR_EACH_COMPLEX_TYPE(X) X(complexd, NPUSHMEM_COMPLEXD) X(complexf, NPUSHMEM_COMPLEXF)

/* Types of the reductions and scans by sum and prod. */
#define NPUSHMEM_FOR_EACH_ARITHMETIC_REDUCTION_TYPE(X) NPUSHMEM_FOR_EACH_RMA_TYPE(X) NPUSHMEM_FOR_EACH_COMPLEX_TYPE(X)

/* Deprecated: types of the reductions over active sets, and of the atomics and waits before 1.4. */
#define NPUSHMEM_FOR_EACH_OLD_BITWISE_REDUCTION_TYPE(X) X(short, short) X(int, int) X(long, long) X(longlong, long long)
#define NPUSHMEM_FOR_EACH_OLD_ORDERED_REDUCTION_TYPE(X) \
    NPUSHMEM_FOR_EACH_OLD_BITWISE_REDUCTION_TYPE(X)     \
    X(float, float) X(double, double) X(longdouble, long double)
#define NPUSHMEM_FOR_EACH_OLD_ARITHMETIC_REDUCTION_TYPE(X) \
    NPUSHMEM_FOR_EACH_OLD_ORDERED_REDUCTION_TYPE(X)        \
    NPUSHMEM_FOR_EACH_COMPLEX_TYPE(X)
#define NPUSHMEM_FOR_EACH_OLD_ATOMIC_TYPE(X) X(int, int) X(long, long) X(longlong, long long)
#define NPUSHMEM_FOR_EACH_OLD_EXTENDED_ATOMIC_TYPE(X) \
    NPUSHMEM_FOR_EACH_OLD_ATOMIC_TYPE(X)              \
    X(float, float) X(double, double)
#define NPUSHMEM_FOR_EACH_OLD_WAIT_TYPE(X) X(short, short) X(int, int) X(long, long) X(longlong, long long)
/* Deprecated since 1.5: types of wait_until and test without atomics. */
#define NPUSHMEM_FOR_EACH_OLD_WAIT_UNTIL_TYPE(X) X(short, short) X(ushort, unsigned short)

/* Sizes, in bits, of the untyped collectives. */
#define NPUSHMEM_FOR_EACH_COLLECTIVE_SIZE(X) X(32, 4) X(64, 8)

/* The distinct types of the tables above, each once: for generic functions. */
#define NPUSHMEM_FOR_EACH_DISTINCT_RMA_TYPE(X) \
    X(float, float)                            \
    X(double, double)                          \
    X(longdouble, long double)                 \
    X(char, char)                              \
    X(schar, signed char)                      \
    X(short, short)                            \
    X(int, int)                                \
    X(long, long)                              \
    X(longlong, long long)                     \
    X(uchar, unsigned char)                    \
    X(ushort, unsigned short)                  \
    X(uint, unsigned int)                      \
    X(ulong, unsigned long)                    \
    X(ulonglong, unsigned long long)
#define NPUSHMEM_FOR_EACH_DISTINCT_ATOMIC_TYPE(X) \
    X(int, int)                                   \
    X(long, long)                                 \
    X(longlong, long long)                        \
    X(uint, unsigned int)                         \
    X(ulong, unsigned long)                       \
    X(ulonglong, unsigned long long)
#define NPUSHMEM_FOR_EACH_DISTINCT_EXTENDED_ATOMIC_TYPE(X) \
    NPUSHMEM_FOR_EACH_DISTINCT_ATOMIC_TYPE(X)              \
    X(float, float)                                        \
    X(double, double)
#define NPUSHMEM_FOR_EACH_DISTINCT_BITWISE_TYPE(X) \
    X(uint, unsigned int)                          \
    X(ulong, unsigned long)                        \
    X(ulonglong, unsigned long long)               \
    X(int32, int)                                  \
    X(int64, long)
#define NPUSHMEM_FOR_EACH_DISTINCT_BITWISE_REDUCTION_TYPE(X) \
    X(uchar, unsigned char)                                  \
    X(ushort, unsigned short)                                \
    X(uint, unsigned int)                                    \
    X(ulong, unsigned long)                                  \
    X(ulonglong, unsigned long long)                         \
    X(int8, signed char)                                     \
    X(int16, short)                                          \
    X(int32, int)                                            \
    X(int64, long)
#define NPUSHMEM_FOR_EACH_DISTINCT_ARITHMETIC_REDUCTION_TYPE(X) \
    NPUSHMEM_FOR_EACH_DISTINCT_RMA_TYPE(X)                      \
    NPUSHMEM_FOR_EACH_COMPLEX_TYPE(X)

#endif
