// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/shmem/shmem_program.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <new>
#include <string_view>
#include <thread>

#include "core/base/parse.hpp"

namespace npushmem::shmem {

namespace {

template <class Function>
bool look_up(const char* name, Function& into) {
    into = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
    return into != nullptr;
}

// npushmem exports the same names, which would lead back here.
bool is_own(const void* function) {
    Dl_info where{};
    return ::dladdr(function, &where) != 0 && where.dli_fname != nullptr &&
           std::string_view(where.dli_fname).find("libnpushmem") != std::string_view::npos;
}

// shmem_query_initialized is a recent addition to the standard; Open MPI's library has its own flag.
Calls::Running ask_whether_running() {
    void (*query)(int*) = nullptr;
    if (look_up("shmem_query_initialized", query)) {
        int answer = 0;
        query(&answer);
        return answer != 0 ? Calls::Running::yes : Calls::Running::no;
    }
    const auto* flag = static_cast<const bool*>(::dlsym(RTLD_DEFAULT, "oshmem_shmem_initialized"));
    if (flag == nullptr) return Calls::Running::unknown;
    return *flag ? Calls::Running::yes : Calls::Running::no;
}

}  // namespace

Result<Calls> Calls::of_process() {
    Calls calls;
    const bool all = look_up("shmem_my_pe", calls.my_pe) && look_up("shmem_n_pes", calls.n_pes) &&
                     look_up("shmem_malloc", calls.malloc) && look_up("shmem_barrier_all", calls.barrier_all) &&
                     look_up("shmem_putmem", calls.putmem) && look_up("shmem_fence", calls.fence) &&
                     look_up("shmem_quiet", calls.quiet) && look_up("shmem_longlong_p", calls.longlong_p) &&
                     look_up("shmem_longlong_g", calls.longlong_g);
    if (!all || is_own(reinterpret_cast<const void*>(calls.my_pe)))
        return Status{Code::state,
                      "this process has no other OpenSHMEM library: link the program with one, or choose "
                      "another NPUSHMEM_BOOTSTRAP"};
    calls.running = ask_whether_running();
    return calls;
}

Result<ShmemProgram> ShmemProgram::begin() {
    const auto calls = Calls::of_process();
    if (!calls.ok()) return calls.status();
    if (calls.value().running == Calls::Running::no)
        return Status{Code::state,
                      "the OpenSHMEM library in this process is not running: call shmem_init before "
                      "npushmem's start and shmem_finalize after its end"};
    void* const memory = calls.value().malloc(sizeof(Mailbox));
    if (memory == nullptr) return Status{Code::memory, fmt::format("shmem_malloc of {} bytes failed", sizeof(Mailbox))};
    // Not shmem_calloc: some libraries clear the memory after its barrier, and so destroy the others' puts.
    auto* const mailbox = ::new (memory) Mailbox{};
    calls.value().barrier_all();
    return ShmemProgram(calls.value(), mailbox);
}

// A start ends after all PEs have received their message, so the mailbox is free when the next start begins.
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

// Reads through the library, which may have to make progress for the message to arrive.
Status ShmemProgram::await(launcher::Deadline deadline) const {
    while (calls_.longlong_g(&mailbox_->number, rank_) < broadcasts_) {
        if (deadline.passed())
            return {Code::timeout, fmt::format("PE 0 of the OpenSHMEM program did not call npushmem's start within {}",
                                               format_duration(deadline.span()))};
        std::this_thread::yield();
    }
    return {};
}

}  // namespace npushmem::shmem
