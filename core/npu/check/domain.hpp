// What all cores that are checked together share: global memory, findings, signals under way. Used by one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/npu/check/control.hpp"
#include "core/npu/check/peer_checks.hpp"
#include "core/npu/check/memory_names.hpp"
#include "core/npu/check/overtaken.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu::check {

class CoreChecker;

// Where a core made its last call. Another thread may read it.
struct CorePlace {
    CorePlace(int its_pe, int its_core) : pe(its_pe), core(its_core) {}

    int pe;
    int core;
    std::atomic<std::source_location> at{std::source_location{}};
};

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

    // `peers`: null where other PEs are not checked.
    Domain(Control& control, const MemoryNames& names, std::string kernel, PeerChecks* peers = nullptr)
        : control_(control),
          names_(names),
          kernel_(std::move(kernel)),
          peers_(peers),
          first_core_(peers != nullptr ? peers->first_core() : 0),
          memory_(peers != nullptr ? &peers->memory() : nullptr) {}
    Domain(const Domain&) = delete;
    Domain& operator=(const Domain&) = delete;

    [[nodiscard]] Control& control() { return control_; }
    [[nodiscard]] const MemoryNames& names() const { return names_; }
    [[nodiscard]] GlobalMemory& memory() { return memory_; }
    [[nodiscard]] Overtaken& overtaken() { return overtaken_; }
    // Counts what happens to the memory.
    [[nodiscard]] Stamp version() const { return peers_ != nullptr ? peers_->version() : version_; }
    // Changes whenever the memory has other contents.
    [[nodiscard]] std::uint64_t changes() const { return changes_; }
    // Something happened to the memory. `visibly`: it may have other contents than before.
    Stamp changed(bool visibly = true) {
        if (visibly) ++changes_;
        return peers_ != nullptr ? peers_->next_version() : ++version_;
    }

    // Numbers the core; agents of core n begin with n * agents_per_core.
    std::uint32_t join(CoreChecker& core);
    void leave(std::uint32_t core);
    // What every core is ordered behind when its kernel begins.
    [[nodiscard]] Clock beginning(int pe) const { return peers_ != nullptr ? peers_->beginning() : Clock(pe); }
    // The core has ended its kernel.
    void core_ended(const Clock& clock) {
        ++kernels_ended_;
        if (peers_ != nullptr) peers_->core_ended(clock);
    }
    void launch_ended() {
        if (peers_ != nullptr) peers_->launch_ended(kernels_ended_ == cores_.size());
    }
    // While it is held, no PE of another process sees a change of the memory without what is recorded of it.
    [[nodiscard]] std::optional<JobLock> lock_records() {
        return peers_ != nullptr ? std::optional<JobLock>(peers_->lock()) : std::nullopt;
    }
    // Access::text.
    [[nodiscard]] std::uint32_t number_of_text(const char* name, const std::source_location& where) {
        return peers_ != nullptr ? peers_->number_of_text(name, where) : 0;
    }
    [[nodiscard]] CorePlace& place(std::uint32_t core) { return places_[core - first_core_]; }
    // The core that makes calls.
    void running(const CorePlace& place) { running_.store(&place, std::memory_order_relaxed); }
    // For a thread beside the one that runs the cores: a launch with this title is beyond its deadline, in seconds, and
    // cannot be ended.
    [[nodiscard]] std::string stuck(const std::string& title, double limit) const;
    [[nodiscard]] CoreMeeting& meeting(int pe) { return meetings_[pe]; }
    // A flag from MTE3 to another pipe than S: a copy before it that was announced by S had no right one.
    void note_sideways_flag(const Access& flag) { facts(flag.core()).sideways_flag = flag; }
    // All copies of a core up to this one were ordered by a fence.
    void note_fence(std::uint32_t core, std::uint32_t copies) { facts(core).fenced = copies; }
    // The agent that stands for the core's copies to a PE; when all cores have joined.
    [[nodiscard]] std::uint32_t agent_to(std::uint32_t core, int pe);
    // A write to `to_pe` passes on that copies to it were ordered before, as far as the holder of `clock` on `from_pe`
    // knows of the fences.
    void pass_fences(Clock& clock, int from_pe, int to_pe) const;
    [[nodiscard]] FindingSide side_of(const Access& access) const;

    // The same two lines count once.
    void report(Hazard hazard, const FindingSide& here, const Access& other, const std::string& place,
                const std::string& detail);
    void report(Hazard hazard, const FindingSide& here, const FindingSide& other, const std::string& place,
                const std::string& detail);
    [[nodiscard]] const std::vector<Finding>& findings() const { return findings_; }

    // What a word carries to whoever acquires it. `add`: beside what others released into it. `before`: the word's
    // value until then.
    void release_word(Address word, const Clock& clock, bool add, const Access& write, std::uint64_t before) {
        release_word(word, clock, add, write, before, word_in_memory(word));
    }
    // `after`: its value from then on.
    void release_word(Address word, const Clock& clock, bool add, const Access& write, std::uint64_t before,
                      std::uint64_t after);
    // `seen`: the value found there, where it is known. `waited`: by a wait or an atomic.
    void acquire_word(Address word, Clock& clock, std::optional<std::uint64_t> seen = {}, bool waited = false) const;
    struct Earlier {
        std::uint32_t release = 0;  // number of the release; 0: none
        std::uint64_t value = 0;    // before it
    };
    // What a word was before its last release, when that is another core's and not complete for the holder of `clock`.
    [[nodiscard]] Earlier earlier(Address word, std::uint32_t core, const Clock& clock) const;

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
    void compare(const BarrierDescriptor& call, const FindingSide& here, int cores);

private:
    struct CoreFacts {
        CoreChecker* checker;
        int pe;
        int index;
        Access sideways_flag;
        std::uint32_t fenced = 0;
    };
    struct AgentTo {
        std::uint32_t core;
        std::uint32_t agent;
    };
    struct TeamCall {
        BarrierDescriptor call;
        FindingSide side;
        int cores;
    };

    [[nodiscard]] CoreFacts& facts(std::uint32_t core) { return cores_[core - first_core_]; }
    [[nodiscard]] bool is_own(std::uint32_t core) const { return core - first_core_ < cores_.size(); }

    Control& control_;
    const MemoryNames& names_;
    std::string kernel_;
    PeerChecks* peers_;
    std::uint32_t first_core_;
    GlobalMemory memory_;
    std::size_t kernels_ended_ = 0;
    Overtaken overtaken_;
    Stamp version_ = 1;
    std::uint64_t changes_ = 1;
    std::vector<CoreFacts> cores_;
    std::map<std::pair<int, int>, std::vector<AgentTo>> agents_to_;  // by the PE that copies and the target
    std::uint32_t next_agent_ = 0;
    std::deque<CorePlace> places_;
    std::atomic<const CorePlace*> running_{nullptr};
    std::map<int, CoreMeeting> meetings_;
    std::vector<Finding> findings_;
    struct Word {
        Clock clock;
        Access write;
        std::uint64_t before = 0;
        std::uint32_t releases = 0;
    };
    std::unordered_map<Address, Word> words_;
    std::vector<Message> under_way_;
    Traffic traffic_;
    // By what the state is called on every PE alike, and the generation.
    std::map<std::pair<std::string, std::uint64_t>, std::vector<TeamCall>> calls_;
};

}  // namespace npushmem::npu::check
