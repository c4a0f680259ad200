// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/service_thread.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/out_of_memory.hpp"

namespace npushmem {

Result<std::thread> start_service_thread(const char* name, std::function<void()> run) {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread;
    int error = 0;
    try {
        thread = std::thread([name, run = std::move(run)] { end_on_bad_alloc(name, run); });
    } catch (const std::system_error& failed) {
        error = failed.code().value();
    } catch (const std::bad_alloc&) {
        error = ENOMEM;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0)
        return Status{Code::system, fmt::format("cannot start the thread {}: {}", name, std::strerror(error))};
    ::pthread_setname_np(thread.native_handle(), name);
    return thread;
}

}  // namespace npushmem
