// SPDX-License-Identifier: BSD-3-Clause
// Opens shared objects by the dynamic linker, after checks that the linker does not make.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Checks that the file is a regular file with a complete shared object of this machine's class. The dynamic linker does
// not: a truncated file ends the process with a signal, and a special file may block it. Code::plugin_refused describes
// the fault.
Status check_elf_file(const std::string& path);

// Returns whether the memory can be read, without reading it.
bool is_readable(const void* address, std::size_t bytes);

// Checks the texts of a plugin, which are in few pages.
class ReadableTexts {
public:
    // Returns whether a terminated text can be read. The limit is 64 KiB, because texts of plugins are short.
    bool contain(const char* text);

private:
    std::optional<std::uintptr_t> known_page_;
};

// The linker's error, or a text that contains it, may say that a library is missing: returns the instruction to install
// it, with its package on Debian. Otherwise empty.
std::string remedy_for_missing_library(std::string_view error);

// A shared object opened by the dynamic linker; the destructor closes it.
class SharedLibrary {
public:
    // A symbol that the library, or one of its dependencies, defines.
    struct Symbol {
        void* address;
        bool own;           // defined by the library itself
        std::string owner;  // the file that defines it
    };

    // Of a plugin that the program contains.
    SharedLibrary() = default;
    // Resolves all symbols now and makes none visible to others. Signal handlers stay as they are, whatever the library
    // and its dependencies do when they are loaded. `path` must contain a '/'.
    static Result<SharedLibrary> open(const std::string& path);

    [[nodiscard]] std::optional<Symbol> find(const char* name) const;

private:
    struct Closer {
        void operator()(void* handle) const;
    };
    explicit SharedLibrary(void* handle) : handle_(handle) {}

    std::unique_ptr<void, Closer> handle_;
};

}  // namespace npushmem
