#include "bootstrap/shmem/shmem_program.hpp"

#include <fmt/format.h>

#include <new>
#include <thread>

#include "core/base/parse.hpp"

namespace npushmem::shmem {

Result<ShmemProgram> ShmemProgram::begin() {
    const auto calls = Calls::of_process();
    if (!calls.ok()) return calls.status();
    if (calls.value().running == Calls::Running::no)
        return Status{Code::state,
                      "the OpenSHMEM library in this process is not running: call shmem_init before "
                      "npushmem's start and shmem_finalize after its end"};
    void* const memory = calls.value().malloc(sizeof(Board));
    if (memory == nullptr) return Status{Code::memory, fmt::format("shmem_malloc of {} bytes failed", sizeof(Board))};
    // Not shmem_calloc: there are libraries that clear after its barrier, and so what others have put meanwhile.
    auto* const board = ::new (memory) Board{};
    calls.value().barrier_all();
    return ShmemProgram(calls.value(), board);
}

// A start ends after all PEs have got their note, so the board is free when the next one begins.
Result<std::string> ShmemProgram::share(const std::string& note, launcher::Deadline deadline) {
    ++shared_;
    if (rank_ == 0) {
        post(note);
        return note;
    }
    if (Status arrived = await(deadline); !arrived.ok()) return arrived;
    return std::string(board_->text.data());
}

void ShmemProgram::post(const std::string& note) const {
    for (int pe = 1; pe < nranks_; ++pe) calls_.putmem(board_->text.data(), note.c_str(), note.size() + 1, pe);
    calls_.fence();
    for (int pe = 1; pe < nranks_; ++pe) calls_.longlong_p(&board_->number, shared_, pe);
    calls_.quiet();
}

// Asked through the library, which may have to work for the note to arrive.
Status ShmemProgram::await(launcher::Deadline deadline) const {
    while (calls_.longlong_g(&board_->number, rank_) < shared_) {
        if (deadline.passed())
            return {Code::timeout,
                    fmt::format("PE 0 of the OpenSHMEM program did not come to npushmem's start within {}",
                                format_duration(deadline.span()))};
        std::this_thread::yield();
    }
    return {};
}

}  // namespace npushmem::shmem
