// SPDX-License-Identifier: BSD-3-Clause
#include "transports/verbs/opened_port.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "core/base/parse.hpp"
#include "transports/verbs/ports.hpp"
#include "transports/verbs/verbs_settings.hpp"

namespace npushmem::verbs {
namespace {

constexpr int max_completions = 65536;

Status failure(const char* what, int error) {
    return {Code::system, fmt::format("ibv_{}: {}", what, text_of_error(error))};
}

void set_nonblocking(int descriptor) {
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags >= 0) (void)::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

const char* name_of_state(ibv_port_state state) {
    switch (state) {
        case IBV_PORT_DOWN: return "down";
        case IBV_PORT_INIT: return "initialising (is a subnet manager running?)";
        case IBV_PORT_ARMED: return "armed";
        default: return "not active";
    }
}

Result<ibv_mtu> choose_mtu(const ibv_port_attr& port, const VerbsSettings& settings) {
    if (settings.mtu == 0) return port.active_mtu;
    const auto wanted = static_cast<ibv_mtu>(std::bit_width(static_cast<unsigned>(settings.mtu)) - 8);
    if (wanted <= port.active_mtu) return wanted;
    return Status{Code::config, fmt::format("NPUSHMEM_IB_MTU={}: the port supports at most {}", settings.mtu,
                                            128 << static_cast<int>(port.active_mtu))};
}

// All addresses (GIDs) of the port.
Result<std::vector<ibv_gid_entry>> addresses_of(const OpenedPort& port) {
    constexpr std::size_t min_entries = 16;
    std::vector<ibv_gid_entry> table(std::max<std::size_t>(
        min_entries,
        static_cast<std::size_t>(port.device().phys_port_cnt) * static_cast<std::size_t>(port.port().gid_tbl_len)));
    const ssize_t count = port.library().query_gid_table(port.context(), table.data(), table.size());
    if (count < 0) return failure("query_gid_table", static_cast<int>(-count));
    table.resize(static_cast<std::size_t>(count));
    std::erase_if(table, [&port](const ibv_gid_entry& entry) { return entry.port_num != port.number(); });
    return table;
}

// True when the port has the partition key of the settings at this index.
bool has_pkey_at(const OpenedPort& port, int index) {
    constexpr std::uint16_t without_membership = 0x7fff;
    std::uint16_t found = 0;
    if (port.library().query_pkey(port.context(), port.number(), index, &found) != 0) return false;
    return ((ntohs(found) ^ port.settings().pkey) & without_membership) == 0;
}

}  // namespace

std::string registration_hint(int error, std::uint64_t registered_already) {
    rlimit limit{};
    if ((error != ENOMEM && error != EAGAIN) || ::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY)
        return {};
    return fmt::format(
        "; {} are registered already, and the limit of locked memory (ulimit -l, RLIMIT_MEMLOCK) is {}: "
        "raise it, for instance by 'memlock unlimited' in /etc/security/limits.d or LimitMEMLOCK=infinity "
        "of the service that starts the job",
        format_size(registered_already), format_size(limit.rlim_cur));
}

Status ProtectionDomain::open(ibv_context* context, const ibv_device_attr& device) {
    const int atomics = device.atomic_cap == IBV_ATOMIC_NONE ? 0 : IBV_ACCESS_REMOTE_ATOMIC;
    remote_access_ = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | atomics;
    pd_ = {library_->alloc_pd(context), [lib = library_](ibv_pd* pd) { lib->dealloc_pd(pd); }};
    return pd_ ? Status{} : failure("alloc_pd", errno);
}

Result<Owned<ibv_mr>> ProtectionDomain::register_memory(void* base, std::uint64_t bytes, int access) {
    const auto is_out_of_memory = [] { return errno == ENOMEM || errno == EAGAIN; };
    ibv_mr* made = library_->reg_mr(pd_.get(), base, bytes, access);
    if (made == nullptr && is_out_of_memory() && reclaim_ && reclaim_())
        made = library_->reg_mr(pd_.get(), base, bytes, access);
    if (made == nullptr)
        return Status{is_out_of_memory() ? Code::memory : Code::system,
                      fmt::format("ibv_reg_mr of {} at {}: {}{}", format_size(bytes), base, text_of_error(errno),
                                  registration_hint(errno, registered_bytes_))};
    registered_bytes_ += bytes;
    return Owned<ibv_mr>(made, [this, bytes](ibv_mr* mr) {
        library_->dereg_mr(mr);
        registered_bytes_ -= bytes;
    });
}

Status CompletionQueue::open(ibv_context* context, const ibv_device_attr& device) {
    channel_ = {library_->create_comp_channel(context),
                [lib = library_](ibv_comp_channel* channel) { lib->destroy_comp_channel(channel); }};
    if (!channel_) return failure("create_comp_channel", errno);
    set_nonblocking(channel_->fd);
    entries_ = std::min(max_completions, device.max_cqe);
    cq_ = {library_->create_cq(context, entries_, channel_.get()),
           [lib = library_](ibv_cq* cq) { lib->destroy_cq(cq); }};
    if (!cq_)
        return {Code::system, fmt::format("ibv_create_cq with {} entries: {}{}", entries_, text_of_error(errno),
                                          registration_hint(errno, 0))};
    return {};
}

Result<std::unique_ptr<OpenedPort>> OpenedPort::open(Library library, const npushmem_device& which,
                                                     const VerbsSettings& settings) {
    std::unique_ptr<OpenedPort> out(new OpenedPort(std::move(library), settings));
    out->name_ = name_of(which);
    Status s = out->open_device(which);
    if (s.ok()) s = out->find_addresses();
    if (s.ok()) s = out->find_pkey();
    if (s.ok()) {
        const auto mtu = choose_mtu(out->port_, settings);
        if (mtu.ok()) out->mtu_ = mtu.value();
        s = mtu.status();
    }
    if (s.ok()) s = out->domain_.open(out->context(), out->device_);
    if (s.ok()) s = out->completions_.open(out->context(), out->device_);
    if (!s.ok()) return s.within(fmt::format("cannot use RDMA port {}", name_of(which)));
    return out;
}

Status OpenedPort::open_device(const npushmem_device& which) {
    int count = 0;
    const Owned<ibv_device*> list(library_->get_device_list(&count),
                                  [this](ibv_device** devices) { library_->free_device_list(devices); });
    ibv_device* found = nullptr;
    for (int i = 0; list && i < count; ++i)
        if (std::strcmp(list.get()[i]->name, which.name) == 0) found = list.get()[i];
    if (found == nullptr) return {Code::unreachable, "the device no longer exists"};
    context_ = {library_->open_device(found), [lib = library_](ibv_context* context) { lib->close_device(context); }};
    if (!context_) return failure("open_device", errno);
    if (const int failed = library_->query_device(context_.get(), &device_); failed != 0)
        return failure("query_device", failed);
    number_ = static_cast<std::uint8_t>(which.port);
    if (const int failed = library_->query_port(context_.get(), number_, &port_); failed != 0)
        return failure("query_port", failed);
    if (port_.state != IBV_PORT_ACTIVE)
        return {Code::unreachable,
                fmt::format("the port is {}; rdma link shows the ports of this host", name_of_state(port_.state))};
    set_nonblocking(context_->async_fd);
    return {};
}

Status OpenedPort::find_addresses() {
    const auto table = addresses_of(*this);
    if (!table.ok()) return table.status();
    auto chosen = choose_gid(table.value(), ethernet(), settings_);
    if (!chosen.ok()) return chosen.status();
    gid_ = chosen.value();
    name_ += fmt::format(" ({})", text_of(gid_));
    return {};
}

Status OpenedPort::find_pkey() {
    if (settings_.pkey == 0) return {};
    for (int index = 0; index < port_.pkey_tbl_len; ++index) {
        if (!has_pkey_at(*this, index)) continue;
        pkey_index_ = static_cast<std::uint16_t>(index);
        return {};
    }
    return {Code::config, fmt::format("NPUSHMEM_IB_PKEY={:#x}: the port's table of {} keys does not contain it",
                                      settings_.pkey, port_.pkey_tbl_len)};
}

std::uint8_t OpenedPort::max_rd_atomic() const {
    constexpr int enough = 16;
    return static_cast<std::uint8_t>(
        std::clamp(std::min(device_.max_qp_rd_atom, device_.max_qp_init_rd_atom), 1, enough));
}

std::string OpenedPort::describe_changes() const {
    ibv_port_attr now{};
    if (library_->query_port(context_.get(), number_, &now) == 0 && now.lid != port_.lid)
        return fmt::format("port {} had the LID {} and has {} now", name_, port_.lid, now.lid);
    const auto table = addresses_of(*this);
    const bool known = !table.ok() || std::any_of(table.value().begin(), table.value().end(), [this](const auto& each) {
        return each.gid_index == gid_.gid_index && std::memcmp(each.gid.raw, gid_.gid.raw, sizeof gid_.gid.raw) == 0;
    });
    if (!known) return fmt::format("port {} no longer has this address", name_);
    if (settings_.pkey != 0 && !has_pkey_at(*this, pkey_index_))
        return fmt::format("port {} no longer has NPUSHMEM_IB_PKEY={:#x} at its index", name_, settings_.pkey);
    return {};
}

}  // namespace npushmem::verbs
