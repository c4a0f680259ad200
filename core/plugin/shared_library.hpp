// The dynamic linker trusts a file: one that is cut off ends the process with a signal, and one that is no regular file
// may block it. This check comes first.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Is this a regular file with a shared object of this machine's class, and with all bytes that are to be loaded?
// Code::plugin_refused says what is wrong.
Status check_elf_file(const std::string& path);

// Whether memory that a plugin points to can be read, without reading it.
bool is_readable(const void* address, std::size_t bytes);
// A text with its end. Texts of plugins are short: one without an end within 64 KiB is none.
bool is_readable_text(const char* text);

// A shared object opened by the dynamic linker; closed when the value goes.
class SharedLibrary {
public:
    // A symbol that the library, or something it depends on, defines.
    struct Symbol {
        void* address;
        bool own;           // defined by the library itself
        std::string owner;  // the file that defines it
    };

    // All symbols are resolved now, none of its own become visible to others, and signals are handled as before,
    // whatever the library and those it depends on do when they are loaded. `path` must contain a '/'.
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
