// Lets pages be replaced under running threads: while an object of this class lives, a thread that writes to a page of
// the range which is read-only for the moment waits and tries again, instead of getting a signal.
//
// It is the process's handler of SIGSEGV meanwhile; what is not about the range goes to the handler before. A thread
// that blocks this signal cannot be held, and a system call that writes into such a page for another thread fails with
// EFAULT.
#pragma once

#include <csignal>
#include <cstdint>

namespace npushmem {

class WriteFaultGuard {
public:
    WriteFaultGuard(std::uintptr_t begin, std::uint64_t bytes);
    WriteFaultGuard(const WriteFaultGuard&) = delete;
    WriteFaultGuard& operator=(const WriteFaultGuard&) = delete;
    ~WriteFaultGuard();

    // Has this process any other thread?
    static bool needed();
};

}  // namespace npushmem
