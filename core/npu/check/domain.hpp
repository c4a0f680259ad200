// What all cores that are checked together share: global memory, findings, signals under way. Used by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/npu/check/control.hpp"
#include "core/npu/check/gm_shadow.hpp"
#include "core/npu/check/memory_names.hpp"
#include "core/npu/check/overtaken.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu::check {

class CoreChecker;

// Cores of one PE at their common barrier.
struct CoreMeeting {
    std::uint64_t number = 0;  // of the barrier that is being gathered for
    int arrived = 0;
    int ended = 0;  // cores whose kernel has returned
    FindingSide first;
    Clock gathering;
    Clock passed;
};

class Domain {
public:
    using Address = std::uintptr_t;

    Domain(Control& control, const MemoryNames& names, std::string kernel)
        : control_(control), names_(names), kernel_(std::move(kernel)) {}
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;

    [[nodiscard]] Control& control() { return control_; }
    [[nodiscard]] const MemoryNames& names() const { return names_; }
    [[nodiscard]] GmShadow& memory() { return memory_; }
    [[nodiscard]] Overtaken& overtaken() { return overtaken_; }
    // Changes whenever memory did.
    [[nodiscard]] Stamp version() const { return version_; }
    Stamp changed() { return ++version_; }

    // Numbers the core; agents of core n are 4n to 4n + 3.
    std::uint32_t join(CoreChecker& core);
    void leave(std::uint32_t core);
    [[nodiscard]] CoreMeeting& meeting(int pe) { return meetings_[pe]; }
    // A flag from MTE3 to another pipe than S: a copy before it that was announced by S had no right one.
    void note_sideways_flag(const Access& flag) { cores_[flag.core()].sideways_flag = flag; }
    [[nodiscard]] FindingSide side_of(const Access& access) const;

    // The same two lines count once.
    void report(Hazard hazard, const FindingSide& here, const Access& other, const std::string& place,
                const std::string& detail);
    void report(Hazard hazard, const FindingSide& here, const FindingSide& other, const std::string& place,
                const std::string& detail);
    [[nodiscard]] const std::vector<Finding>& findings() const { return findings_; }

    // What a word carries to whoever acquires it. `add`: beside what others released into it.
    void release_word(Address word, const Clock& clock, bool add);
    void acquire_word(Address word, Clock& clock) const;

    // Signals to, and waits at, words of other PEs.
    struct Traffic {
        std::uint64_t signals = 0;
        std::uint64_t waits = 0;
    };
    [[nodiscard]] Traffic& traffic() { return traffic_; }

    // A signal that another PE will see.
    struct Message {
        std::uint32_t core;
        Signal signal;
        Access access;
        Clock clock;
    };
    void send(Message message);
    void arrive(const Message& message);
    // Signals of one core that are still under way arrive, the youngest first: no fence ordered them. Other cores may
    // run meanwhile.
    void deliver_from(std::uint32_t core);
    // Something that waits for nobody happens: a signal arrives or a queued command runs. False: there is nothing.
    bool progress();

    // The members of a team compare what they call.
    void compare(const BarrierCall& call, const FindingSide& here, int cores);

private:
    struct CoreFacts {
        CoreChecker* checker;
        int pe;
        int index;
        Access sideways_flag;
    };
    struct TeamCall {
        BarrierCall call;
        FindingSide side;
        int cores;
    };

    Control& control_;
    const MemoryNames& names_;
    std::string kernel_;
    GmShadow memory_;
    Overtaken overtaken_;
    Stamp version_ = 1;
    std::vector<CoreFacts> cores_;
    std::map<int, CoreMeeting> meetings_;
    std::vector<Finding> findings_;
    std::unordered_map<Address, Clock> words_;
    std::vector<Message> under_way_;
    Traffic traffic_;
    // By what the state is called on every PE alike, and the generation.
    std::map<std::pair<std::string, std::uint64_t>, std::vector<TeamCall>> calls_;
};

}  // namespace npushmem::npu::check
