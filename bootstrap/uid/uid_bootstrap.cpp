// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/uid/uid_bootstrap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "bootstrap/rendezvous/collectives.hpp"
#include "bootstrap/rendezvous/job_join.hpp"
#include "bootstrap/rendezvous/rendezvous_service.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "bootstrap/rendezvous/unique_id.hpp"
#include "core/base/host_facts.hpp"

namespace npushmem::uid {

using namespace rendezvous;
namespace {

using UniqueIdSpan = std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES>;

// The rank and the number of ranks; -1: not given.
struct RankAndSize {
    int rank;
    int nranks;
};

Result<int> number_from(const Host& host, const char* name, int given) {
    if (given >= 0) return given;
    const std::string value = host.config(name, "-1");
    int number = -1;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), number);
    if (value.empty()) return -1;
    if (parsed.ec != std::errc{} || parsed.ptr != value.data() + value.size())
        return Status{Code::config, fmt::format("NPUSHMEM_{}='{}' is not a whole number", name, value)};
    return std::max(number, -1);
}

Result<RankAndSize> find_rank_and_size(const Host& host, const npushmem_bootstrap_params& params) {
    const auto rank = number_from(host, "PE", params.rank);
    if (!rank.ok()) return rank.status();
    const auto nranks = number_from(host, "NPES", params.nranks);
    if (!nranks.ok()) return nranks.status();
    return RankAndSize{rank.value(), nranks.value()};
}

Status check_rank_and_size(const RankAndSize& place) {
    if (place.rank < 0 || place.nranks < 0)
        return {Code::argument, fmt::format("there is a unique id but no {}: pass it to set_attr_uniqueid_args, start "
                                            "with npushmem-run, or set NPUSHMEM_PE and NPUSHMEM_NPES",
                                            place.rank < 0 ? "rank" : "number of ranks")};
    if (place.nranks < 1 || place.nranks > limits::ranks)
        return {Code::argument,
                fmt::format("a job cannot have {} ranks; expected 1 to {}", place.nranks, limits::ranks)};
    if (place.rank >= place.nranks)
        return {Code::range, fmt::format("rank {} is outside a job of {} ranks (0 to {})", place.rank, place.nranks,
                                         place.nranks - 1)};
    return {};
}

// Rank 0 serves the session itself, in its own process.
Result<UniqueId> id_of_session(const Settings& settings, int rank) {
    auto address = Address::resolve(settings.session, settings.family);
    if (!address.ok()) return address.status().within("NPUSHMEM_BOOTSTRAP_UID_SESSION_ID");
    const auto make = [&](const Address& service) -> Result<UniqueId> {
        return UniqueId::from_session(service, settings.session, settings.session_secret);
    };
    return rank == 0 ? RendezvousServices::of_process().serve(address.value(), make) : make(address.value());
}

// None if ranks may run on other hosts, or nobody knows how many there will be.
std::optional<JobMemory> memory_for_ranks(const Host& host, const Settings& settings, const Address& service) {
    const auto nranks = number_from(host, "NPES", -1);
    if (!settings.shares_memory || !service.is_loopback() || !nranks.ok()) return std::nullopt;
    if (nranks.value() < 2 || nranks.value() > limits::ranks) return std::nullopt;
    const auto here = host_identity(settings.emulated_host);
    if (!here.ok()) return std::nullopt;
    auto memory = JobMemory::create(nranks.value(), here.value());
    return memory.ok() ? std::optional(std::move(memory).value()) : std::nullopt;
}

// No id: this process has no sign that it belongs to a job.
using MaybeId = std::optional<UniqueId>;

Result<MaybeId> find_id(const Host& host, const npushmem_bootstrap_params& params, const Settings& settings, int rank) {
    const auto wrap = [](Result<UniqueId> id) -> Result<MaybeId> {
        return id.ok() ? Result<MaybeId>(MaybeId(id.value())) : Result<MaybeId>(id.status());
    };
    if (params.uniqueid != nullptr)
        return wrap(
            UniqueId::decode(UniqueIdSpan(static_cast<const std::byte*>(params.uniqueid), NPUSHMEM_UNIQUEID_BYTES)));
    const std::string digits = host.config("UNIQUEID");
    if (!digits.empty()) {
        auto id = UniqueId::decode_hex(digits);
        return wrap(id.ok() ? std::move(id) : Result<UniqueId>(id.status().within("NPUSHMEM_UNIQUEID")));
    }
    if (!settings.session.empty()) return wrap(id_of_session(settings, rank));
    return MaybeId{};
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> UidBootstrap::open(const Host& host, const npushmem_bootstrap_params& params) {
    const auto settings = Settings::read(host);
    const Settings fallback = Settings::reporting_defaults(host);
    const auto place = find_rank_and_size(host, params);
    if (!place.ok()) return place.status();
    const auto [rank, nranks] = place.value();
    const auto id = find_id(host, params, settings.ok() ? settings.value() : fallback, rank);
    if (!id.ok()) return id.status();
    if (!id.value() && !settings.ok()) return settings.status();
    if (!id.value() && rank < 1 && (nranks == -1 || nranks == 1)) return TreeBootstrap::single_rank();
    if (!id.value())
        return Status{Code::config, fmt::format("rank {} of {} has no unique id: pass one to init_attr, start with "
                                                "npushmem-run, or set NPUSHMEM_BOOTSTRAP_UID_SESSION_ID=host:port",
                                                rank, nranks)};
    if (Status sound = check_rank_and_size(place.value()); !sound.ok()) return sound;
    return join_or_report(host, settings, fallback, *id.value(), rank, nranks);
}

Status UidBootstrap::get_uniqueid(const Host& host, std::span<std::byte, NPUSHMEM_UNIQUEID_BYTES> id) {
    const auto settings = Settings::read(host);
    if (!settings.ok()) return settings.status();
    const auto where = settings.value().local_address();
    if (!where.ok()) return where.status();
    const auto made = RendezvousServices::of_process().serve(where.value(), UniqueId::make,
                                                             memory_for_ranks(host, settings.value(), where.value()));
    if (!made.ok()) return made.status();
    std::ranges::copy(made.value().encode(), id.begin());
    return {};
}

Status UidBootstrap::rank_ended(const Host& /*host*/, std::span<const std::byte, NPUSHMEM_UNIQUEID_BYTES> id, int rank,
                                int nranks, const std::string& how) {
    const auto decoded = UniqueId::decode(id);
    if (!decoded.ok()) return decoded.status();
    return RendezvousServices::of_process().rank_ended(decoded.value(), rank, nranks, how);
}

int UidBootstrap::recognise(const Host& host, const npushmem_bootstrap_params& params, std::string& why) {
    if (params.uniqueid != nullptr) why = "the program gave a unique id";
    if (why.empty() && !host.config("UNIQUEID").empty()) why = "NPUSHMEM_UNIQUEID is set";
    if (why.empty() && !host.config("BOOTSTRAP_UID_SESSION_ID").empty())
        why = "NPUSHMEM_BOOTSTRAP_UID_SESSION_ID is set";
    if (!why.empty()) return NPUSHMEM_RECOGNISED_BY_USER;
    why = "there is no sign of a launcher";
    return NPUSHMEM_RECOGNISED_NOTHING;
}

}  // namespace npushmem::uid
