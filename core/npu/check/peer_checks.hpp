// Checks the accesses of one launch against those that PEs of other processes record in the job's records, and records
// them there.
//
// An access is ordered behind another PE's only by what is recorded: words that kernels release and acquire, the order
// of a PE's own launches, and meetings of all hosts. Where a host program may have ordered something in another way,
// the launch counts as ordered behind everything, and what it finds of other PEs is not reported.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "core/npu/check/job_link.hpp"
#include "npushmem/npu/fabric.hpp"

namespace npushmem::npu::check {

class PeerChecks {
public:
    using Address = std::uintptr_t;
    using Report = std::function<void(Hazard hazard, const Access& other, Address at, const char* detail)>;

    // Null: the records of this job are not kept, or not complete.
    static std::unique_ptr<PeerChecks> begin(const JobLink* link, const Fabric& fabric, int cores);
    PeerChecks(const PeerChecks&) = delete;
    PeerChecks& operator=(const PeerChecks&) = delete;

    [[nodiscard]] std::uint32_t first_core() const { return first_core_; }
    // What the launch is ordered behind from its beginning.
    [[nodiscard]] const Clock& beginning() const { return beginning_; }
    // An agent for something else than a pipe.
    [[nodiscard]] std::uint32_t new_agent();
    [[nodiscard]] std::uint32_t number_of_text(const char* name, const SourceLocation& where);
    // Of an access of another process.
    [[nodiscard]] FindingSide side_of(const Access& access);
    [[nodiscard]] JobLock lock() { return JobLock(link_.records()); }

    // As GmShadow has them.
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
                                                   const Clock& clock);
    [[nodiscard]] Stamp version() const { return link_.records().version(); }
    Stamp next_version() { return link_.records().next_version(); }

    // A write gives the word this value; it had `before`. `add`: what was announced by it before still is.
    void release(Address word, const Clock& clock, bool add, std::uint64_t before, std::uint64_t after);
    // Somebody saw this value there. `waited`: by a wait or an atomic, of a word that others write.
    void acquire(Address word, std::optional<std::uint64_t> seen, bool waited, Clock& clock);

    void core_ended(const Clock& clock);
    // After the last core. Of a core that did not end its kernel nobody knows what it did.
    void launch_ended(bool all_cores);

private:
    PeerChecks(const JobLink& link, const Fabric& fabric);

    // Runs `use(content)` under the lock while the records are not off.
    template <class Use>
    void with_content(Use&& use);
    void take_part(std::uint32_t cores);
    void order_beginning(const JobContent& content);
    // The place in the job: the same for all processes. 0: not in memory that is recorded.
    [[nodiscard]] Address in_job(Address address) const;
    [[nodiscard]] Address in_process(Address place) const;
    // Passes on what concerns other PEs.
    [[nodiscard]] Report filter(const Clock& clock, const Report& report) const;
    [[nodiscard]] bool any_host_called() const;
    [[nodiscard]] bool symmetric(Address address) const;
    void note(const Access& access);

    const JobLink& link_;
    const Fabric& fabric_;
    Window window_;
    std::uint64_t meeting_;
    std::uint32_t first_core_ = 0;
    std::uint32_t cores_ = 0;
    Clock beginning_;
    Clock end_;
    std::map<std::uint32_t, std::uint32_t> last_;  // accesses, by agent
    std::array<std::uint32_t, 2> spare_agents_{};  // the first, and how many
    std::map<std::tuple<const char*, const char*, std::uint32_t, std::uint32_t>, std::uint32_t> texts_;
    std::set<std::string> names_;  // of operations of other processes
};

}  // namespace npushmem::npu::check
