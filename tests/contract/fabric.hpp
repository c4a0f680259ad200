// SPDX-License-Identifier: BSD-3-Clause
// The subject of the contract suite, its PEs, and its cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "npushmem/testing/contract.hpp"
#include "npushmem/testing/fake_host.hpp"
#include "tests/contract/pe.hpp"

namespace npushmem::contract {

// Layout of the PEs' memory: slices of one file that all PEs map, as on one host, or one file per PE, as for PEs of
// different jobs or hosts.
enum class Layout { one_file, own_files };

// What a case tests: a transport, and the layout of the memory. Lives as long as the program.
struct Subject {
    Subject(TransportSubject tested, Layout memory_layout);

    // "<name>/one_file" or "<name>/own_files".
    [[nodiscard]] std::string suite() const;
    [[nodiscard]] std::uint64_t declared_capabilities() const { return transport.capabilities; }
    // Opens one instance.
    [[nodiscard]] Result<std::unique_ptr<Transport>> open(const npushmem_transport_params& params) const;
    // The same, and assigns devices as the library does: PEs start with successive devices, so that the two ends of a
    // connection use different devices.
    [[nodiscard]] Result<std::unique_ptr<Transport>> open_with_devices(const npushmem_transport_params& params) const;

    TransportSubject transport;
    Layout layout;
    std::shared_ptr<fakes::FakeHost> host;  // of all instances, with the subject's configuration
};

// Several connected PEs in one process, over the transport under test.

// The same in all processes of a user. Transports compare it only with that of peers.
npushmem_host_id this_host();
npushmem_transport_params params_of(int pe, int npes);
npushmem_peer peer_of(int pe);

class Fabric {
public:
    static constexpr std::uint64_t pe_bytes = 4ULL << 20;

    // Opens and connects `npes` PEs, 1 to 16.
    static Result<std::unique_ptr<Fabric>> make(const Subject& subject, int npes);

    [[nodiscard]] const Subject& subject() const { return subject_; }
    [[nodiscard]] int npes() const { return static_cast<int>(pes_.size()); }
    [[nodiscard]] Pe& pe(int number) const { return *pes_.at(static_cast<std::size_t>(number)); }
    // All pairs (from, to) that have all the capabilities, including pairs of a PE with itself.
    [[nodiscard]] std::vector<std::pair<int, int>> pairs_with(std::uint64_t capabilities) const;

private:
    explicit Fabric(const Subject& subject) : subject_(subject) {}
    Status open(int npes);
    Status connect_all();
    void progress_all();

    const Subject& subject_;
    std::vector<std::unique_ptr<Pe>> pes_;
};

// Makes one slice per PE according to `layout`.
std::vector<std::unique_ptr<Slice>> make_slices(Layout layout, int npes, std::uint64_t bytes);

// A case of the contract. All cases are registered for each subject and layout.

struct Case {
    const char* name;
    std::uint64_t needs;  // capabilities that some pair of PEs must offer, else the case is skipped
    void (*body)(Fabric&);
};

std::vector<Case> life_cases();
std::vector<Case> memory_cases();
std::vector<Case> rma_cases();
std::vector<Case> atomic_cases();
std::vector<Case> ordering_cases();
std::vector<Case> queue_cases();
std::vector<Case> error_cases();
std::vector<Case> load_cases();        // many operations, large transfers, many PEs, queues under load
std::vector<Case> alignment_cases();   // every alignment and page border; aligned puts of 4 and 8 bytes
std::vector<Case> refusal_cases();     // unknown numbers, malformed handles and addresses
std::vector<Case> sequence_cases();    // random sequences against a reference model
std::vector<Case> strictness_cases();  // rules that seeded defects have shown to be untested
std::vector<Case> minor_1_cases();     // costs, rails and forget
std::vector<Case> strided_cases();     // put_strided
std::vector<Case> arrival_cases();     // report_arrivals

}  // namespace npushmem::contract
