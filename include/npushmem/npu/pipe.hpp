// SPDX-License-Identifier: BSD-3-Clause
// The concurrent units of a vector core.
#pragma once

#include <string_view>

namespace npushmem::npu {

// Each pipe runs its commands in issue order. Only flags and barriers order different pipes.
enum class Pipe : unsigned char {
    scalar,    // issues all commands; scalar loads and stores
    vector,    // UB to UB: copy, fill, cast, arithmetic
    copy_in,   // GM to UB (MTE2)
    copy_out,  // UB to GM (MTE3)
    all,       // for pipe_barrier only
};

constexpr std::string_view name_of(Pipe pipe) {
    switch (pipe) {
        case Pipe::scalar: return "S";
        case Pipe::vector: return "V";
        case Pipe::copy_in: return "MTE2";
        case Pipe::copy_out: return "MTE3";
        case Pipe::all: return "all";
    }
    return "?";
}

// Flag ids a kernel may use per pair of pipes: 0 to 5. 6 and 7 belong to the library.
inline constexpr int flag_ids = 6;

}  // namespace npushmem::npu
