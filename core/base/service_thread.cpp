// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/service_thread.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <exception>
#include <utility>

namespace npushmem {

Result<std::thread> start_service_thread(const char* name, std::function<void()> run) {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread;
    Status failure;
    try {
        thread = std::thread(std::move(run));
    } catch (const std::exception& error) {  // std::system_error, std::bad_alloc
        failure = {Code::system, fmt::format("cannot start the thread {}: {}", name, error.what())};
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!failure.ok()) return failure;
    ::pthread_setname_np(thread.native_handle(), name);
    return thread;
}

}  // namespace npushmem
