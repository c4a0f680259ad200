// Passes on what a remote shell writes to its standard error: output to this process's own, records to the launcher. A
// thread does it, so that a slow reader of the output does not keep the process from its other work.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "core/tools/run/fd.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::run {

class ErrorRelay {
public:
    // `from`: the reading end of the shell's standard error.
    static Result<std::unique_ptr<ErrorRelay>> start(Fd from, const std::string& mark);
    ErrorRelay(const ErrorRelay&) = delete;
    ErrorRelay& operator=(const ErrorRelay&) = delete;
    ~ErrorRelay() { finish(); }

    // The shell has ended: passes on what it has left, and ends. Processes that still hold the stream are not awaited.
    void finish();
    // Has the launcher received a number of failed calls?
    [[nodiscard]] bool passed_failed_calls() const { return passed_failed_calls_; }

private:
    ErrorRelay() = default;
    void run(const std::string& mark);
    [[nodiscard]] bool wait_for_more();

    Fd from_;
    Fd stop_reading_;
    Fd stop_;  // closed to end the thread
    std::size_t left_ = 0;
    bool stopping_ = false;
    std::atomic<bool> passed_failed_calls_{false};
    std::thread thread_;
};

}  // namespace npushmem::run
