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
          board_(other.board_),
          rank_(other.rank_),
          nranks_(other.nranks_),
          shared_(other.shared_) {}

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }
    Result<std::string> share(const std::string& note, launcher::Deadline deadline) override;
    void end() {}

private:
    // Symmetric. The number is written after the text: the fence between them keeps the order.
    struct Board {
        long long number;  // of the note that is complete
        std::array<char, launcher::note_characters + 1> text;
    };

    ShmemProgram(const Calls& calls, Board* board)
        : calls_(calls), board_(board), rank_(calls.my_pe()), nranks_(calls.n_pes()) {}
    void post(const std::string& note) const;
    [[nodiscard]] Status await(launcher::Deadline deadline) const;

    Calls calls_;
    Board* board_;
    int rank_;
    int nranks_;
    long long shared_ = 0;  // notes so far
};

}  // namespace npushmem::shmem
