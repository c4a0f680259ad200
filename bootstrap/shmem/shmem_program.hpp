// SPDX-License-Identifier: BSD-3-Clause
// An OpenSHMEM program that runs in this process, as a launcher.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "bootstrap/launcher/launched_job.hpp"
#include "npushmem/plugin/status.hpp"

namespace npushmem::shmem {

// The OpenSHMEM functions that a start needs, looked up in the library of this process.
struct Calls {
    enum class Running { no, yes, unknown };

    // Code::state if there is no library, or it is npushmem.
    static Result<Calls> of_process();

    int (*my_pe)() = nullptr;
    int (*n_pes)() = nullptr;
    void* (*malloc)(std::size_t) = nullptr;
    void (*barrier_all)() = nullptr;
    void (*putmem)(void*, const void*, std::size_t, int) = nullptr;
    void (*fence)() = nullptr;
    void (*quiet)() = nullptr;
    void (*longlong_p)(long long*, long long, int) = nullptr;
    long long (*longlong_g)(const long long*, int) = nullptr;
    Running running = Running::unknown;  // not every library reports it
};

// The OpenSHMEM program of this process as the launcher of its PEs. Messages travel through symmetric memory of the
// other library. It is allocated once and never freed, because the program may have finalized that library by then.
class ShmemProgram final : public launcher::Launcher {
public:
    // Collective, like shmem_malloc.
    static Result<ShmemProgram> begin();
    ShmemProgram(ShmemProgram&& other) noexcept
        : calls_(other.calls_),
          mailbox_(other.mailbox_),
          rank_(other.rank_),
          nranks_(other.nranks_),
          broadcasts_(other.broadcasts_) {}

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    Result<std::string> broadcast(const std::string& message, launcher::Deadline deadline) override;
    void end() {}

private:
    // Symmetric. The number is written after the text, with a fence between them.
    struct Mailbox {
        long long number;  // of the complete message
        std::array<char, launcher::start_message_characters + 1> text;
    };

    ShmemProgram(const Calls& calls, Mailbox* mailbox)
        : calls_(calls), mailbox_(mailbox), rank_(calls.my_pe()), nranks_(calls.n_pes()) {}
    void post(const std::string& message) const;
    [[nodiscard]] Status await(launcher::Deadline deadline) const;

    Calls calls_;
    Mailbox* mailbox_;
    int rank_;
    int nranks_;
    long long broadcasts_ = 0;  // messages so far
};

}  // namespace npushmem::shmem
