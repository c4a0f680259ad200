// SPDX-License-Identifier: BSD-3-Clause
// The launcher's end of a conversation, played by a thread: it answers what it is asked from a script of its own.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>
#include <thread>

namespace npushmem::launcher {

class ScriptedLauncher {
public:
    // `play` is given the launcher's end, and may close it by returning.
    explicit ScriptedLauncher(std::function<void(int)> play) {
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0) ::abort();
        thread_ = std::thread([this, play = std::move(play)] {
            play(ends_[1]);
            ::shutdown(ends_[1], SHUT_RDWR);
        });
    }
    ScriptedLauncher(const ScriptedLauncher&) = delete;
    ScriptedLauncher& operator=(const ScriptedLauncher&) = delete;
    ~ScriptedLauncher() {
        ::shutdown(ends_[0], SHUT_RDWR);
        thread_.join();
        ::close(ends_[0]);
        ::close(ends_[1]);
    }

    [[nodiscard]] std::string fd() const { return std::to_string(ends_[0]); }

    static void send_text(int fd, const std::string& text) {
        (void)!::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    }
    // Up to and without the next `end`; empty at the conversation's end.
    static std::string receive_until(int fd, char end) {
        std::string out;
        for (char c = 0; ::read(fd, &c, 1) == 1 && c != end;) out.push_back(c);
        return out;
    }

private:
    std::array<int, 2> ends_{};
    std::thread thread_;
};

}  // namespace npushmem::launcher
