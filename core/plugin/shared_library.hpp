// A shared object opened by the dynamic linker; closed when the value goes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

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
