// SPDX-License-Identifier: BSD-3-Clause
// Checks the accesses of one launch against those that PEs of other processes record in the job's records, and records
// them there.
//
// An access is ordered behind another PE's only by what is recorded: words that kernels release and acquire, the order
// of a PE's own launches, and host barriers. Where a host program may have ordered something in another way, the launch
// counts as ordered behind everything, and no findings against other PEs are reported.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/npu/check/memory/gm_shadow.hpp"
#include "core/npu/check/processes/job_records.hpp"
#include "npushmem/npu/fabric.hpp"
#include "npushmem/npu/hooks.hpp"

namespace npushmem::npu::check {

// The job's records as a launch of one PE uses them. Translates between addresses of this process and places in the
// job, which are the same for all processes.
class RecordsView {
public:
    using Address = std::uintptr_t;

    RecordsView(const JobLink& link, const Fabric& fabric, std::uint64_t host_barrier)
        : link_(link), fabric_(fabric), window_(fabric.window()), host_barrier_(host_barrier) {}

    [[nodiscard]] const JobLink& link() const { return link_; }
    [[nodiscard]] JobRecords& records() const { return link_.records(); }
    [[nodiscard]] int my_pe() const { return window_.my_pe; }
    // The last host barrier when the launch was queued.
    [[nodiscard]] std::uint64_t host_barrier() const { return host_barrier_; }

    // Runs `use(content)` under the lock while the records are not off.
    template <class Use>
    void with_content(Use&& use) const {
        const JobLock held(records());
        if (records().off()) return;
        try {
            use(records().content());
        } catch (const std::bad_alloc&) {
            records().switch_off();
        }
    }
    // 0: the address is not in memory that is recorded.
    [[nodiscard]] Address place_of(Address address) const;
    [[nodiscard]] Address address_of(Address place) const;
    [[nodiscard]] bool is_symmetric(Address address) const;
    // Whether the host program of any PE may have ordered something since the launch was queued.
    [[nodiscard]] bool any_host_called() const;

private:
    const JobLink& link_;
    const Fabric& fabric_;
    Window window_;
    std::uint64_t host_barrier_;
};

// The accesses of the launch's cores to symmetric memory, in the job's records. The functions do what those of GmShadow
// do, and report findings against other PEs only.
class PeerMemory {
public:
    using Address = std::uintptr_t;
    using Report = GmShadow::Report;

    explicit PeerMemory(const RecordsView& view) : view_(view) {}

    void copy_read(Address begin, Address end, const Access& access, const Clock& clock, const Report& report);
    void copy_write(Address begin, Address end, const Access& access, const Clock& clock, const Report& report);
    void landed(Address begin, Address end, const Access& access, Stamp stamp);
    void store(Address begin, Address end, const Access& access, const Clock& clock, const Report& report);
    void load(Address begin, Address end, std::uint32_t core, const Clock& clock, Stamp filled, const Report& report);
    void write_back(Address begin, std::uint64_t dirty, const Access& flush, const Clock& clock, Stamp filled,
                    Stamp stamp, const Report& report);
    void signal(Address begin, Address end, const Access& access, const Clock& clock, bool exclusive,
                const Report& report);
    [[nodiscard]] UnorderedWrite unordered_in_line(Address address, std::size_t bytes, std::uint32_t core,
                                                   const Clock& clock) const;
    [[nodiscard]] Access unordered_copy(Address address, std::uint32_t core, const Clock& clock, Stamp filled) const;
    // The last write of any PE; none: it is not recorded.
    [[nodiscard]] Access writer_of(Address address) const;

    // Raises `clock` to the last access of each agent.
    void join_accesses(Clock& clock) const;

private:
    // Passes on the findings that concern other PEs.
    [[nodiscard]] Report filter(const Clock& clock, const Report& report) const;
    void record_last(const Access& access);

    const RecordsView& view_;
    std::map<std::uint32_t, std::uint32_t> last_;  // accesses, by agent
};

// The part of one launch in the job's records: its cores, the order of its beginning and end, the texts of its
// accesses, and the words that it releases and acquires.
class PeerChecks {
public:
    using Address = std::uintptr_t;

    // Null: the records of this job are not kept, or not complete. `queued_at`: the last host barrier when the launch
    // was queued. `shares_events`: the PEs draw each other's events.
    static std::unique_ptr<PeerChecks> begin(const JobLink* link, const Fabric& fabric, int cores,
                                             std::uint64_t queued_at, bool shares_events);
    PeerChecks(const PeerChecks&) = delete;
    PeerChecks& operator=(const PeerChecks&) = delete;

    [[nodiscard]] PeerMemory& memory() { return memory_; }
    [[nodiscard]] std::uint32_t first_core() const { return first_core_; }
    // The clock of the launch at its beginning.
    [[nodiscard]] const Clock& beginning() const { return beginning_; }
    // An agent that is not a pipe.
    [[nodiscard]] std::uint32_t new_agent();
    [[nodiscard]] std::uint32_t number_of_text(const char* name, const SourceLocation& where);
    // For an access of another process.
    [[nodiscard]] FindingSide side_of(const Access& access);
    // While it is held, no PE sees a change of the memory without its record.
    [[nodiscard]] JobLock lock() const { return JobLock(view_.records()); }
    // Counts the changes of the memory of all PEs.
    [[nodiscard]] Stamp version() const { return view_.records().version(); }
    Stamp next_version() { return view_.records().next_version(); }

    // A write changes the word from `before` to `after`. `add`: the clocks of earlier releases remain in force.
    void release(Address word, const Clock& clock, bool add, std::uint64_t before, std::uint64_t after);
    // A core saw the value `seen`. `waited`: by a wait or an atomic, in a word that others write.
    void acquire(Address word, std::optional<std::uint64_t> seen, bool waited, Clock& clock);

    // Records a call of a barrier, and calls `use` for the calls of other PEs with the same state and generation.
    using UseBarrierCall = std::function<void(const BarrierDescriptor& call, int cores, const FindingSide& side)>;
    void barrier_called(const BarrierDescriptor& call, int cores, const FindingSide& here, const UseBarrierCall& use);

    // See CopyOrder.
    void record_sideways_flag(const Access& flag);
    struct SidewaysFlag {
        std::uint32_t issued = 0;  // 0: none
        std::string where{};
    };
    [[nodiscard]] SidewaysFlag sideways_flag(std::uint32_t core);

    [[nodiscard]] bool shares_events() const { return shares_events_; }
    std::uint64_t next_event() { return view_.records().next_event(); }
    // Keeps the event, in place of the one that the core kept at `place` before. `issued`: see RecordedEvent.
    void keep_event(std::uint32_t core, std::size_t place, const KernelEvent& event, std::uint32_t issued);
    // The events of other PEs' cores, with addresses of this process.
    [[nodiscard]] std::vector<KernelEvent> peer_events();
    // Of an access of another PE; 0: unknown.
    [[nodiscard]] std::uint64_t event_number(const Access& access);

    void core_ended(const Clock& clock);
    // After the last core. `all_cores`: every core has ended its kernel; otherwise its effects are unknown.
    void launch_ended(bool all_cores);

private:
    PeerChecks(const JobLink& link, const Fabric& fabric, std::uint64_t queued_at, bool shares_events);

    void register_cores(std::uint32_t cores);
    [[nodiscard]] EventMemory memory_at(Address place, std::uint64_t bytes) const;
    [[nodiscard]] FindingSide side_in_job(int pe, int core, Pipe pipe, std::uint32_t text);
    void order_beginning(const JobContent& content);

    const RecordsView view_;
    PeerMemory memory_;
    bool shares_events_;
    std::uint32_t first_core_ = 0;
    std::uint32_t cores_ = 0;
    Clock beginning_;
    Clock end_;
    std::array<std::uint32_t, 2> spare_agents_{};  // the first, and how many
    std::map<std::tuple<const char*, const char*, std::uint32_t, std::uint32_t>, std::uint32_t> texts_;
    std::set<std::string> names_;  // of operations and lines of other processes
};

// The lock of the records. `peers`: null where other PEs are not checked.
inline std::optional<JobLock> lock_records(const PeerChecks* peers) {
    return peers != nullptr ? std::optional<JobLock>(peers->lock()) : std::nullopt;
}

// Global memory as one process checks it: the accesses of its own cores and, in a job whose processes share records,
// those of other PEs. The functions are those of GmShadow.
class GlobalMemory {
public:
    using Address = GmShadow::Address;
    using Report = GmShadow::Report;

    // Null: other PEs are not checked.
    explicit GlobalMemory(PeerMemory* peers) : peers_(peers) {}

    void copy_read(Address begin, Address end, const Access& access, const Clock& clock, const Report& report) {
        own_.copy_read(begin, end, access, clock, report);
        if (peers_ != nullptr) peers_->copy_read(begin, end, access, clock, report);
    }
    void copy_write(Address begin, Address end, const Access& access, const Clock& clock, const Report& report) {
        own_.copy_write(begin, end, access, clock, report);
        if (peers_ != nullptr) peers_->copy_write(begin, end, access, clock, report);
    }
    void landed(Address begin, Address end, const Access& access, Stamp stamp) {
        own_.landed(begin, end, access, stamp);
        if (peers_ != nullptr) peers_->landed(begin, end, access, stamp);
    }
    void store(Address begin, Address end, const Access& access, const Clock& clock, const Report& report) {
        own_.store(begin, end, access, clock, report);
        if (peers_ != nullptr) peers_->store(begin, end, access, clock, report);
    }
    void load(Address begin, Address end, std::uint32_t core, const Clock& clock, Stamp filled, const Report& report) {
        own_.load(begin, end, core, clock, filled, report);
        if (peers_ != nullptr) peers_->load(begin, end, core, clock, filled, report);
    }
    void write_back(Address begin, std::uint64_t dirty, const Access& flush, const Clock& clock, Stamp filled,
                    Stamp stamp, const Report& report) {
        own_.write_back(begin, dirty, flush, filled, stamp, report);
        if (peers_ != nullptr) peers_->write_back(begin, dirty, flush, clock, filled, stamp, report);
    }
    void signal(Address begin, Address end, const Access& access, const Clock& clock, bool exclusive,
                const Report& report) {
        own_.signal(begin, end, access, clock, exclusive, report);
        if (peers_ != nullptr) peers_->signal(begin, end, access, clock, exclusive, report);
    }
    [[nodiscard]] UnorderedWrite unordered_in_line(Address address, std::size_t bytes, std::uint32_t core,
                                                   const Clock& clock) const {
        const UnorderedWrite own = own_.unordered_in_line(address, bytes, core, clock);
        return own.write.exists() || peers_ == nullptr ? own : peers_->unordered_in_line(address, bytes, core, clock);
    }

    [[nodiscard]] Access unordered_copy(Address address, std::uint32_t core, const Clock& clock, Stamp filled) const {
        const Access own = own_.unordered_copy(address, core, clock, filled);
        return own.exists() || peers_ == nullptr ? own : peers_->unordered_copy(address, core, clock, filled);
    }

    // The last write of any PE. Its name and line may be those of another process: see FindingLog::side_of.
    [[nodiscard]] Access last_writer_of(Address address) const {
        const Access writer = peers_ != nullptr ? peers_->writer_of(address) : Access{};
        return writer.exists() ? writer : own_.writer_of(address);
    }

    // These know the own cores only.
    [[nodiscard]] Access writer_of(Address address) const { return own_.writer_of(address); }
    [[nodiscard]] Access last_store(Address line, std::uint32_t core) const { return own_.last_store(line, core); }
    [[nodiscard]] bool written_since(Address begin, Address end, Stamp stamp) const {
        return own_.written_since(begin, end, stamp);
    }

private:
    GmShadow own_;
    PeerMemory* peers_;
};

}  // namespace npushmem::npu::check
