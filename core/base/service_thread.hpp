// Threads that the library runs beside the program's.
#pragma once

#include <functional>
#include <thread>

#include "npushmem/plugin/status.hpp"

namespace npushmem {

// All signals are blocked in it: the program's are for the program's threads. `name`: at most 15 characters.
// Code::system: there is no thread to be had.
Result<std::thread> start_service_thread(const char* name, std::function<void()> run);

}  // namespace npushmem
