// Several PEs in one process, all over the transport under test, connected to each other.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "tests/contract/pe.hpp"
#include "tests/contract/subject.hpp"

namespace npushmem::contract {

npushmem_host_id this_host();
npushmem_transport_params params_of(int pe, int npes);
npushmem_peer peer_of(int pe);

class Fabric {
public:
    static constexpr std::uint64_t pe_bytes = 4ULL << 20;

    static Result<std::unique_ptr<Fabric>> make(const Subject& subject, int npes);

    [[nodiscard]] const Subject& subject() const { return subject_; }
    [[nodiscard]] int npes() const { return static_cast<int>(pes_.size()); }
    [[nodiscard]] Pe& pe(int number) const { return *pes_.at(static_cast<std::size_t>(number)); }
    // (from, to) for all that have each of the capabilities; a PE and itself included.
    [[nodiscard]] std::vector<std::pair<int, int>> pairs_with(std::uint64_t capabilities) const;

private:
    explicit Fabric(const Subject& subject) : subject_(subject) {}
    Status open(int npes);
    Status assign(int pe, Transport& transport) const;
    Status connect_all();
    void progress_all();

    const Subject& subject_;
    std::vector<std::unique_ptr<Pe>> pes_;
};

// One slice per PE, as `layout` says.
std::vector<std::unique_ptr<Slice>> make_slices(Layout layout, int npes, std::uint64_t bytes);

}  // namespace npushmem::contract
