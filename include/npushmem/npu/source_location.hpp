// SPDX-License-Identifier: BSD-3-Clause
// The place of a call in a kernel's source: std::source_location where the compiler has it. For compilers without it
// (clang before 15) a class with the same members. That class is larger, so a kernel and the library must come from
// compilers of the same kind, and its atomics need libatomic.
#pragma once

#include <version>
#ifdef __cpp_lib_source_location
#include <source_location>
#endif
#include <cstdint>

namespace npushmem::npu {

#ifdef __cpp_lib_source_location
using SourceLocation = std::source_location;
#else
class SourceLocation {
public:
    constexpr SourceLocation() = default;
    // Call it without arguments, as a default argument: then it names the line of the call.
    static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                            const char* function = __builtin_FUNCTION(),
                                            std::uint32_t line = __builtin_LINE()) {
        SourceLocation here;
        here.file_ = file;
        here.function_ = function;
        here.line_ = line;
        return here;
    }

    [[nodiscard]] constexpr std::uint32_t line() const { return line_; }
    [[nodiscard]] constexpr std::uint32_t column() const { return 0; }
    [[nodiscard]] constexpr const char* file_name() const { return file_; }
    [[nodiscard]] constexpr const char* function_name() const { return function_; }

private:
    const char* file_ = "";
    const char* function_ = "";
    std::uint32_t line_ = 0;
};
#endif

}  // namespace npushmem::npu
