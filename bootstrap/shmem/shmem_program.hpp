// The OpenSHMEM program in this process as what has started its PEs. Notes travel through symmetric memory of the other
// library, which is allocated once and stays: the program may have finalized that library when it could be freed.
#pragma once

#include <array>
#include <string>

#include "bootstrap/launcher/launcher.hpp"
#include "bootstrap/shmem/calls.hpp"

namespace npushmem::shmem {

class ShmemProgram final : public launcher::Launcher {
public:
    // Collective, as shmem_malloc is.
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
    // Symmetric. The number is written after the text: the fence between them keeps the order.
    struct Mailbox {
        long long number;  // of the message that is complete
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
