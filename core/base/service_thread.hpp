// SPDX-License-Identifier: BSD-3-Clause
// Threads of the library.
#pragma once

#include <functional>
#include <thread>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// Starts a thread with all signals blocked: the program's threads receive them. `name` is a literal of at most 15
// characters. Fails with Code::system when the system has no thread left. An allocation that fails in the thread ends
// the process (end_without_memory): what the thread had begun is incomplete.
Result<std::thread> start_service_thread(const char* name, std::function<void()> run);

}  // namespace npushmem
