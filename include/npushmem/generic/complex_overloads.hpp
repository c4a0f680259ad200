// SPDX-License-Identifier: BSD-3-Clause
// In C++ the functions of complex types take std::complex; programs may as well have the compiler's own complex types,
// which are the same in memory. Included by shmem.h.
#ifndef NPUSHMEM_GENERIC_COMPLEX_OVERLOADS_HPP
#define NPUSHMEM_GENERIC_COMPLEX_OVERLOADS_HPP

#define NPUSHMEM_AS_COMPLEX(STD) reinterpret_cast<STD*>(dest), reinterpret_cast<const STD*>(source)
#define NPUSHMEM_X_TEAM(NAME, TYPE, STD, OP)                                                           \
    inline int shmem_##NAME##_##OP(shmem_team_t team, TYPE* dest, const TYPE* source, size_t nelems) { \
        return shmem_##NAME##_##OP(team, NPUSHMEM_AS_COMPLEX(STD), nelems);                            \
    }                                                                                                  \
    inline int shmem_##OP(shmem_team_t team, TYPE* dest, const TYPE* source, size_t nelems) {          \
        return shmem_##NAME##_##OP(team, dest, source, nelems);                                        \
    }
#define NPUSHMEM_X_SET(NAME, TYPE, STD, OP)                                                                           \
    inline void shmem_##NAME##_##OP(TYPE* dest, const TYPE* source, int nreduce, int start, int log_stride, int size, \
                                    TYPE* pWrk, long* pSync) {                                                        \
        shmem_##NAME##_##OP(NPUSHMEM_AS_COMPLEX(STD), nreduce, start, log_stride, size, reinterpret_cast<STD*>(pWrk), \
                            pSync);                                                                                   \
    }
#define NPUSHMEM_X(NAME, TYPE, STD)               \
    NPUSHMEM_X_TEAM(NAME, TYPE, STD, sum_reduce)  \
    NPUSHMEM_X_TEAM(NAME, TYPE, STD, prod_reduce) \
    NPUSHMEM_X_TEAM(NAME, TYPE, STD, sum_inscan)  \
    NPUSHMEM_X_TEAM(NAME, TYPE, STD, sum_exscan)  \
    NPUSHMEM_X_SET(NAME, TYPE, STD, sum_to_all)   \
    NPUSHMEM_X_SET(NAME, TYPE, STD, prod_to_all)
NPUSHMEM_X(complexf, npushmem_complexf, std::complex<float>)
NPUSHMEM_X(complexd, npushmem_complexd, std::complex<double>)
#undef NPUSHMEM_X
#undef NPUSHMEM_X_SET
#undef NPUSHMEM_X_TEAM
#undef NPUSHMEM_AS_COMPLEX

#endif
