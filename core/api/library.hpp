// The one runtime that the C API needs, and the reports of failures. All mutable state at namespace scope is here and
// in contexts.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/api/contexts.hpp"
#include "core/runtime/runtime.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::api {

enum class ApiNames { npushmem, openshmem };

// Converts a report to the names of OpenSHMEM: functions and constants. Environment variables, tools and extensions
// (npushmemx_) have no other names.
std::string to_openshmem_names(std::string_view text);

// Sets the names in which failures are reported from now on. A jump from a shmem_ name leaves no trace, so the library
// through which the program started (or, before any start, loaded) the runtime decides.
void set_api_names(ApiNames names);

bool uses_openshmem_names();

// The highest level of thread support that the program has requested; the library itself supports all levels.
int thread_level();
void raise_thread_level(int requested);

// Returns null outside init..finalize. The kernel checker takes the call for the start of a host operation that may
// order accesses of kernels on this and other PEs.
Runtime* runtime();
// The same for calls that order nothing, or only as meetings of all PEs do.
Runtime* runtime_unnoted();

// Starts the library, or counts one more start if it runs already.
Status start(const StartRequest& request);
// Reverts one start; the last one ends the library. Fails if the library was not running.
Status stop();

// Records the failure of the API function `function` for npushmemx_last_error, logs it, and ends the job if
// NPUSHMEM_ON_ERROR says so. The failure counts as one of the job until the program calls npushmemx_last_error.
void fail(std::string_view function, const Status& status);

// As fail, for a function whose value (NULL, or an invalid handle) shows the failure to the program. Collectives use
// fail, because programs rarely read their return codes.
void fail_by_value(std::string_view function, const Status& status);

// As fail_by_value, for a function that returns the failure: the caller decides about the job.
void fail_returned(std::string_view function, const Status& status);
// Calls fail_returned for a failure. Returns the number to return: 0, or the failure's.
int report_code(std::string_view function, const Status& status);

// As fail, for a start whose caller gets no return value: the job fails.
void fail_start(std::string_view function, const Status& status);

// As fail_start, where the standard requires that the program ends: it does, unless NPUSHMEM_ON_ERROR is "report".
void fail_program(std::string_view function, const Status& status);

// Returns the failure "called outside init..finalize".
Status not_running();

// Returns this thread's last failure. The program then knows the thread's failures since the last clear_failure.
const Status& last_failure();
// Clears the last failure. It still counts for the job if the program has not asked for it.
void clear_failure();

}  // namespace npushmem::api
