// SPDX-License-Identifier: BSD-3-Clause
// A PE that executes its arguments in order, for starts without a launcher and for failures. Rank and size come
// from SCENARIO_RANK and SCENARIO_NRANKS, or else from the launcher.
//
//   [<rank>:|!<rank>:]<step>[=<value>]    with <rank>, only that one does it; with !, all others do
//     setenv=<name>=<value>
//     id               rank 0 makes a unique id and passes it on by the pipe SCENARIO_IDS, the others read it there
//     other_id         the id of a job that nobody else knows
//     spoil=<byte>     changes that byte of the id               zero           the id becomes all zeros
//     attr             init_attr with the id                     init           init from the environment
//     finalize  barrier  sync  quiet  free
//     malloc=<bytes>   the object that the next steps use         wait=<value>  wait_until it has that value
//     stream_wait=<value>  the same in a stream
//     signal_wait      for a signal that nobody sends             put=<pe>      a value into the object of that PE
//     kernel_wait=<value>  a kernel waits until the object has that value
//     team  destroy    a team of all PEs
//     split=<count>    a team of the first PEs
//     shrink           the team becomes the living ones of the world
//     team_barrier
//     set_barrier=<count>  a barrier of the active set of the first PEs
//     lock=<pe>  test_lock=<pe>  a lock behind the object whose home is that PE, of 4 PEs
//     poll=<value>     reads the object until it has that value; no death ends it
//     ring             all put to the right and check what they got
//     code=<code>      the last failure has this code; clears it
//     print            the last failure's code and text to standard output; clears it
//     global_exit=<status>
//     report=<word>    "<rank> <word> <pid>" on the descriptor RUN_TEST_REPORT
//     hold             waits until the test closes the pipe SCENARIO_GO
//     names=<folder>   the names in a folder, to standard output
//     fork             makes a child that does nothing, for at most two minutes
//     pause  exit=<status>  die=<signal>
#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "npushmemx.h"

namespace {

long summed = 1;

int number(const char* name, int otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
}

void write_all(int fd, const std::string& text) {
    if (::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::_Exit(99);
}

class Scenario {
public:
    int run(int count, char** steps) {
        for (int i = 1; i < count; ++i) perform(steps[i]);
        return 0;
    }

private:
    using Step = std::function<void(const std::string&)>;

    void perform(std::string step) {
        const auto colon = step.find(':');
        if (colon != std::string::npos && colon < step.find('=')) {
            const bool others = step[0] == '!';
            const bool mine = std::atoi(step.c_str() + (others ? 1 : 0)) == rank_;
            if (mine == others) return;
            step.erase(0, colon + 1);
        }
        const auto split = step.find('=');
        const auto found = steps_.find(step.substr(0, split));
        if (found == steps_.end()) std::_Exit(98);
        found->second(split == std::string::npos ? "" : step.substr(split + 1));
    }

    void make_or_read_id() {
        const int ids = number("SCENARIO_IDS", -1);
        if (rank_ != 0) {
            if (::read(number("SCENARIO_IDS_READ", -1), id_.bytes, sizeof id_.bytes) != sizeof id_.bytes)
                std::_Exit(97);
            return;
        }
        if (npushmemx_get_uniqueid(&id_) != 0) return;  // the others wait for it until this process ends
        for (int i = 1; i < nranks_; ++i)
            write_all(ids, std::string(reinterpret_cast<const char*>(id_.bytes), sizeof id_.bytes));
    }

    void start_with_id() {
        npushmemx_init_attr_t attr = NPUSHMEMX_INIT_ATTR_INITIALIZER;
        if (npushmemx_set_attr_uniqueid_args(rank_, nranks_, &id_, &attr) != 0) return;
        if (npushmemx_init_attr(NPUSHMEMX_INIT_WITH_UNIQUEID, &attr) == 0) require_rank();
    }
    void start() {
        if (npushmem_init_thread(NPUSHMEM_THREAD_SINGLE, nullptr) == 0) require_rank();
    }
    void require_rank() const {
        if (npushmem_my_pe() != rank_ || npushmem_n_pes() != nranks_)
            end(fmt::format("this is PE {} of {}", npushmem_my_pe(), npushmem_n_pes()));
    }

    void ring() const {
        auto* word = static_cast<int*>(npushmem_calloc(1, sizeof(int)));
        if (word == nullptr) end("no memory for the ring");
        npushmem_int_p(word, 100 + rank_, (rank_ + 1) % nranks_);
        npushmem_barrier_all();
        const int expected = 100 + (rank_ + nranks_ - 1) % nranks_;
        if (*word != expected) end(fmt::format("the ring brought {}, not {}", *word, expected));
        npushmem_free(word);
    }

    void wait_in_a_kernel(std::uint64_t value) {
        npushmemx_stream_t stream = nullptr;
        if (npushmemx_stream_create(&stream) != 0) end("no stream");
        (void)npushmemx_signal_wait_until_on_stream(reinterpret_cast<std::uint64_t*>(object_), NPUSHMEM_CMP_EQ, value,
                                                    stream);
        if (npushmemx_stream_synchronize(stream) != 0) end("the kernel failed");
        npushmemx_stream_destroy(stream);
    }

    // Adjacent words have adjacent homes.
    [[nodiscard]] long* lock_of(int home) const {
        long* word = object_ + 1;
        while (reinterpret_cast<std::uintptr_t>(word) / sizeof *word % 4 != static_cast<unsigned>(home)) ++word;
        return word;
    }

    // All words are zero before and after each call.
    void barrier_of_set(int count) const {
        static_assert(NPUSHMEM_SYNC_SIZE <= 16);
        npushmem_barrier(0, 0, count, object_ + 16);
    }

    void require_code(int expected) const {
        const char* message = nullptr;
        const int code = npushmemx_last_error(&message);
        if (code != expected) end(fmt::format("the last failure is {} '{}', not {}", code, message, expected));
        npushmemx_clear_error();
    }
    static void print() {
        const char* message = nullptr;
        const int code = npushmemx_last_error(&message);
        write_all(1, fmt::format("{} {}\n", code, message));
        npushmemx_clear_error();
    }

    [[noreturn]] void end(const std::string& why) const {
        write_all(2, fmt::format("rank {}: {}\n", rank_, why));
        std::_Exit(95);
    }

    void report(const std::string& word) const {
        write_all(number("RUN_TEST_REPORT", -1), fmt::format("{} {} {}\n", rank_, word, ::getpid()));
    }
    static void hold() {
        char byte = 0;
        (void)!::read(number("SCENARIO_GO", -1), &byte, 1);
    }
    static void names(const std::string& folder) {
        DIR* directory = ::opendir(folder.c_str());
        if (directory == nullptr) std::_Exit(96);
        while (const dirent* entry = ::readdir(directory))
            if (entry->d_name[0] != '.') write_all(1, folder + "/" + entry->d_name + "\n");
        ::closedir(directory);
    }

    int rank_ = number("SCENARIO_RANK", number("NPUSHMEM_PE", -1));
    int nranks_ = number("SCENARIO_NRANKS", number("NPUSHMEM_NPES", -1));
    npushmemx_uniqueid_t id_{};
    long* object_ = nullptr;
    npushmem_team_t team_ = NPUSHMEM_TEAM_INVALID;
    const std::map<std::string, Step> steps_{
        {"id", [this](const std::string&) { make_or_read_id(); }},
        {"spoil", [this](const std::string& byte) { id_.bytes[std::atoi(byte.c_str())] ^= 1; }},
        {"other_id", [this](const std::string&) { (void)npushmemx_get_uniqueid(&id_); }},
        {"zero", [this](const std::string&) { id_ = {}; }},
        {"attr", [this](const std::string&) { start_with_id(); }},
        {"init", [this](const std::string&) { start(); }},
        {"finalize", [](const std::string&) { npushmem_finalize(); }},
        {"barrier", [](const std::string&) { npushmem_barrier_all(); }},
        {"sync", [](const std::string&) { npushmem_sync_all(); }},
        {"sum", [](const std::string&) { (void)npushmem_long_sum_reduce(NPUSHMEM_TEAM_WORLD, &summed, &summed, 1); }},
        {"quiet", [](const std::string&) { npushmem_quiet(); }},
        {"malloc",
         [this](const std::string& bytes) {
             object_ = static_cast<long*>(npushmem_malloc(std::strtoull(bytes.c_str(), nullptr, 10)));
         }},
        {"calloc",
         [this](const std::string& bytes) {
             object_ = static_cast<long*>(npushmem_calloc(std::strtoull(bytes.c_str(), nullptr, 10), 1));
         }},
        {"free", [this](const std::string&) { npushmem_free(object_); }},
        {"wait",
         [this](const std::string& value) {
             npushmem_long_wait_until(object_, NPUSHMEM_CMP_EQ, std::atol(value.c_str()));
         }},
        {"stream_wait",
         [this](const std::string& value) {
             (void)npushmemx_long_wait_until_on_stream(object_, NPUSHMEM_CMP_EQ, std::atol(value.c_str()), nullptr);
             (void)npushmemx_stream_synchronize(nullptr);
         }},
        {"signal_wait",
         [this](const std::string&) {
             npushmem_signal_wait_until(reinterpret_cast<std::uint64_t*>(object_), NPUSHMEM_CMP_NE, 0);
         }},
        {"kernel_wait",
         [this](const std::string& value) { wait_in_a_kernel(std::strtoull(value.c_str(), nullptr, 10)); }},
        {"team",
         [this](const std::string&) {
             npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, nranks_, nullptr, 0, &team_);
         }},
        {"split",
         [this](const std::string& count) {
             npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, std::atoi(count.c_str()), nullptr, 0, &team_);
         }},
        {"shrink",
         [this](const std::string&) {
             if (npushmemx_team_shrink(NPUSHMEM_TEAM_WORLD, &team_) != 0) end("the shrink failed");
             npushmemx_clear_error();
         }},
        {"team_barrier", [this](const std::string&) { (void)npushmemx_team_barrier(team_); }},
        {"set_barrier", [this](const std::string& count) { barrier_of_set(std::atoi(count.c_str())); }},
        {"setenv",
         [](const std::string& variable) {
             const auto name = variable.substr(0, variable.find('='));
             (void)::setenv(name.c_str(), variable.c_str() + std::min(name.size() + 1, variable.size()), 1);
         }},
        {"destroy", [this](const std::string&) { npushmem_team_destroy(team_); }},
        {"lock", [this](const std::string& home) { npushmem_set_lock(lock_of(std::atoi(home.c_str()))); }},
        {"test_lock", [this](const std::string& home) { (void)npushmem_test_lock(lock_of(std::atoi(home.c_str()))); }},
        {"poll",
         [this](const std::string& value) {
             while (npushmem_long_atomic_fetch(object_, rank_) != std::atol(value.c_str())) npushmem_quiet();
         }},
        {"put", [this](const std::string& pe) { npushmem_long_p(object_, 7, std::atoi(pe.c_str())); }},
        {"ring", [this](const std::string&) { ring(); }},
        {"code", [this](const std::string& code) { require_code(std::atoi(code.c_str())); }},
        {"print", [](const std::string&) { print(); }},
        {"global_exit", [](const std::string& status) { npushmem_global_exit(std::atoi(status.c_str())); }},
        {"report", [this](const std::string& word) { report(word); }},
        {"hold", [](const std::string&) { hold(); }},
        {"names", [](const std::string& folder) { names(folder); }},
        {"fork",
         [](const std::string&) {
             if (::fork() != 0) return;
             ::alarm(120);
             for (;;) ::pause();
         }},
        {"pause",
         [](const std::string&) {
             for (;;) ::pause();
         }},
        {"exit", [](const std::string& status) { std::_Exit(std::atoi(status.c_str())); }},
        {"die", [](const std::string& signal) { std::raise(std::atoi(signal.c_str())); }},
    };
};

}  // namespace

int main(int argc, char** argv) { return Scenario().run(argc, argv); }
