// SPDX-License-Identifier: BSD-3-Clause
// The atomics of one type as functions of one signature; null where the type lacks the operation.
#pragma once

#include <string>

#include "npushmem.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {

template <class T>
struct Fetching {
    T (*now)(T*, T, int) = nullptr;
    void (*later)(T*, T*, T, int) = nullptr;  // _nbi
};

template <class T>
struct AtomicForms {
    using Update = void (*)(T*, T, int);

    std::string name;
    T (*fetch)(const T*, int) = nullptr;
    void (*fetch_nbi)(T*, const T*, int) = nullptr;
    Update set = nullptr;
    Fetching<T> swap = {};
    T (*compare_swap)(T*, T, T, int) = nullptr;
    void (*compare_swap_nbi)(T*, T*, T, T, int) = nullptr;
    void (*inc)(T*, int) = nullptr;
    T (*fetch_inc)(T*, int) = nullptr;
    void (*fetch_inc_nbi)(T*, T*, int) = nullptr;
    Update add = nullptr;
    Fetching<T> fetch_add = {};
    Update bit_and = nullptr;
    Update bit_or = nullptr;
    Update bit_xor = nullptr;
    Fetching<T> fetch_and = {};
    Fetching<T> fetch_or = {};
    Fetching<T> fetch_xor = {};
};

// Calls visit(forms) for every type of the tables of atomics. A type may come in several parts: what the extended and
// standard tables give, what the bitwise table gives, and the floating-point additions.
template <class Visit>
void for_each_atomic_type(Visit&& visit) {
#define EXTENDED(NAME, TYPE)                                                  \
    {                                                                         \
        AtomicForms<TYPE> forms{.name = #NAME};                               \
        forms.fetch = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch);         \
        forms.fetch_nbi = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch_nbi); \
        forms.set = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_set);             \
        forms.swap = {NPUSHMEM_CALLS(npushmem_##NAME##_atomic_swap),          \
                      NPUSHMEM_CALLS(npushmem_##NAME##_atomic_swap_nbi)};     \
        visit(forms);                                                         \
    }
#define STANDARD(NAME, TYPE)                                                                \
    {                                                                                       \
        AtomicForms<TYPE> forms{.name = #NAME};                                             \
        forms.fetch = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch);                       \
        forms.set = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_set);                           \
        forms.compare_swap = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_compare_swap);         \
        forms.compare_swap_nbi = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_compare_swap_nbi); \
        forms.inc = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_inc);                           \
        forms.fetch_inc = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch_inc);               \
        forms.fetch_inc_nbi = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch_inc_nbi);       \
        forms.add = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_add);                           \
        forms.fetch_add = {NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch_add),              \
                           NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch_add_nbi)};         \
        visit(forms);                                                                       \
    }
#define BITWISE(NAME, TYPE)                                                         \
    {                                                                               \
        AtomicForms<TYPE> forms{.name = #NAME};                                     \
        forms.fetch = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch);               \
        forms.set = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_set);                   \
        forms.bit_and = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_and);               \
        forms.bit_or = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_or);                 \
        forms.bit_xor = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_xor);               \
        forms.fetch_and = {NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch_and),      \
                           NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch_and_nbi)}; \
        forms.fetch_or = {NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch_or),        \
                          NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch_or_nbi)};   \
        forms.fetch_xor = {NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch_xor),      \
                           NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch_xor_nbi)}; \
        visit(forms);                                                               \
    }
#define FLOATING(NAME, TYPE)                                                         \
    {                                                                                \
        AtomicForms<TYPE> forms{.name = #NAME};                                      \
        forms.fetch = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_fetch);                \
        forms.set = NPUSHMEM_CALLS(npushmem_##NAME##_atomic_set);                    \
        forms.add = NPUSHMEM_CALLS(npushmemx_##NAME##_atomic_add);                   \
        forms.fetch_add = {NPUSHMEM_CALLS(npushmemx_##NAME##_atomic_fetch_add),      \
                           NPUSHMEM_CALLS(npushmemx_##NAME##_atomic_fetch_add_nbi)}; \
        visit(forms);                                                                \
    }
    NPUSHMEM_FOR_EACH_EXTENDED_ATOMIC_TYPE(EXTENDED)
    NPUSHMEM_FOR_EACH_FLOAT_ATOMIC_TYPE(FLOATING)
    NPUSHMEM_FOR_EACH_ATOMIC_TYPE(STANDARD)
    NPUSHMEM_FOR_EACH_BITWISE_TYPE(BITWISE)
#undef EXTENDED
#undef FLOATING
#undef STANDARD
#undef BITWISE
}

}  // namespace npushmem::api_test
