// SPDX-License-Identifier: BSD-3-Clause
// Put and get of one type in all forms, as functions of one signature, so one test covers every type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "npushmem.h"
#include "npushmemx.h"

inline bool operator==(npushmemx_half_t a, npushmemx_half_t b) { return a.bits == b.bits; }
inline bool operator==(npushmemx_bfloat16_t a, npushmemx_bfloat16_t b) { return a.bits == b.bits; }

namespace npushmem::api_test {

// Null where the family lacks the form.
template <class T>
struct RmaForms {
    std::string name;
    void (*p)(T*, T, int) = nullptr;
    T (*g)(const T*, int) = nullptr;
    void (*put)(T*, const T*, std::size_t, int) = nullptr;
    void (*get)(T*, const T*, std::size_t, int) = nullptr;
    void (*put_nbi)(T*, const T*, std::size_t, int) = nullptr;
    void (*get_nbi)(T*, const T*, std::size_t, int) = nullptr;
    void (*iput)(T*, const T*, std::ptrdiff_t, std::ptrdiff_t, std::size_t, int) = nullptr;
    void (*iget)(T*, const T*, std::ptrdiff_t, std::ptrdiff_t, std::size_t, int) = nullptr;
    void (*put_signal)(T*, const T*, std::size_t, std::uint64_t*, std::uint64_t, int, int) = nullptr;
    void (*put_signal_nbi)(T*, const T*, std::size_t, std::uint64_t*, std::uint64_t, int, int) = nullptr;
};

// An element of the untyped forms; every byte counts.
template <std::size_t Bytes>
struct Block {
    unsigned char bytes[Bytes];
    friend bool operator==(const Block&, const Block&) = default;
};

template <class T>
struct ElementOf {
    static T make(unsigned value) { return static_cast<T>(value); }
};
// Any bits: nothing but copies may happen to them.
template <>
struct ElementOf<npushmemx_half_t> {
    static npushmemx_half_t make(unsigned value) { return {static_cast<std::uint16_t>(value * 521)}; }
};
template <>
struct ElementOf<npushmemx_bfloat16_t> {
    static npushmemx_bfloat16_t make(unsigned value) { return {static_cast<std::uint16_t>(value * 521)}; }
};
template <std::size_t Bytes>
struct ElementOf<Block<Bytes>> {
    static Block<Bytes> make(unsigned value) {
        Block<Bytes> block{};
        for (std::size_t i = 0; i < Bytes; ++i) block.bytes[i] = static_cast<unsigned char>(value + i * 7);
        return block;
    }
};

}  // namespace npushmem::api_test
