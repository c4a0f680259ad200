// SPDX-License-Identifier: BSD-3-Clause
// The reports of failed API calls: to the program, to the log and to the job.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "core/base/log.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/runtime/runtime.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::api {

// Reports of a PE to npushmem-run, if that started it, and the end of the whole job.

// "exit": the program ends the job with this status. Returns false if there is no launcher, or it does not listen.
// `openshmem`: the program uses the names of OpenSHMEM, and so does the launcher's report.
bool report_exit(int status, bool openshmem);

// "failed": the library cannot serve this PE any more (its start failed, or a peer is lost), so the job fails whatever
// the program returns.
bool report_job_failure(int status);

// Adds to the number of failed calls that the program has not queried; negative after a query. The job
// fails if any are left.
void report_failed_calls(int by);

// Ends the whole job from one PE: reports to the launcher if there is one, aborts the bootstrap, and without a launcher
// sends a signal to the PEs of this host; then exits with `status`. With a null `runtime` only this process ends.
[[noreturn]] void exit_job(Runtime* runtime, int status);

enum class ApiNames { npushmem, openshmem };

// Converts a report to the names of OpenSHMEM: functions and constants. Environment variables, tools and extensions
// (npushmemx_) have no other names.
std::string to_openshmem_names(std::string_view text);

// Sets the names in which failures are reported from now on. A jump from a shmem_ name leaves no trace, so the library
// through which the program started (or, before any start, loaded) the runtime decides.
void set_api_names(ApiNames names);

bool uses_openshmem_names();

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

// Run `call`, which returns a Status, as the body of an API function, and report its failure: with report_code or with
// fail. Return the number of the Status. std::bad_alloc ends the process.
template <class Call>
int code_of_call(const char* function, Call&& call) {
    return end_on_bad_alloc(function, [&] { return report_code(function, call()); });
}
template <class Call>
int run_call(const char* function, Call&& call) {
    return end_on_bad_alloc(function, [&] {
        const Status done = call();
        if (!done.ok()) fail(function, done);
        return static_cast<int>(done.code());
    });
}

// As fail, for a start whose caller gets no return value: the job fails.
void fail_start(std::string_view function, const Status& status);

// As fail_start, where the standard requires that the program ends: it does, unless NPUSHMEM_ON_ERROR is "report".
void fail_program(std::string_view function, const Status& status);
// The same after a failure that was reported.
void end_program();

// Returns this thread's last failure. The program then knows the thread's failures since the last clear_failure.
const Status& last_failure();
// Clears the last failure. It still counts for the job if the program has not queried it.
void clear_failure();
// Lets a child of fork begin without the failures of its parent's thread.
void forget_unchecked_failures();

// Logs the failures of this process: a limited number for each start, and one line while the last start has failed. Any
// thread.
class FailureLog {
public:
    // `prefix` begins the lines that are logged after the end of this runtime.
    void record_start(std::string prefix);
    void record_failed_start();
    [[nodiscard]] bool start_failed() const { return start_failed_.load(std::memory_order_relaxed); }

    // Logs to `running`, the log of the running library; null: to standard error.
    void log(const Log* running, const Status& failure);

    // A child of fork gets a usable lock.
    void lock_before_fork() { lock_.lock(); }
    void unlock_after_fork() { lock_.unlock(); }

private:
    bool repeats_not_running(const Status& failure);
    [[nodiscard]] std::string prefix();

    // Relaxed throughout: the atomic members publish no other memory.
    std::atomic<int> reports_{0};                  // since the last start
    std::atomic<bool> start_failed_{false};        // the last start failed
    std::atomic<bool> not_running_logged_{false};  // a call after the failed start was reported
    std::mutex lock_;
    std::string prefix_;  // under lock_
};

// Returns this process' log of failures.
FailureLog& failure_log();

}  // namespace npushmem::api
