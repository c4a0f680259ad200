/* SPDX-License-Identifier: BSD-3-Clause */
/* The generic functions of OpenSHMEM for C11: macros that choose by the type of the first argument, or, if that is a
 * context or a team, of the second one. Included by shmem.h. For a type that a table lacks the compiler reports an
 * error that names the macro. */
#ifndef NPUSHMEM_GENERIC_C11_H
#define NPUSHMEM_GENERIC_C11_H

#define NPUSHMEM_SECOND(FIRST, SECOND, ...) SECOND
/* Chosen if no type fits. It takes no arguments, so that the call does not compile. */
void npushmem_no_such_generic(void);

/* One type a line. */
/* clang-format off */

/* Types of put and get: the function PRE<name>_OP for a pointer to the type. */
#define NPUSHMEM_RMA(PRE, OP) \
    float*: PRE##float##_##OP, const float*: PRE##float##_##OP, \
    double*: PRE##double##_##OP, const double*: PRE##double##_##OP, \
    long double*: PRE##longdouble##_##OP, const long double*: PRE##longdouble##_##OP, \
    char*: PRE##char##_##OP, const char*: PRE##char##_##OP, \
    signed char*: PRE##schar##_##OP, const signed char*: PRE##schar##_##OP, \
    short*: PRE##short##_##OP, const short*: PRE##short##_##OP, \
    int*: PRE##int##_##OP, const int*: PRE##int##_##OP, \
    long*: PRE##long##_##OP, const long*: PRE##long##_##OP, \
    long long*: PRE##longlong##_##OP, const long long*: PRE##longlong##_##OP, \
    unsigned char*: PRE##uchar##_##OP, const unsigned char*: PRE##uchar##_##OP, \
    unsigned short*: PRE##ushort##_##OP, const unsigned short*: PRE##ushort##_##OP, \
    unsigned int*: PRE##uint##_##OP, const unsigned int*: PRE##uint##_##OP, \
    unsigned long*: PRE##ulong##_##OP, const unsigned long*: PRE##ulong##_##OP, \
    unsigned long long*: PRE##ulonglong##_##OP, const unsigned long long*: PRE##ulonglong##_##OP

/* Types of atomics, and of waits for many objects: the function PRE<name>_OP for a pointer to the type. */
#define NPUSHMEM_AMO(PRE, OP) \
    int*: PRE##int##_##OP, const int*: PRE##int##_##OP, \
    long*: PRE##long##_##OP, const long*: PRE##long##_##OP, \
    long long*: PRE##longlong##_##OP, const long long*: PRE##longlong##_##OP, \
    unsigned int*: PRE##uint##_##OP, const unsigned int*: PRE##uint##_##OP, \
    unsigned long*: PRE##ulong##_##OP, const unsigned long*: PRE##ulong##_##OP, \
    unsigned long long*: PRE##ulonglong##_##OP, const unsigned long long*: PRE##ulonglong##_##OP

/* Types of wait_until and test of one object: those of atomics, and two deprecated ones. */
#define NPUSHMEM_WAIT(PRE, OP) \
    NPUSHMEM_AMO(PRE, OP), \
    short*: PRE##short##_##OP, const short*: PRE##short##_##OP, \
    unsigned short*: PRE##ushort##_##OP, const unsigned short*: PRE##ushort##_##OP

/* Types of fetch, set, swap: the function PRE<name>_OP for a pointer to the type. */
#define NPUSHMEM_EXT(PRE, OP) \
    int*: PRE##int##_##OP, const int*: PRE##int##_##OP, \
    long*: PRE##long##_##OP, const long*: PRE##long##_##OP, \
    long long*: PRE##longlong##_##OP, const long long*: PRE##longlong##_##OP, \
    unsigned int*: PRE##uint##_##OP, const unsigned int*: PRE##uint##_##OP, \
    unsigned long*: PRE##ulong##_##OP, const unsigned long*: PRE##ulong##_##OP, \
    unsigned long long*: PRE##ulonglong##_##OP, const unsigned long long*: PRE##ulonglong##_##OP, \
    float*: PRE##float##_##OP, const float*: PRE##float##_##OP, \
    double*: PRE##double##_##OP, const double*: PRE##double##_##OP

/* Types of and, or, xor: the function PRE<name>_OP for a pointer to the type. */
#define NPUSHMEM_BIT(PRE, OP) \
    unsigned int*: PRE##uint##_##OP, const unsigned int*: PRE##uint##_##OP, \
    unsigned long*: PRE##ulong##_##OP, const unsigned long*: PRE##ulong##_##OP, \
    unsigned long long*: PRE##ulonglong##_##OP, const unsigned long long*: PRE##ulonglong##_##OP, \
    int*: PRE##int32##_##OP, const int*: PRE##int32##_##OP, \
    long*: PRE##int64##_##OP, const long*: PRE##int64##_##OP

/* Beyond the tables of 1.6, as in the older reductions: long long, which has the size of int64_t. */
#define NPUSHMEM_LONGLONG_REDUCTION(OP)                                                                   \
    static inline int npushmem_longlong_##OP(shmem_team_t team, long long* dest, const long long* source, \
                                             size_t count) {                                              \
        return shmem_int64_##OP(team, (int64_t*)dest, (const int64_t*)source, count);                     \
    }
NPUSHMEM_LONGLONG_REDUCTION(and_reduce)
NPUSHMEM_LONGLONG_REDUCTION(or_reduce)
NPUSHMEM_LONGLONG_REDUCTION(xor_reduce)
#undef NPUSHMEM_LONGLONG_REDUCTION

/* Types of reductions by and, or, xor: the function PRE<name>_OP for a pointer to the type. */
#define NPUSHMEM_BITRED(PRE, OP) \
    unsigned char*: PRE##uchar##_##OP, const unsigned char*: PRE##uchar##_##OP, \
    unsigned short*: PRE##ushort##_##OP, const unsigned short*: PRE##ushort##_##OP, \
    unsigned int*: PRE##uint##_##OP, const unsigned int*: PRE##uint##_##OP, \
    unsigned long*: PRE##ulong##_##OP, const unsigned long*: PRE##ulong##_##OP, \
    unsigned long long*: PRE##ulonglong##_##OP, const unsigned long long*: PRE##ulonglong##_##OP, \
    signed char*: PRE##int8##_##OP, const signed char*: PRE##int8##_##OP, \
    short*: PRE##int16##_##OP, const short*: PRE##int16##_##OP, \
    int*: PRE##int32##_##OP, const int*: PRE##int32##_##OP, \
    long*: PRE##int64##_##OP, const long*: PRE##int64##_##OP, \
    long long*: npushmem_longlong_##OP, const long long*: npushmem_longlong_##OP

/* Types of sums and products: the function PRE<name>_OP for a pointer to the type. */
#define NPUSHMEM_SUM(PRE, OP) \
    float*: PRE##float##_##OP, const float*: PRE##float##_##OP, \
    double*: PRE##double##_##OP, const double*: PRE##double##_##OP, \
    long double*: PRE##longdouble##_##OP, const long double*: PRE##longdouble##_##OP, \
    char*: PRE##char##_##OP, const char*: PRE##char##_##OP, \
    signed char*: PRE##schar##_##OP, const signed char*: PRE##schar##_##OP, \
    short*: PRE##short##_##OP, const short*: PRE##short##_##OP, \
    int*: PRE##int##_##OP, const int*: PRE##int##_##OP, \
    long*: PRE##long##_##OP, const long*: PRE##long##_##OP, \
    long long*: PRE##longlong##_##OP, const long long*: PRE##longlong##_##OP, \
    unsigned char*: PRE##uchar##_##OP, const unsigned char*: PRE##uchar##_##OP, \
    unsigned short*: PRE##ushort##_##OP, const unsigned short*: PRE##ushort##_##OP, \
    unsigned int*: PRE##uint##_##OP, const unsigned int*: PRE##uint##_##OP, \
    unsigned long*: PRE##ulong##_##OP, const unsigned long*: PRE##ulong##_##OP, \
    unsigned long long*: PRE##ulonglong##_##OP, const unsigned long long*: PRE##ulonglong##_##OP, \
    double _Complex*: PRE##complexd##_##OP, const double _Complex*: PRE##complexd##_##OP, \
    float _Complex*: PRE##complexf##_##OP, const float _Complex*: PRE##complexf##_##OP

/* Types of atomics before 1.4: the function PRE<name>_OP for a pointer to the type. */
#define NPUSHMEM_OLD(PRE, OP) \
    int*: PRE##int##_##OP, const int*: PRE##int##_##OP, \
    long*: PRE##long##_##OP, const long*: PRE##long##_##OP, \
    long long*: PRE##longlong##_##OP, const long long*: PRE##longlong##_##OP

/* Types of fetch, set, swap before 1.4: the function PRE<name>_OP for a pointer to the type. */
#define NPUSHMEM_OLDEXT(PRE, OP) \
    int*: PRE##int##_##OP, const int*: PRE##int##_##OP, \
    long*: PRE##long##_##OP, const long*: PRE##long##_##OP, \
    long long*: PRE##longlong##_##OP, const long long*: PRE##longlong##_##OP, \
    float*: PRE##float##_##OP, const float*: PRE##float##_##OP, \
    double*: PRE##double##_##OP, const double*: PRE##double##_##OP

/* Choice by the first argument; by the second one after a context; by the second one after a team. */
#define NPUSHMEM_BY_FIRST(TYPES, OP, FIRST, ...) \
    _Generic((FIRST), NPUSHMEM_##TYPES(shmem_, OP), default : npushmem_no_such_generic)(FIRST, __VA_ARGS__)
#define NPUSHMEM_BY_CTX(TYPES, OP, FIRST, ...) \
    _Generic((FIRST), \
        shmem_ctx_t: _Generic((NPUSHMEM_SECOND(FIRST, __VA_ARGS__, 0)), \
            NPUSHMEM_##TYPES(shmem_ctx_, OP), \
            default: npushmem_no_such_generic), \
        NPUSHMEM_##TYPES(shmem_, OP), \
        default: npushmem_no_such_generic)(FIRST, __VA_ARGS__)
#define NPUSHMEM_BY_TEAM(TYPES, OP, TEAM, DEST, ...) \
    _Generic((DEST), NPUSHMEM_##TYPES(shmem_, OP), default : npushmem_no_such_generic)(TEAM, DEST, __VA_ARGS__)

/* clang-format on */

#define shmem_p(...) NPUSHMEM_BY_CTX(RMA, p, __VA_ARGS__)
#define shmem_g(...) NPUSHMEM_BY_CTX(RMA, g, __VA_ARGS__)
#define shmem_put(...) NPUSHMEM_BY_CTX(RMA, put, __VA_ARGS__)
#define shmem_get(...) NPUSHMEM_BY_CTX(RMA, get, __VA_ARGS__)
#define shmem_put_nbi(...) NPUSHMEM_BY_CTX(RMA, put_nbi, __VA_ARGS__)
#define shmem_get_nbi(...) NPUSHMEM_BY_CTX(RMA, get_nbi, __VA_ARGS__)
#define shmem_iput(...) NPUSHMEM_BY_CTX(RMA, iput, __VA_ARGS__)
#define shmem_iget(...) NPUSHMEM_BY_CTX(RMA, iget, __VA_ARGS__)
#define shmem_ibput(...) NPUSHMEM_BY_CTX(RMA, ibput, __VA_ARGS__)
#define shmem_ibget(...) NPUSHMEM_BY_CTX(RMA, ibget, __VA_ARGS__)
#define shmem_put_signal(...) NPUSHMEM_BY_CTX(RMA, put_signal, __VA_ARGS__)
#define shmem_put_signal_nbi(...) NPUSHMEM_BY_CTX(RMA, put_signal_nbi, __VA_ARGS__)

#define shmem_atomic_fetch(...) NPUSHMEM_BY_CTX(EXT, atomic_fetch, __VA_ARGS__)
#define shmem_atomic_set(...) NPUSHMEM_BY_CTX(EXT, atomic_set, __VA_ARGS__)
#define shmem_atomic_swap(...) NPUSHMEM_BY_CTX(EXT, atomic_swap, __VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) NPUSHMEM_BY_CTX(EXT, atomic_fetch_nbi, __VA_ARGS__)
#define shmem_atomic_swap_nbi(...) NPUSHMEM_BY_CTX(EXT, atomic_swap_nbi, __VA_ARGS__)
#define shmem_atomic_compare_swap(...) NPUSHMEM_BY_CTX(AMO, atomic_compare_swap, __VA_ARGS__)
#define shmem_atomic_fetch_inc(...) NPUSHMEM_BY_CTX(AMO, atomic_fetch_inc, __VA_ARGS__)
#define shmem_atomic_inc(...) NPUSHMEM_BY_CTX(AMO, atomic_inc, __VA_ARGS__)
#define shmem_atomic_fetch_add(...) NPUSHMEM_BY_CTX(AMO, atomic_fetch_add, __VA_ARGS__)
#define shmem_atomic_add(...) NPUSHMEM_BY_CTX(AMO, atomic_add, __VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) NPUSHMEM_BY_CTX(AMO, atomic_compare_swap_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) NPUSHMEM_BY_CTX(AMO, atomic_fetch_inc_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) NPUSHMEM_BY_CTX(AMO, atomic_fetch_add_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_and(...) NPUSHMEM_BY_CTX(BIT, atomic_fetch_and, __VA_ARGS__)
#define shmem_atomic_and(...) NPUSHMEM_BY_CTX(BIT, atomic_and, __VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) NPUSHMEM_BY_CTX(BIT, atomic_fetch_and_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_or(...) NPUSHMEM_BY_CTX(BIT, atomic_fetch_or, __VA_ARGS__)
#define shmem_atomic_or(...) NPUSHMEM_BY_CTX(BIT, atomic_or, __VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) NPUSHMEM_BY_CTX(BIT, atomic_fetch_or_nbi, __VA_ARGS__)
#define shmem_atomic_fetch_xor(...) NPUSHMEM_BY_CTX(BIT, atomic_fetch_xor, __VA_ARGS__)
#define shmem_atomic_xor(...) NPUSHMEM_BY_CTX(BIT, atomic_xor, __VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) NPUSHMEM_BY_CTX(BIT, atomic_fetch_xor_nbi, __VA_ARGS__)

#define shmem_wait_until(...) NPUSHMEM_BY_FIRST(WAIT, wait_until, __VA_ARGS__)
#define shmem_wait_until_all(...) NPUSHMEM_BY_FIRST(AMO, wait_until_all, __VA_ARGS__)
#define shmem_wait_until_any(...) NPUSHMEM_BY_FIRST(AMO, wait_until_any, __VA_ARGS__)
#define shmem_wait_until_some(...) NPUSHMEM_BY_FIRST(AMO, wait_until_some, __VA_ARGS__)
#define shmem_wait_until_all_vector(...) NPUSHMEM_BY_FIRST(AMO, wait_until_all_vector, __VA_ARGS__)
#define shmem_wait_until_any_vector(...) NPUSHMEM_BY_FIRST(AMO, wait_until_any_vector, __VA_ARGS__)
#define shmem_wait_until_some_vector(...) NPUSHMEM_BY_FIRST(AMO, wait_until_some_vector, __VA_ARGS__)
#define shmem_test(...) NPUSHMEM_BY_FIRST(WAIT, test, __VA_ARGS__)
#define shmem_test_all(...) NPUSHMEM_BY_FIRST(AMO, test_all, __VA_ARGS__)
#define shmem_test_any(...) NPUSHMEM_BY_FIRST(AMO, test_any, __VA_ARGS__)
#define shmem_test_some(...) NPUSHMEM_BY_FIRST(AMO, test_some, __VA_ARGS__)
#define shmem_test_all_vector(...) NPUSHMEM_BY_FIRST(AMO, test_all_vector, __VA_ARGS__)
#define shmem_test_any_vector(...) NPUSHMEM_BY_FIRST(AMO, test_any_vector, __VA_ARGS__)
#define shmem_test_some_vector(...) NPUSHMEM_BY_FIRST(AMO, test_some_vector, __VA_ARGS__)

#define shmem_broadcast(...) NPUSHMEM_BY_TEAM(RMA, broadcast, __VA_ARGS__)
#define shmem_collect(...) NPUSHMEM_BY_TEAM(RMA, collect, __VA_ARGS__)
#define shmem_fcollect(...) NPUSHMEM_BY_TEAM(RMA, fcollect, __VA_ARGS__)
#define shmem_alltoall(...) NPUSHMEM_BY_TEAM(RMA, alltoall, __VA_ARGS__)
#define shmem_alltoalls(...) NPUSHMEM_BY_TEAM(RMA, alltoalls, __VA_ARGS__)
#define shmem_max_reduce(...) NPUSHMEM_BY_TEAM(RMA, max_reduce, __VA_ARGS__)
#define shmem_min_reduce(...) NPUSHMEM_BY_TEAM(RMA, min_reduce, __VA_ARGS__)
#define shmem_and_reduce(...) NPUSHMEM_BY_TEAM(BITRED, and_reduce, __VA_ARGS__)
#define shmem_or_reduce(...) NPUSHMEM_BY_TEAM(BITRED, or_reduce, __VA_ARGS__)
#define shmem_xor_reduce(...) NPUSHMEM_BY_TEAM(BITRED, xor_reduce, __VA_ARGS__)
#define shmem_sum_reduce(...) NPUSHMEM_BY_TEAM(SUM, sum_reduce, __VA_ARGS__)
#define shmem_prod_reduce(...) NPUSHMEM_BY_TEAM(SUM, prod_reduce, __VA_ARGS__)
#define shmem_sum_inscan(...) NPUSHMEM_BY_TEAM(SUM, sum_inscan, __VA_ARGS__)
#define shmem_sum_exscan(...) NPUSHMEM_BY_TEAM(SUM, sum_exscan, __VA_ARGS__)

#define shmem_cswap(...) NPUSHMEM_BY_FIRST(OLD, cswap, __VA_ARGS__)
#define shmem_fadd(...) NPUSHMEM_BY_FIRST(OLD, fadd, __VA_ARGS__)
#define shmem_finc(...) NPUSHMEM_BY_FIRST(OLD, finc, __VA_ARGS__)
#define shmem_add(...) NPUSHMEM_BY_FIRST(OLD, add, __VA_ARGS__)
#define shmem_inc(...) NPUSHMEM_BY_FIRST(OLD, inc, __VA_ARGS__)
#define shmem_fetch(...) NPUSHMEM_BY_FIRST(OLDEXT, fetch, __VA_ARGS__)
#define shmem_set(...) NPUSHMEM_BY_FIRST(OLDEXT, set, __VA_ARGS__)
#define shmem_swap(...) NPUSHMEM_BY_FIRST(OLDEXT, swap, __VA_ARGS__)

/* With a context or without; over a team or over an active set. */
#define shmem_signal_set(FIRST, ...) \
    _Generic((FIRST), shmem_ctx_t : shmem_ctx_signal_set, default : shmem_signal_set)(FIRST, __VA_ARGS__)
#define shmem_signal_add(FIRST, ...) \
    _Generic((FIRST), shmem_ctx_t : shmem_ctx_signal_add, default : shmem_signal_add)(FIRST, __VA_ARGS__)
#define NPUSHMEM_FIRST(FIRST, ...) FIRST
#define shmem_sync(...) \
    _Generic((NPUSHMEM_FIRST(__VA_ARGS__, 0)), shmem_team_t : shmem_team_sync, default : shmem_sync)(__VA_ARGS__)

#endif
