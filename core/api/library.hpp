// Which names a program calls the library by, and reports in those names.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/api/contexts.hpp"
#include "core/runtime/runtime.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::api {

enum class ApiNames { npushmem, openshmem };

// A report of the library in the names of OpenSHMEM: functions and constants, not variables of the environment, tools
// and extensions (npushmemx_), which have no other names.
std::string to_openshmem_names(std::string_view text);

// The one runtime that the C API needs, and how its functions report failures. Everything mutable at namespace scope in
// the library is in this pair of files.
// The names in which failures are reported from now on. A jump from a shmem_ name leaves no trace of itself, so it is
// the library through which the program started (or, before any start, loaded) the runtime that decides.
void set_api_names(ApiNames names);

bool uses_openshmem_names();

// The level of thread support that the program has asked for, the highest so far; the library itself serves them all.
int thread_level();
void raise_thread_level(int requested);

// Null outside init..finalize.
Runtime* runtime();

// Starts the library, or counts one more start if it runs already.
Status start(const StartRequest& request);
// Takes one start back; the last one ends the library. A failure says that the library was not running.
Status stop();

// Records the failure of the API function `function` for npushmemx_last_error, writes it to the log, and ends the job
// when NPUSHMEM_ON_ERROR says so. It counts as a failure of the job until the program asks by npushmemx_last_error.
void fail(std::string_view function, const Status& status);

// As fail, for a function whose value (NULL, or an invalid handle) shows the failure to the program. A collective is
// none of these: it reports by fail, because programs rarely read the code that it returns.
void fail_by_value(std::string_view function, const Status& status);

// As fail_by_value, for a function that returns the failure: what becomes of the job is its caller's choice.
void fail_returned(std::string_view function, const Status& status);
// The number to return: 0, or that of a failure, after fail_returned.
int report_code(std::string_view function, const Status& status);

// As fail, for a start whose caller gets no return value: the job is lost.
void fail_start(std::string_view function, const Status& status);

// As fail_start, where the standard wants the program to end: it does, unless NPUSHMEM_ON_ERROR is "report".
void fail_program(std::string_view function, const Status& status);

// The failure "called outside init..finalize".
Status not_running();

// This thread's last failure. The program then knows of the thread's failures since the last clear_failure.
const Status& last_failure();
// Forgets the last failure; it stays one of the job's if nobody has asked.
void clear_failure();

}  // namespace npushmem::api
