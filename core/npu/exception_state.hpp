// The C++ runtime keeps the exceptions being handled per thread; cores that take turns on one thread need them per
// core, or a core that waits inside a catch block would hand its exception to another.
#pragma once

#include <cxxabi.h>

namespace npushmem::npu::detail {

// The layout that the Itanium C++ ABI prescribes for what __cxa_get_globals returns.
struct ExceptionState {
    void* caught = nullptr;
    unsigned int uncaught = 0;

    // Of the calling thread.
    static ExceptionState& current() { return *reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals()); }
};

}  // namespace npushmem::npu::detail
