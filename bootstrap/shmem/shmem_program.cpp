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
    void* const memory = calls.value().malloc(sizeof(Mailbox));
    if (memory == nullptr) return Status{Code::memory, fmt::format("shmem_malloc of {} bytes failed", sizeof(Mailbox))};
    // Not shmem_calloc: there are libraries that clear after its barrier, and so what others have put meanwhile.
    auto* const mailbox = ::new (memory) Mailbox{};
    calls.value().barrier_all();
    return ShmemProgram(calls.value(), mailbox);
}

// A start ends after all PEs have got their message, so the mailbox is free when the next one begins.
Result<std::string> ShmemProgram::broadcast(const std::string& message, launcher::Deadline deadline) {
    ++broadcasts_;
    if (rank_ == 0) {
        post(message);
        return message;
    }
    if (Status arrived = await(deadline); !arrived.ok()) return arrived;
    return std::string(mailbox_->text.data());
}

void ShmemProgram::post(const std::string& message) const {
    for (int pe = 1; pe < nranks_; ++pe) calls_.putmem(mailbox_->text.data(), message.c_str(), message.size() + 1, pe);
    calls_.fence();
    for (int pe = 1; pe < nranks_; ++pe) calls_.longlong_p(&mailbox_->number, broadcasts_, pe);
    calls_.quiet();
}

// Asked through the library, which may have to work for the message to arrive.
Status ShmemProgram::await(launcher::Deadline deadline) const {
    while (calls_.longlong_g(&mailbox_->number, rank_) < broadcasts_) {
        if (deadline.passed())
            return {Code::timeout,
                    fmt::format("PE 0 of the OpenSHMEM program did not come to npushmem's start within {}",
                                format_duration(deadline.span()))};
        std::this_thread::yield();
    }
    return {};
}

}  // namespace npushmem::shmem
