// Passes the terminal's input on to PE 0. PE 0 cannot read the terminal itself: it is in another session. Used only
// when standard input is a terminal; anything else PE 0 inherits.
#pragma once

#include <string>

#include "core/tools/run/fd.hpp"
#include "core/tools/run/poller.hpp"

namespace npushmem::run {

class InputRelay {
public:
    // `to`: the writing end of PE 0's input.
    InputRelay(Poller& poller, int terminal, Fd to);
    InputRelay(const InputRelay&) = delete;
    InputRelay& operator=(const InputRelay&) = delete;
    ~InputRelay() { close(); }

    // Starts reading once the launcher is in the terminal's foreground: a background process that reads is stopped.
    void resume_in_foreground();
    // Is it waiting for the foreground, of which nothing gives notice? Then resume_in_foreground() wants to be called
    // now and then.
    [[nodiscard]] bool waiting_for_foreground() const { return to_.open() && !reading_ && waiting_.empty(); }
    void close();

private:
    [[nodiscard]] bool in_foreground() const;
    void read_terminal();
    void write_pipe();
    void stop_reading();

    Poller& poller_;
    int terminal_;
    Fd to_;
    bool reading_ = false;
    std::string waiting_;  // read but not yet taken by PE 0; while there is some, nothing is read
};

}  // namespace npushmem::run
