// SPDX-License-Identifier: BSD-3-Clause
// The job as this PE knows it: its own rank, the processes and traits of all PEs, the hosts on which they run, and the
// bootstrap that connects them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/config.hpp"
#include "core/coll/barrier/tuning.hpp"
#include "core/map/host_layout.hpp"
#include "core/runtime/pe_table.hpp"
#include "core/runtime/process_spaces.hpp"
#include "core/runtime/start_exchange.hpp"
#include "npushmem/plugin/bootstrap.hpp"

namespace npushmem {

class JobMembership {
public:
    // Takes rank and size from the bootstrap.
    explicit JobMembership(std::unique_ptr<Bootstrap> bootstrap);
    JobMembership(const JobMembership&) = delete;
    JobMembership& operator=(const JobMembership&) = delete;

    // Fails if the bootstrap's rank and size cannot be true.
    [[nodiscard]] Status check_rank() const;
    // Collective: exchanges and compares the records of all PEs. Reads the tuning file, whose text is equal on all PEs.
    // The members below are valid afterwards.
    Status exchange_records(const Settings& settings, const StaticVariablesRecord& statics);

    [[nodiscard]] int my_pe() const { return my_pe_; }
    [[nodiscard]] int npes() const { return npes_; }
    [[nodiscard]] Bootstrap& bootstrap() const { return *bootstrap_; }
    // Its `common` is valid until the end of the start. Its `pes` is empty: pes() has the processes.
    [[nodiscard]] const PeRecords& records() const { return records_; }
    void discard_records() { records_ = {}; }
    [[nodiscard]] const PeTable& pes() const { return pes_; }
    // From now on pes() uses this copy of its bytes, in memory of the host; while that exists.
    void share_pes(std::span<const std::byte> copy) { pes_.use_copy(copy); }
    [[nodiscard]] const barrier::Tuning& tuning() const { return tuning_; }
    [[nodiscard]] const HostLayout& layout() const { return layout_; }
    // Returns the PEs of this PE's host, in order.
    [[nodiscard]] PeRange local_pes() const { return layout_.pes_of(layout_.host_of(my_pe_)); }
    // Returns this PE's position among them.
    [[nodiscard]] int local_index() const { return layout_.local_index(my_pe_); }
    // Returns whether the PE runs on this PE's host.
    [[nodiscard]] bool is_local(int pe) const { return layout_.host_of(pe) == layout_.host_of(my_pe_); }

    // Returns whether this PE sees the PE's process in /proc.
    [[nodiscard]] bool sees_process_of(int pe) const { return pes_.traits(my_pe_).sees_process_of(pes_.traits(pe)); }
    [[nodiscard]] bool sees_all_processes() const {
        for (int pe = 0; pe < npes_; ++pe)
            if (!sees_process_of(pe)) return false;
        return true;
    }
    // Passes descriptors to PEs of this host whose processes are not visible.
    [[nodiscard]] ProcessSpaces& process_spaces() { return spaces_; }

    // Reports to the other PEs that this one aborts.
    void abort(const std::string& reason) const { bootstrap_->abort(reason); }

private:
    std::unique_ptr<Bootstrap> bootstrap_;
    int my_pe_;
    int npes_;
    PeRecords records_;
    PeTable pes_;
    ProcessSpaces spaces_;
    barrier::Tuning tuning_;
    HostLayout layout_{std::span<const npushmem_host_id>{}};
};

}  // namespace npushmem
