// SPDX-License-Identifier: BSD-3-Clause
#include "tests/contract/mutants/sound_transports.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "mine_transport.hpp"
#include "npushmem/testing/fake_transport.hpp"

namespace npushmem::contract {
namespace {

constexpr std::uint64_t reference_capabilities = NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET |
                                                 NPUSHMEM_CAP_ATOMIC | NPUSHMEM_CAP_PUT_SIGNAL |
                                                 NPUSHMEM_CAP_PUT_STRIDED;

// PEs with successive numbers map each other's memory, others do not: both kinds of pairs are there.
Reach reach_of_reference(int from, int to) {
    const std::int64_t distance = std::int64_t{from} - to;
    constexpr std::uint64_t bytes_per_second = 10'000'000'000;
    if (distance >= -1 && distance <= 1)
        return {reference_capabilities, all_atomics, all_atomics, "neighbour", 100, bytes_per_second};
    return {
        reference_capabilities & ~NPUSHMEM_CAP_MAP, all_atomics, all_atomics, "same process", 200, bytes_per_second};
}

Result<std::unique_ptr<Transport>> open_reference(const npushmem_host&, const npushmem_transport_params& params) {
    // One fabric for all PEs of the process.
    static fakes::FakeFabric* const fabric = [] {
        static fakes::FakeFabric out(fakes::FakeFabric::Delivery::adversarial);
        out.reach_by(reach_of_reference);
        return &out;
    }();
    return std::unique_ptr<Transport>(std::make_unique<fakes::FakeTransport>(*fabric, params));
}

std::vector<Defect> all_defects() {
    std::vector<Defect> out;
    for (const DefectRow& row : defects()) out.push_back(row.defect);
    return out;
}

// Defects that any transport shows, whatever its order of delivery, and that never wait within a call: a transport that
// passes messages may deliver only when other PEs of this process make calls.
std::vector<Defect> portable_defects() {
    return {Defect::early_get_token,
            Defect::lost_completions,
            Defect::early_quiet,
            Defect::puts_lost,
            Defect::last_byte_of_odd_sizes_lost,
            Defect::and_or_swapped,
            Defect::compare_ignored,
            Defect::signal_add_is_set,
            Defect::second_queue_loses_puts,
            Defect::put_end_unchecked};
}

}  // namespace

std::span<const SoundTransport> sound_transports() {
    static const std::vector<SoundTransport> all = {
        {"reference", reference_capabilities, open_reference, all_defects()},
        {"socket", mine_plugin::MineTransport::capabilities,
         detail::open_transport_through_table<mine_plugin::MineTransport>, portable_defects()},
    };
    return all;
}

TransportSubject mutant(std::string_view name) {
    const auto slash = std::min(name.find('/'), name.size() - 1);
    const std::string_view defect_name = name.substr(slash + 1);
    const auto all = sound_transports();
    const auto transport =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == name.substr(0, slash); });
    const DefectRow* const row = find_defect(defect_name);
    const bool has_short_waits = defect_name == "none_with_short_waits";
    if (transport == all.end() || (row == nullptr && defect_name != "none" && !has_short_waits))
        throw std::invalid_argument("there is no mutant " + std::string(name) + "; write <transport>/<defect or none>");
    TransportSubject out;
    out.name = transport->name;
    out.capabilities = transport->capabilities;
    out.open = with_defect(row == nullptr ? Defect::none : row->defect, transport->open);
    // Longer waits would find the same: what never completes.
    if (has_short_waits || (row != nullptr && row->ending == Ending::times_out))
        out.wait_timeout = std::chrono::milliseconds(200);
    if (row != nullptr) out.deadline = std::chrono::seconds(row->ending == Ending::hangs ? 10 : 60);
    return out;
}

}  // namespace npushmem::contract
