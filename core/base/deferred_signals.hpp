// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>
#include <signal.h>

namespace npushmem {

// While this exists, no handler of a signal runs in this thread; the signals wait. Signals of faults are not blocked:
// the kernel ends a process without its handler if a fault raises a blocked signal. Threads started meanwhile keep the
// mask.
class DeferredSignals {
public:
    DeferredSignals() {
        sigset_t deferred;
        ::sigfillset(&deferred);
        for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) ::sigdelset(&deferred, fault);
        (void)::pthread_sigmask(SIG_BLOCK, &deferred, &before_);
    }
    DeferredSignals(const DeferredSignals&) = delete;
    DeferredSignals& operator=(const DeferredSignals&) = delete;
    ~DeferredSignals() { (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

}  // namespace npushmem
