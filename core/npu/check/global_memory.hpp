// Global memory as one process checks it: what its own cores do to it and, in a job whose processes share records, what
// other PEs do.
#pragma once

#include "core/npu/check/gm_shadow.hpp"
#include "core/npu/check/peer_checks.hpp"

namespace npushmem::npu::check {

// As in GmShadow.
class GlobalMemory {
public:
    using Address = GmShadow::Address;
    using Report = GmShadow::Report;

    // Null: other PEs are not checked.
    explicit GlobalMemory(PeerChecks* peers) : peers_(peers) {}

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

    // These know of the own cores only.
    [[nodiscard]] Access last_store(Address line, std::uint32_t core) const { return own_.last_store(line, core); }
    [[nodiscard]] bool written_since(Address begin, Address end, Stamp stamp) const {
        return own_.written_since(begin, end, stamp);
    }
    [[nodiscard]] Access writer_of(Address address) const { return own_.writer_of(address); }

private:
    GmShadow own_;
    PeerChecks* peers_;
};

}  // namespace npushmem::npu::check
