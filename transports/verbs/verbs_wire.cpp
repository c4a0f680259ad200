// Set-up: the port, its objects, and memory. Posting is in verbs_wire_post.cpp, progress in verbs_wire_progress.cpp.
#include "transports/verbs/verbs_wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>

#include "transports/verbs/ports.hpp"
#include "transports/verbs/verbs_settings.hpp"
#include "transports/verbs/work_request.hpp"

namespace npushmem::verbs {
namespace {

std::string list(const std::vector<npushmem_device>& ports) {
    std::string out;
    for (const auto& port : ports) out += (out.empty() ? "" : ", ") + name_of(port);
    return out;
}

Status no_port(const std::vector<npushmem_device>& ports, const std::vector<std::string>& notes) {
    std::string text = "no RDMA device of this machine can be used";
    if (ports.empty() && notes.empty())
        text =
            "this machine has no RDMA device (ibv_devices lists them; the module of a NIC, such as mlx5_ib, or "
            "rdma_rxe for "
            "RoCE in software, creates them)";
    if (!ports.empty())
        text = fmt::format("no RDMA port is active: {} {} down; rdma link shows why", list(ports),
                           ports.size() == 1 ? "is" : "are");
    for (const auto& note : notes) text += "; " + note;
    return {Code::unreachable, text};
}

bool active(const npushmem_device& port) { return port.state == NPUSHMEM_PORT_ACTIVE; }

// The active port for the PE of this index, round robin.
std::size_t port_for(const std::vector<npushmem_device>& ports, int local_index) {
    std::vector<std::size_t> usable;
    for (std::size_t i = 0; i < ports.size(); ++i)
        if (active(ports[i])) usable.push_back(i);
    return usable[static_cast<std::size_t>(std::max(local_index, 0)) % usable.size()];
}

// The part of one port in the concatenated data of a peer's ports; empty when the data is too short.
std::span<const std::byte> of_port(std::span<const std::byte> bytes, std::size_t port, std::size_t length) {
    if (bytes.size() % length != 0 || bytes.size() / length <= port) return {};
    return bytes.subspan(port * length, length);
}

RailId rail_of(const PortAddress& port_address) {
    return {port_address.rail, port_address.rail_given != 0, {port_address.gid, port_address.subnet_bits}};
}

std::uint64_t random_number() {
    std::random_device source;
    return static_cast<std::uint64_t>(source()) << 32 | source();
}

}  // namespace

VerbsWire::VerbsWire(Library library, const VerbsSettings& settings, const LocalPe& local_pe, Clock now)
    : library_(std::move(library)),
      settings_(settings),
      local_pe_(local_pe),
      now_(std::move(now)),
      nonce_(random_number()),
      peers_(static_cast<std::size_t>(std::max(local_pe.npes, 1))) {
    traits_.name = "verbs";
    traits_.delivery = network::Delivery::in_order_on_completion;
    traits_.message_bytes = message_bytes;
}

Result<std::unique_ptr<VerbsWire>> VerbsWire::open(Library library, const VerbsSettings& settings,
                                                   const LocalPe& local_pe, Clock now) {
    std::unique_ptr<VerbsWire> out(new VerbsWire(std::move(library), settings, local_pe, std::move(now)));
    std::vector<std::string> notes;
    auto ports = list_ports(*out->library_, notes);
    if (!ports.ok()) return ports.status();
    out->ports_ = std::move(ports).value();
    if (std::none_of(out->ports_.begin(), out->ports_.end(), active)) return no_port(out->ports_, notes);
    auto rails = rails_of_ports(out->ports_, settings.nic_rails);
    if (!rails.ok()) return rails.status();
    out->rails_ = std::move(rails).value();
    out->chosen_port_ = port_for(out->ports_, local_pe.local_index);
    return out;
}

Status VerbsWire::use_port(std::size_t index) {
    if (index >= ports_.size())
        return {Code::argument, fmt::format("RDMA port {} does not exist; this machine has {} ({})", index,
                                            ports_.size(), list(ports_))};
    if (port_) return {Code::state, fmt::format("port {} is open already", port_->name())};
    chosen_port_ = index;
    return {};
}

Status VerbsWire::ensure_open() {
    if (port_) return {};
    Status s = open_all(ports_[chosen_port_]);
    if (s.ok()) return s;
    close_all();
    return s;
}

// Destroys all objects of the port, which has no connections.
void VerbsWire::close_all() {
    descriptor_ = {};
    handshake_.reset();
    receive_queue_.reset();
    for (auto* pool : {&bounce_buffers_, &words_, &sends_, &receives_}) pool->reset();
    cache_.reset();
    memory_.reset();
    port_.reset();
}

Status VerbsWire::check_usable() {
    Status first;
    for (const auto& port : ports_) {
        if (!active(port)) continue;
        Status s = open_all(port);
        close_all();
        if (s.ok()) return s;
        if (first.ok()) first = std::move(s);
    }
    return first;
}

Status VerbsWire::open_all(const npushmem_device& which) {
    auto port = OpenedPort::open(library_, which, settings_);
    if (!port.ok()) return port.status();
    port_ = std::move(port).value();
    memory_ = std::make_unique<LocalMemory>(port_->domain(), settings_.chunk_bytes);
    cache_ = std::make_shared<RegistrationCache>(port_->domain(), watch_, settings_.cache_bytes);
    caches_->add(cache_);
    port_->domain().set_reclaim([caches = caches_] { return caches->drop_unused(); });
    Status s = open_receives();
    if (s.ok()) s = find_traits();
    if (s.ok()) s = open_descriptor();
    if (!s.ok()) return s.within(fmt::format("cannot use RDMA port {}", port_->name()));
    return {};
}

Status VerbsWire::open_receives() {
    struct Wanted {
        std::unique_ptr<BufferPool>& into;
        std::size_t count;
        std::size_t bytes;
    };
    for (const Wanted& wanted :
         {Wanted{receives_, receive_count, message_bytes}, Wanted{sends_, send_count, message_bytes},
          Wanted{words_, word_count, sizeof(std::uint64_t)}, Wanted{bounce_buffers_, bounce_count, bounce_bytes}}) {
        auto made = BufferPool::make(port_->domain(), wanted.count, wanted.bytes);
        if (!made.ok()) return made.status();
        wanted.into = std::move(made).value();
    }
    fetches_.resize(word_count);
    ibv_srq_init_attr wanted{};
    wanted.attr.max_wr = receive_count;
    wanted.attr.max_sge = 1;
    receive_queue_ = {library_->create_srq(port_->domain().get(), &wanted),
                      [lib = library_](ibv_srq* srq) { lib->destroy_srq(srq); }};
    if (!receive_queue_)
        return {Code::system, fmt::format("ibv_create_srq with {} receives: {}", receive_count, text_of_error(errno))};
    for (std::size_t i = 0; i < receive_count; ++i)
        if (Status s = post_receive(i); !s.ok()) return s;
    auto handshake = UdHandshake::open(*port_);
    if (!handshake.ok()) return handshake.status();
    handshake_ = std::move(handshake).value();
    const int reserved = static_cast<int>(receive_count) + UdHandshake::max_completions;
    if (port_->completions().entries() <= 2 * reserved)
        return {Code::system, fmt::format("the device's completion queues have at most {} entries, which is too few",
                                          port_->completions().entries())};
    max_in_flight_ = static_cast<std::uint32_t>(port_->completions().entries() - reserved);
    return {};
}

Status VerbsWire::post_receive(std::size_t index) {
    ibv_sge place{reinterpret_cast<std::uintptr_t>(receives_->at(index)),
                  static_cast<std::uint32_t>(receives_->bytes()), receives_->lkey()};
    ibv_recv_wr request{};
    request.wr_id = WorkRequestId{WorkRequestId::Kind::receive, 0, static_cast<std::uint32_t>(index)}.packed();
    request.sg_list = &place;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    const int failed = library_->post_srq_recv(receive_queue_.get(), &request, &bad);
    return failed == 0 ? Status{} : Status{Code::system, fmt::format("ibv_post_srq_recv: {}", text_of_error(failed))};
}

// Creates and destroys a queue pair to find the device's limits, and to fail early.
Status VerbsWire::find_traits() {
    const auto probe = Connection::make(*port_, receive_queue_.get(), {{local_pe_.pe}});
    if (!probe.ok()) return probe.status();
    traits_.name = "verbs on " + port_->name();
    const char* const kind = !port_->ethernet()                              ? "InfiniBand"
                             : port_->gid().gid_type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
                                                                             : "RoCE v2";
    traits_.inject_bytes = probe.value()->pair().inline_bytes();
    if (traits_.inject_bytes >= sizeof(std::uint64_t)) traits_.signals = 1U << NPUSHMEM_SIGNAL_SET;
    const bool coherent = port_->device().atomic_cap == IBV_ATOMIC_GLOB;
    const bool able = port_->device().atomic_cap != IBV_ATOMIC_NONE;
    const bool native = settings_.atomics == NativeAtomics::always        ? able
                        : settings_.atomics == NativeAtomics::if_coherent ? coherent
                                                                          : false;
    traits_.protocol = fmt::format("verbs RC, {}{}", kind, native ? ", native atomics" : "");
    if (native)
        traits_.atomic_64 = 1U << NPUSHMEM_ATOMIC_FETCH | 1U << NPUSHMEM_ATOMIC_ADD | 1U << NPUSHMEM_ATOMIC_FETCH_ADD |
                            1U << NPUSHMEM_ATOMIC_COMPARE_SWAP;
    return {};
}

Status VerbsWire::open_descriptor() {
    auto made =
        network::CombinedDescriptor::of(std::array{port_->completions().descriptor(), port_->context()->async_fd});
    if (!made.ok()) return made.status();
    descriptor_ = std::move(made).value();
    return {};
}

PortAddress VerbsWire::own_port_address() const {
    PortAddress out;
    out.lid = port_->port().lid;
    std::memcpy(out.gid.data(), port_->gid().gid.raw, out.gid.size());
    out.handshake_qp = handshake_->number();
    out.mtu = static_cast<std::uint8_t>(port_->mtu());
    out.max_rd_atomic = port_->max_rd_atomic();
    out.rail = static_cast<std::uint8_t>(rails_[chosen_port_].number);
    out.rail_given = rails_[chosen_port_].given ? 1 : 0;
    out.subnet_bits = static_cast<std::uint8_t>(subnet_bits(port_->gid().gid, port_->ethernet(), local_pe_.subnets));
    out.nonce = nonce_;
    return out;
}

Result<Bytes> VerbsWire::address() {
    if (Status opened = ensure_open(); !opened.ok()) return opened;
    return bytes_from(own_port_address());
}

VerbsWire::Peer& VerbsWire::peer(int pe) {
    auto& out = peers_[static_cast<std::size_t>(pe)];
    if (!out) out = std::make_unique<Peer>();
    return *out;
}

network::Port VerbsWire::port() const { return {rail_of(own_port_address()), name_of(ports_[chosen_port_])}; }

Result<network::Port> VerbsWire::port_of(std::span<const std::byte> address) const {
    const auto port_address = port_address_from(address);
    if (!port_address)
        return Status{Code::protocol, fmt::format("{} bytes are not the address of an RDMA port", address.size())};
    ibv_gid gid{};
    std::memcpy(gid.raw, port_address->gid.data(), port_address->gid.size());
    return network::Port{rail_of(*port_address), short_text_of(gid)};
}

Result<network::PortPair> VerbsWire::pair_with(const network::PeerPorts& peer) const {
    const network::Wire* const self = this;
    auto pairs = network::pair_ports(local_pe_.pe, std::span(&self, 1), peer);
    if (!pairs.ok()) return pairs.status();
    return std::move(pairs.value().front());
}

Result<std::string> VerbsWire::route_to(int pe, std::span<const std::byte> address) {
    if (Status opened = ensure_open(); !opened.ok()) return opened;
    const auto pair = pair_with({pe, address, sizeof(PortAddress)});
    if (!pair.ok()) return pair.status();
    return fmt::format("{}: {}", traits_.name, pair.value().text);
}

Status VerbsWire::add_peer(int pe, std::span<const std::byte> address) {
    if (Status opened = ensure_open(); !opened.ok()) return opened;
    const network::PeerPorts ports{pe, address, sizeof(PortAddress)};
    const auto pair = pair_with(ports);
    if (!pair.ok()) return pair.status();
    Peer& known = peer(pe);
    known.port = pair.value().theirs;
    if (!known.port_address) known.port_address = port_address_from(ports.address(known.port));
    return {};
}

Result<network::WireMemory> VerbsWire::register_memory(void* base, std::uint64_t bytes) {
    if (Status opened = ensure_open(); !opened.ok()) return opened;
    network::WireMemory out;
    out.number = memory_->add(base, bytes);
    out.key = bytes_from(RegionInfo{out.number, bytes, memory_->chunk_bytes()});
    return out;
}

Result<std::uint64_t> VerbsWire::import_key(int pe, std::span<const std::byte> bytes) {
    const auto info = plain_from<RegionInfo>(of_port(bytes, peer(pe).port, sizeof(RegionInfo)));
    if (!info || info->bytes == 0 || info->chunk_bytes == 0)
        return Status{Code::protocol, fmt::format("{} bytes do not describe memory of a peer", bytes.size())};
    remote_.push_back(std::make_unique<RemoteMemory>(pe, *info));
    return remote_.size();
}

}  // namespace npushmem::verbs
