// SPDX-License-Identifier: BSD-3-Clause
// The findings of a launch, and what their texts name: cores, memory, and how copies were ordered.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/npu/check/access.hpp"
#include "core/npu/check/processes/peer_checks.hpp"
#include "core/npu/check/report/event_log.hpp"
#include "npushmem/npu/hazard.hpp"

namespace npushmem::npu::check {

class CommandQueues;

// Tells device memory from other memory, and names addresses in messages.
class MemoryNames {
public:
    using Address = std::uintptr_t;

    MemoryNames() = default;
    MemoryNames(const MemoryNames&) = delete;
    MemoryNames& operator=(const MemoryNames&) = delete;
    virtual ~MemoryNames() = default;

    // Whether scalar accesses to it go through the modelled cache: whole lines of it must be accessible.
    [[nodiscard]] virtual bool cached(Address address) const = 0;
    // Empty when the bytes may be accessed, otherwise the reason why not.
    [[nodiscard]] virtual std::string refusal(Address address, std::size_t bytes) const = 0;
    // "symmetric allocation 2 (64 bytes) + 8 of PE 1".
    [[nodiscard]] virtual std::string name_of(Address address) const = 0;
    // Whether PEs of other processes, which are not checked here, also write to symmetric memory.
    [[nodiscard]] virtual bool shared() const { return false; }
    // The PE whose symmetric memory it is; -1: none.
    [[nodiscard]] virtual int pe_of(Address address) const = 0;
};

// Throws KernelError when the bytes may not be accessed.
void require_accessible(const MemoryNames& names, std::uintptr_t begin, std::size_t bytes, const Access& access);

// One core of a checked launch, as accesses and findings identify it.
struct CheckedCore {
    int pe;
    int index;             // among the cores of its PE
    int count;             // cores of its PE
    std::uint32_t number;  // among all checked cores; its agents begin with number * agents_per_core

    [[nodiscard]] std::uint32_t agent(Pipe pipe) const {
        return number * agents_per_core + static_cast<std::uint32_t>(pipe);
    }
    [[nodiscard]] FindingSide side(Pipe pipe, const char* what, const SourceLocation& where) const {
        return {pe, index, pipe, what, where};
    }
};

// The cores of a launch that this process checks. Numbers them and keeps their queues while they exist.
class CoreTable {
public:
    // Null: PEs of other processes are not checked.
    explicit CoreTable(PeerChecks* peers) : peers_(peers), first_(peers != nullptr ? peers->first_core() : 0) {}

    // Returns the number of the core. `queues` must stay until remove().
    std::uint32_t add(int pe, int index, CommandQueues& queues);
    void remove(std::uint32_t core);
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }
    // The number of the launch's core 0.
    [[nodiscard]] std::uint32_t first() const { return first_; }
    // Whether the core belongs to this process.
    [[nodiscard]] bool contains(std::uint32_t core) const { return core - first_ < entries_.size(); }
    [[nodiscard]] FindingSide side_of(const Access& access) const;
    // Runs the oldest queued command of the first core that has one. Returns false when there is none.
    bool run_oldest_command();
    // Null: the core does not exist any more.
    [[nodiscard]] CommandQueues* queues_of(std::uint32_t core) const { return entries_[core - first_].queues; }
    void count_ended_kernel() { ++ended_; }
    [[nodiscard]] bool all_ended() const { return ended_ == entries_.size(); }

private:
    struct Entry {
        int pe;
        int index;
        CommandQueues* queues;
    };

    PeerChecks* peers_;
    std::uint32_t first_;
    std::vector<Entry> entries_;
    std::size_t ended_ = 0;
};

// How fences and flags order the copies out of each core. An agent of its own stands for the copies of a core to a PE:
// clocks that a signal to that PE passes on are raised for it up to the last fence.
class CopyOrder {
public:
    CopyOrder(const CoreTable& cores, PeerChecks* peers) : cores_(cores), peers_(peers) {}

    // The agent that stands for the copies of a core of `from_pe` to `to_pe`. Called after all cores were added.
    [[nodiscard]] std::uint32_t agent_to(std::uint32_t core, int from_pe, int to_pe);
    // A write of `from_pe` to `to_pe` passes on the fences that the holder of `clock` is ordered behind.
    void pass_fences(Clock& clock, int from_pe, int to_pe) const;
    // A fence has ordered the first `copies` copies of the core.
    void record_fence(std::uint32_t core, std::uint32_t copies) { facts_[core].fenced = copies; }
    // A flag from MTE3 to another pipe than S: it orders no copy before a signal of S.
    void record_sideways_flag(const Access& flag);
    [[nodiscard]] bool is_fenced(const Access& copy) const;
    // The last one of the core; `issued` is 0 if there is none.
    [[nodiscard]] PeerChecks::SidewaysFlag sideways_flag(std::uint32_t core) const;

private:
    struct AgentTo {
        std::uint32_t core;
        std::uint32_t agent;
    };
    struct Facts {
        Access sideways_flag;
        std::uint32_t fenced = 0;
    };

    const CoreTable& cores_;
    PeerChecks* peers_;
    std::map<std::pair<int, int>, std::vector<AgentTo>> agents_to_;  // by the PE that copies and the target
    std::uint32_t next_agent_ = 0;
    std::map<std::uint32_t, Facts> facts_;  // by core
};

// Collects findings. Equal ones count once.
class FindingLog {
public:
    using Report = GmShadow::Report;

    FindingLog(std::string kernel, const MemoryNames& names, const CoreTable& cores, const CopyOrder& copies,
               const EventLog& events)
        : kernel_(std::move(kernel)), names_(names), cores_(cores), copies_(copies), events_(events) {}

    // `other`: the access that `here` conflicts with.
    void report(Hazard hazard, const FindingSide& here, const Access& other, const std::string& place,
                const std::string& detail);
    // Findings between the same two lines are one finding.
    void report(Hazard hazard, const FindingSide& here, const FindingSide& other, const std::string& place,
                const std::string& detail);
    // Returns a function that reports findings of `access` in global memory.
    [[nodiscard]] Report reporter(const Access& access);
    // A conflict of `access` with a PE of another process, which left no record.
    void report_external(Hazard hazard, const Access& access, std::uintptr_t at, const char* detail);

    [[nodiscard]] FindingSide side_of(const Access& access) const {
        FindingSide side = cores_.side_of(access);
        side.event = events_.event_number(access);
        return side;
    }
    [[nodiscard]] const std::vector<Finding>& all() const { return findings_; }

private:
    std::string kernel_;
    const MemoryNames& names_;
    const CoreTable& cores_;
    const CopyOrder& copies_;
    const EventLog& events_;
    std::vector<Finding> findings_;
};

}  // namespace npushmem::npu::check
