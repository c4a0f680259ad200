// SPDX-License-Identifier: BSD-3-Clause
// A job whose PEs die one after the other, by a seed: the living shrink the team and verify their work on it.
//     survivors <seed> <PEs that live at the end: 1, or 2: PE 0 and the last one>
//
// In each round the PEs work until a call fails because of a death. Some members of the round's team are chosen by the
// seed; a thread of each kills its process after a time, wherever it is then. PE 0 prints a line at the end. Status 0:
// all that lived verified everything.
#include <fmt/format.h>
#include <npushmem.h>
#include <npushmem/moe.h>
#include <npushmem/plugin/abi.h>
#include <npushmemx.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/integration/api/programs/team_layer.hpp"

namespace {

[[noreturn]] void complain(const std::string& what) {
    std::fputs(fmt::format("survivors: PE {}: {}\n", npushmem_my_pe(), what).c_str(), stderr);
    npushmem_global_exit(3);
    std::abort();
}

void require(bool holds, const char* what) {
    if (!holds) complain(what);
}

// Where the work of a round stands: all calls succeeded, or one failed because of a death.
enum class Work { done, interrupted };

// The memory of all PEs, allocated while all live.
struct Memory {
    static constexpr std::size_t words = 512;
    std::uint64_t* blocks = alloc(words);  // written by the member before this one
    std::uint64_t* signal = alloc(1);      // of the block
    std::uint64_t* counter = alloc(1);     // under the lock, on the team's first member
    long* lock = reinterpret_cast<long*>(alloc(1));
    std::uint64_t* for_kernel = alloc(1);  // a signal
    std::uint64_t* sent = alloc(3);
    std::uint64_t* received = alloc(3);

    static std::uint64_t* alloc(std::size_t count) {
        auto* made = static_cast<std::uint64_t*>(npushmem_calloc(count, sizeof(std::uint64_t)));
        require(made != nullptr, "no memory");
        return made;
    }
};

// The PEs that the seed lets die.
std::vector<int> mortals;

// The PEs that a report names as dead, of waits and of transports, must be some of those.
void check_named(const std::string& report) {
    static const std::regex names("PE ([0-9]+) has died|to PE ([0-9]+) failed|not complete: PE ([0-9]+)(?:$|;)");
    bool names_one = false;
    for (std::sregex_iterator found(report.begin(), report.end(), names), end; found != end; ++found) {
        names_one = true;
        const std::string text = found->str(1) + found->str(2) + found->str(3);
        if (std::ranges::find(mortals, std::atoi(text.c_str())) == mortals.end())
            complain("a living PE is named: " + report);
    }
    if (!names_one) complain("no PE is named: " + report);
}

// Only the death of a PE may fail a call.
Work result() {
    const char* message = nullptr;
    const int code = npushmemx_last_error(&message);
    if (code == 0) return Work::done;
    if (code != NPUSHMEM_E_PEER_DEAD) complain(fmt::format("a call failed with {}: {}", code, message));
    check_named(message);
    npushmemx_clear_error();
    return Work::interrupted;
}

class Round {
public:
    Round(Memory& memory, npushmem_team_t team, int number)
        : memory_(memory),
          team_(team),
          size_(npushmem_team_n_pes(team)),
          index_(npushmem_team_my_pe(team)),
          number_(static_cast<std::uint64_t>(number)) {}

    [[nodiscard]] int size() const { return size_; }

    // One turn of work; every result is verified.
    Work turn(std::uint64_t turn) {
        tag_ = number_ << 32 | turn;
        if (pass_block() == Work::interrupted || sum() == Work::interrupted || count() == Work::interrupted)
            return Work::interrupted;
        constexpr std::uint64_t turns_per_kernel = 4;
        if (turn % turns_per_kernel == 1 && wait_in_a_kernel() == Work::interrupted) return Work::interrupted;
        return synchronize();
    }

private:
    [[nodiscard]] int pe(int member) const { return npushmem_team_translate_pe(team_, member, NPUSHMEM_TEAM_WORLD); }

    // To the next member, from the one before.
    Work pass_block() {
        std::vector<std::uint64_t> block(Memory::words, tag_ + static_cast<std::uint64_t>(index_));
        const int next = pe((index_ + 1) % size_);
        npushmem_uint64_put_signal(memory_.blocks, block.data(), block.size(), memory_.signal, tag_,
                                   NPUSHMEM_SIGNAL_OP_SET, next);
        if (result() == Work::interrupted) return Work::interrupted;
        npushmem_signal_wait_until(memory_.signal, NPUSHMEM_CMP_GE, tag_);
        if (result() == Work::interrupted) return Work::interrupted;
        const std::uint64_t expected = tag_ + static_cast<std::uint64_t>((index_ + size_ - 1) % size_);
        for (std::size_t i = 0; i < Memory::words; ++i)
            if (memory_.blocks[i] != expected)
                complain(
                    fmt::format("word {} of round {} is {:#x}, not {:#x}", i, number_, memory_.blocks[i], expected));
        npushmem_quiet();
        std::uint64_t there = 0;
        npushmem_uint64_get(&there, memory_.signal, 1, next);
        if (result() == Work::interrupted) return Work::interrupted;
        if (there < tag_) complain("a get returned an old value");
        return Work::done;
    }

    Work sum() {
        memory_.sent[0] = tag_ + static_cast<std::uint64_t>(index_);
        memory_.sent[1] = 1;
        const int code = npushmem_uint64_sum_reduce(team_, memory_.received, memory_.sent, 2);
        if (result() == Work::interrupted) return Work::interrupted;
        require(code == 0, "a reduction failed without a report");
        const auto n = static_cast<std::uint64_t>(size_);
        require(memory_.received[1] == n && memory_.received[0] == n * tag_ + n * (n - 1) / 2, "wrong sum");
        return Work::done;
    }

    // Returns whether a call failed because the lock's home is dead, and this PE or the lock's holder does not map it:
    // the lock is lost.
    [[nodiscard]] bool has_lost_lock() const {
        const char* message = nullptr;
        if (npushmemx_last_error(&message) == 0) return false;
        const std::string_view report(message);
        for (const int mortal : mortals)
            if ((report.find(fmt::format("an atomic to PE {} failed", mortal)) != report.npos ||
                 report.find(fmt::format("PE {}, whose memory has the lock, is dead", mortal)) != report.npos) &&
                npushmem_team_translate_pe(NPUSHMEM_TEAM_WORLD, mortal, team_) < 0)
                return true;
        return false;
    }

    // A PE may die while it holds the lock.
    Work count() {
        if (memory_.lock == nullptr) return Work::done;
        const int home = pe(0);
        npushmem_set_lock(memory_.lock);
        if (has_lost_lock()) {
            memory_.lock = nullptr;
            npushmemx_clear_error();
            return Work::done;
        }
        if (result() == Work::interrupted) return Work::interrupted;
        const std::uint64_t before = npushmem_uint64_g(memory_.counter, home);
        npushmem_uint64_p(memory_.counter, before + 1, home);
        npushmem_quiet();
        const std::uint64_t after = npushmem_uint64_g(memory_.counter, home);
        const Work counted = result();
        npushmem_clear_lock(memory_.lock);
        if (result() == Work::interrupted || counted == Work::interrupted) return Work::interrupted;
        if (after != before + 1) complain("two PEs held the lock");
        return Work::done;
    }

    // For the signal of the member before. The kernel does not know who sends it.
    Work wait_in_a_kernel() {
        npushmemx_signal_op(memory_.for_kernel, tag_, NPUSHMEM_SIGNAL_OP_SET, pe((index_ + 1) % size_));
        npushmem_quiet();
        if (result() == Work::interrupted) return Work::interrupted;
        npushmemx_stream_t stream = nullptr;
        require(npushmemx_stream_create(&stream) == 0, "no stream");
        (void)npushmemx_signal_wait_until_on_stream(memory_.for_kernel, NPUSHMEM_CMP_GE, tag_, stream);
        const int code = npushmemx_stream_synchronize(stream);
        npushmemx_stream_destroy(stream);
        int dead = 0;
        require(npushmemx_team_get_failed(team_, 0, nullptr, &dead) == 0, "no list of the dead");
        require(code == 0 || (code == NPUSHMEM_E_PEER_DEAD && dead > 0), "a kernel failed without a death in its team");
        const Work done = code == 0 ? result() : Work::interrupted;
        npushmemx_clear_error();
        return done;
    }

    Work synchronize() {
        if (team_ == NPUSHMEM_TEAM_WORLD)
            npushmem_barrier_all();
        else if (tag_ % 2 == 0)
            (void)npushmemx_team_barrier(team_);
        else
            (void)npushmem_team_sync(team_);
        return result();
    }

    Memory& memory_;
    npushmem_team_t team_;
    int size_;
    int index_;
    std::uint64_t number_;
    std::uint64_t tag_ = 0;
};

// All members of the new team must be alike on all of them. They agree on the number of the next round.
Work verify_members(Memory& memory, npushmem_team_t team, int& number) {
    const int size = npushmem_team_n_pes(team);
    std::uint64_t hash = 1;
    for (int member = 0; member < size; ++member)
        hash =
            hash * 1000003 + static_cast<std::uint64_t>(npushmem_team_translate_pe(team, member, NPUSHMEM_TEAM_WORLD));
    memory.sent[0] = hash;
    memory.sent[1] = ~hash;
    memory.sent[2] = static_cast<std::uint64_t>(number);
    (void)npushmem_uint64_max_reduce(team, memory.received, memory.sent, 3);
    if (result() == Work::interrupted) return Work::interrupted;
    if (memory.received[0] != hash || memory.received[1] != ~hash) complain("the members of the new team differ");
    number = static_cast<int>(memory.received[2]) + 1;
    return Work::done;
}

// Synchronises on a team of all members, and destroys it.
Work use(npushmem_team_t team, int size) {
    if (result() == Work::interrupted) return Work::interrupted;
    require(npushmem_team_n_pes(team) == size, "a team has the wrong size");
    (void)npushmemx_team_barrier(team);
    if (result() == Work::interrupted) return Work::interrupted;
    npushmem_team_destroy(team);
    return result();
}

// Makes further teams of all members, by a split and by an id.
Work verify_formation(Memory& memory, npushmem_team_t team) {
    const int size = npushmem_team_n_pes(team);
    npushmem_team_t made = NPUSHMEM_TEAM_INVALID;
    (void)npushmem_team_split_strided(team, 0, 1, size, nullptr, 0, &made);
    if (use(made, size) == Work::interrupted) return Work::interrupted;
    npushmemx_team_config_t config{};
    if (npushmem_team_my_pe(team) == 0) require(npushmemx_team_get_uniqueid(&config.uniqueid) == 0, "no id");
    memory.sent[0] = config.uniqueid;
    (void)npushmem_uint64_broadcast(team, memory.received, memory.sent, 1, 0);
    if (result() == Work::interrupted) return Work::interrupted;
    config.uniqueid = memory.received[0];
    (void)npushmemx_team_init(&made, &config, NPUSHMEMX_TEAM_UNIQUEID, size, npushmem_team_my_pe(team));
    return use(made, size);
}

// Allocates, and runs a layer on the team.
Work verify_layer(npushmem_team_t team) {
    npushmem::api_test::TeamLayer layer;
    (void)layer.create(team, npushmem_team_n_pes(team) % 2 == 0 ? NPUSHMEMX_MOE_DIRECT : NPUSHMEMX_MOE_STREAM);
    if (result() == Work::interrupted) return Work::interrupted;
    std::string wrong;
    const int code = layer.pass(0, wrong);
    const Work done = result();
    require(code == 0 || done == Work::interrupted, "a layer failed without a report");
    if (!wrong.empty()) complain(wrong);
    layer.destroy();
    return result() == Work::interrupted ? Work::interrupted : done;
}

// Kills this process after a time that the seed gives.
void die_after(std::chrono::microseconds time) {
    std::thread([time] {
        std::this_thread::sleep_for(time);
        (void)kill(getpid(), SIGKILL);
    }).detach();
}

// Who dies at all: a function of the seed, equal on all PEs.
void choose_mortals(std::uint64_t seed, int living) {
    mortals.resize(static_cast<std::size_t>(npushmem_n_pes()));
    std::iota(mortals.begin(), mortals.end(), 0);
    if (living > 1) std::swap(mortals[mortals.size() - 2], mortals[0]);  // PE 0 and the last one: of different hosts
    if (living == 1) std::shuffle(mortals.begin(), mortals.end(), std::mt19937_64(seed));
    mortals.resize(mortals.size() - static_cast<std::size_t>(living));
}

// Chooses some members of the team who die in this round, and arms this PE if it is one of them.
void decide_fates(std::uint64_t seed, npushmem_team_t team, int round) {
    std::vector<int> members;
    for (const int pe : mortals)
        if (npushmem_team_translate_pe(NPUSHMEM_TEAM_WORLD, pe, team) >= 0) members.push_back(pe);
    std::mt19937_64 random(seed * 1000 + static_cast<unsigned>(round));
    std::shuffle(members.begin(), members.end(), random);
    const std::size_t deaths = std::min<std::size_t>(members.size(), 1 + random() % 3);
    for (std::size_t i = 0; i < deaths; ++i) {
        const std::chrono::microseconds time(random() % 3000);
        if (members[i] == npushmem_my_pe()) die_after(time);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    npushmem_init();
    Memory memory;
    const std::uint64_t seed = std::strtoull(argv[1], nullptr, 10);
    const int living = std::atoi(argv[2]);
    choose_mortals(seed, living);
    npushmem_barrier_all();  // nobody dies while another PE still allocates
    (void)result();
    npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
    std::uint64_t turns = 0;
    int shrinks = 0;
    for (int number = 1;;) {
        Round round(memory, team, number);
        decide_fates(seed, team, number);
        constexpr std::uint64_t last_turns = 20;
        const std::uint64_t enough = round.size() <= living ? last_turns : ~std::uint64_t{0};
        std::uint64_t turn = 0;
        while (turn < enough && round.turn(turn + 1) == Work::done) ++turn;
        turns += turn;
        if (turn == enough) break;
        do {
            npushmem_quiet();  // no put of this round arrives in the next one
            npushmemx_clear_error();
            npushmem_team_t next = NPUSHMEM_TEAM_INVALID;
            if (const int code = npushmemx_team_shrink(team, &next); code != 0)
                complain(fmt::format("team_shrink failed with {}", code));
            ++shrinks;
            if (team != NPUSHMEM_TEAM_WORLD) npushmem_team_destroy(team);
            team = next;
        } while (verify_members(memory, team, number) == Work::interrupted ||
                 verify_formation(memory, team) == Work::interrupted || verify_layer(team) == Work::interrupted);
    }
    if (npushmem_team_my_pe(team) == 0) {
        std::printf("survivors: %d of %d PEs live, %d shrinks, %llu turns verified\n", npushmem_team_n_pes(team),
                    npushmem_n_pes(), shrinks, static_cast<unsigned long long>(turns));
        std::fflush(stdout);
    }
    // One of two may die while they end.
    if (living > 1 && seed % 2 == 0 && npushmem_team_my_pe(team) != 0)
        die_after(std::chrono::microseconds(std::mt19937_64(seed)() % 1000));
    npushmem_finalize();
    return 0;
}
