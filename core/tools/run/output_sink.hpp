// The launcher's own standard output or error as a place for text that never blocks the launcher: what the reader does
// not take yet waits here.
#pragma once

#include <string>

#include "core/tools/run/fd.hpp"

namespace npushmem::run {

class OutputSink {
public:
    // Above this much waiting text the launcher stops reading from PEs.
    static constexpr std::size_t high_water = std::size_t{1} << 20;

    // `descriptor` stays the caller's. Terminals and pipes are opened a second time, because O_NONBLOCK on the
    // descriptor itself would change it for every process that shares it.
    explicit OutputSink(int descriptor);

    [[nodiscard]] std::string& text() { return waiting_; }
    // Writes what the reader takes now.
    void flush();

    [[nodiscard]] int fd() const { return own_.open() ? own_.get() : shared_; }
    [[nodiscard]] bool idle() const { return waiting_.empty(); }
    [[nodiscard]] bool full() const { return waiting_.size() > high_water; }
    // The reader is gone or the file is full: text is dropped from now on.
    [[nodiscard]] bool broken() const { return error_ != 0; }
    // Why, as in errno; 0 while nothing is lost.
    [[nodiscard]] int error() const { return error_; }

private:
    int shared_;
    Fd own_;
    bool socket_ = false;
    int error_ = 0;
    std::string waiting_;
};

}  // namespace npushmem::run
