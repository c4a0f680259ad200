/* The type tables of OpenSHMEM 1.6 as macros: X(NAME, TYPE) for every type of a family. Declarations, definitions and
 * tests are expanded from these tables and from nothing else. */
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
#define NPUSHMEM_FOR_EACH_RMA_TYPE(X) \
    X(float, float)                   \
    X(double, double)                 \
    X(longdouble, long double)        \
    X(char, char)                     \
    X(schar, signed char)             \
    X(short, short)                   \
    X(int, int)                       \
    X(long, long)                     \
    X(longlong, long long)            \
    X(uchar, unsigned char)           \
    X(ushort, unsigned short)         \
    X(uint, unsigned int)             \
    X(ulong, unsigned long)           \
    X(ulonglong, unsigned long long)  \
    X(int8, int8_t)                   \
    X(int16, int16_t)                 \
    X(int32, int32_t)                 \
    X(int64, int64_t)                 \
    X(uint8, uint8_t)                 \
    X(uint16, uint16_t)               \
    X(uint32, uint32_t)               \
    X(uint64, uint64_t)               \
    X(size, size_t)                   \
    X(ptrdiff, ptrdiff_t)

/* Sizes, in bits, of the untyped put and get. */
#define NPUSHMEM_FOR_EACH_SIZE(X) X(8, 1) X(16, 2) X(32, 4) X(64, 8) X(128, 16)

#endif
