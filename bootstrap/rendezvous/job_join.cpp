// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/rendezvous/job_join.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bootstrap/rendezvous/collectives.hpp"
#include "bootstrap/rendezvous/messages.hpp"
#include "bootstrap/rendezvous/settings.hpp"
#include "bootstrap/rendezvous/shared_memory_bootstrap.hpp"
#include "core/base/host_facts.hpp"
#include "core/base/parse.hpp"
#include "core/base/version.hpp"

namespace npushmem::rendezvous {

JobJoin::JobJoin(const Host& host, const Settings& settings, const UniqueId& id, int rank, int nranks)
    : log_host_(host),
      settings_(settings),
      id_(id),
      nranks_(nranks),
      place_(tree_place(rank, nranks)),
      me_(Identity::of_this_process(rank)),
      timeout_(settings.timeout),
      deadline_(Deadline::after(timeout_, limits::cause_report_grace)),
      links_(me_.text()),
      children_(place_.children.size()) {
    if (!settings.shares_memory) return;
    const auto here = host_identity(settings.emulated_host);
    if (here.ok()) host_ = here.value();
}

Result<std::unique_ptr<Bootstrap>> JobJoin::run() {
    if (!id_.memory.given() || !host_) return join_service();
    const Moment begin = Clock::now();
    auto job = attach_to_memory_of_id();
    Status why = job.status();
    if (job.ok()) {
        why = job.value()->opening_barrier(Deadline::after(timeout_));
        if (why.ok()) log_host_.log(LogLevel::debug, "all ranks have attached to the memory of the unique id");
        if (why.ok()) return std::unique_ptr<Bootstrap>(std::move(job).value());
        if (!job.value()->is_refused()) return why;
    }
    log_host_.log(LogLevel::info, "joins the rendezvous service: " + why.message());
    const auto waited = std::chrono::duration_cast<Milliseconds>(Clock::now() - begin);
    timeout_ = std::max(timeout_ - waited, Milliseconds{1});
    deadline_ = Deadline::after(timeout_, limits::cause_report_grace);
    return join_service();
}

Result<std::unique_ptr<SharedMemoryBootstrap>> JobJoin::attach_to_memory_of_id() {
    auto memory = JobMemory::attach(id_.memory, nranks_, *host_);
    if (!memory.ok()) return memory.status();
    return SharedMemoryBootstrap::open(std::move(memory).value(), me_, settings_.collective_timeout);
}

Result<std::unique_ptr<Bootstrap>> JobJoin::join_service() {
    auto service = connect_to_service();
    if (!service.ok()) return service.status();
    const Address towards_service = service.value().socket().local_address();
    const std::string name = fmt::format("the rendezvous service at {}", id_.service.text());
    service_ = links_.add(std::move(service).value(), name, name);
    links_.set_arbiter(service_);
    const Status listening = listen(towards_service);
    if (Status joined = join(); !joined.ok()) return joined;
    if (!listening.ok()) return links_.fail(listening.within(me_.text()));
    if (Status assigned = await_assignment(); !assigned.ok()) return assigned;
    return assigned_.memory.given() ? share_memory() : connect_tree();
}

Result<std::unique_ptr<Bootstrap>> JobJoin::share_memory() {
    auto memory =
        me_.rank == 0 ? Result<JobMemory>(*std::move(memory_)) : JobMemory::attach(assigned_.memory, nranks_, *host_);
    if (!memory.ok()) {
        // If rank 0 has ended, the service reports it.
        Status cause;
        for (const auto limit = Deadline::after(limits::cause_report_grace); cause.ok() && !limit.passed();)
            cause = links_.exchange({}, limit);
        return cause.ok() ? links_.fail(memory.status().within(me_.text())) : cause;
    }
    auto opened = SharedMemoryBootstrap::open(std::move(memory).value(), me_, settings_.collective_timeout);
    if (!opened.ok()) return links_.fail(opened.status());
    auto made = std::move(opened).value();
    const Status all_here = made->opening_barrier(deadline_, [this] { return links_.exchange({}, Deadline::now()); });
    if (!all_here.ok()) return links_.fail(all_here);
    if (Status left = links_.send(service_, FrameType::leave, {}); !left.ok()) return left;
    links_.remove(service_);
    return std::unique_ptr<Bootstrap>(std::move(made));
}

Result<std::unique_ptr<Bootstrap>> JobJoin::connect_tree() {
    if (Status linked = connect_neighbours(); !linked.ok()) return linked;
    TreeLinks tree{parent_, {}};
    for (const auto& child : children_) tree.children.push_back(*child);
    auto made = std::make_unique<Collectives>(std::move(links_), std::move(tree), place_, settings_.collective_timeout);
    if (Status all_here = made->opening_barrier(deadline_); !all_here.ok()) return all_here;
    if (Status left = made->links().send(service_, FrameType::leave, {}); !left.ok()) return left;
    made->links().remove(service_);
    return std::unique_ptr<Bootstrap>(std::make_unique<TreeBootstrap>(std::move(made), me_.rank, nranks_));
}

Result<Channel> JobJoin::connect_to_service() {
    Connector connector(id_.service, id_.credentials, 0, "the rendezvous service");
    const auto deadline = Deadline::after(timeout_);
    for (;;) {
        const auto there = connector.step();
        if (!there.ok()) return there.status().within(me_.text());
        if (there.value()) return connector.take();
        if (deadline.passed())
            return Status{Code::timeout,
                          fmt::format("{} could not reach {} within {}; does the process that created the "
                                      "unique id still run, and may this host connect to it?",
                                      me_.text(), connector.describe_failure(), format_duration(settings_.timeout))};
        pollfd waiting = connector.interest();
        (void)::poll(&waiting, 1, deadline.sooner(connector.next_timeout()).poll_milliseconds());
    }
}

// Listens on the local address of the connection to the service, unless the user names another interface.
Status JobJoin::listen(const Address& towards_service) {
    if (place_.children.empty()) return {};
    Address where = towards_service.with_port(0);
    if (!settings_.interface_pattern.empty()) {
        const auto chosen = settings_.local_address();
        if (!chosen.ok()) return chosen.status();
        where = chosen.value();
    }
    auto listener = Socket::listen(where);
    if (!listener.ok()) return listener.status();
    auto find = [credentials = id_.credentials](const Nonce& job) {
        return job == credentials.job ? std::optional(credentials) : std::nullopt;
    };
    auto acceptor = HandshakeAcceptor::make(std::move(listener).value(), 0, find);
    if (!acceptor.ok()) return acceptor.status();
    acceptor_.emplace(std::move(acceptor).value());
    return {};
}

Status JobJoin::join() {
    Join join{me_, nranks_, library_version, timeout_, acceptor_ ? acceptor_->address() : Address{}, {}, {}};
    if (host_) offer_memory(join);
    return links_.send(service_, FrameType::join, {join.encode()});
}

// Without memory, or where the host cannot be identified, the ranks are connected in a tree.
void JobJoin::offer_memory(Join& join) {
    if (me_.rank == 0) {
        auto memory = JobMemory::create(nranks_, *host_);
        if (!memory.ok()) return;
        memory_ = std::move(memory).value();
        join.memory = memory_->handle();
    }
    join.host = *host_;
}

Status JobJoin::await_assignment() {
    auto frame = links_.receive(service_, deadline_);
    if (!frame.ok()) return frame.status();
    const auto assigned =
        frame.value().type == FrameType::assign ? Assign::decode(frame.value().payload) : std::nullopt;
    const bool shares = assigned && assigned->memory.given();
    const bool fits = shares ? host_ && (me_.rank != 0 || memory_) : assigned && assigned->parent.rank == place_.parent;
    if (!fits)
        return links_.fail(
            {Code::protocol, me_.text() + " got an answer from the rendezvous service that does not fit its join"});
    assigned_ = *assigned;
    if (acceptor_) acceptor_->expect_session(assigned_.session);
    return {};
}

bool JobJoin::linked() const {
    const bool parent_linked = place_.parent < 0 || parent_.has_value();
    return parent_linked && std::ranges::all_of(children_, [](const auto& child) { return child.has_value(); });
}

Status JobJoin::connect_neighbours() {
    if (place_.parent >= 0)
        parent_connector_.emplace(assigned_.parent_listener, id_.credentials, assigned_.session,
                                  assigned_.parent.text());
    for (;;) {
        if (Status parent = connect_to_parent(); !parent.ok()) return parent;
        if (Status children = accept_children(); !children.ok()) return children;
        if (linked()) break;
        if (deadline_.passed()) return timed_out();
        if (Status round = poll_once(); !round.ok()) return round;
    }
    acceptor_.reset();
    return {};
}

Status JobJoin::poll_once() {
    constexpr pollfd nothing{-1, 0, 0};
    std::array<pollfd, 2> others{nothing, nothing};
    Deadline deadline = deadline_;
    if (parent_connector_) {
        others[0] = parent_connector_->interest();
        deadline = deadline.sooner(parent_connector_->next_timeout());
    }
    if (acceptor_) {
        others[1] = {acceptor_->fd(), POLLIN, 0};
        deadline = deadline.sooner(acceptor_->next_timeout());
    }
    return links_.exchange(others, deadline);
}

Status JobJoin::connect_to_parent() {
    if (!parent_connector_) return {};
    const auto there = parent_connector_->step();
    if (!there.ok()) return links_.fail(there.status().within(me_.text()));
    if (!there.value()) return {};
    parent_ =
        links_.add(parent_connector_->take(), assigned_.parent.text(), assigned_.parent.text() + " or another rank");
    parent_connector_.reset();
    return links_.send(*parent_, FrameType::link, {Link{me_}.encode()});
}

Status JobJoin::accept_children() {
    if (!acceptor_) return {};
    for (AuthenticatedConnection& child : acceptor_->serve())
        if (Status admitted = add_child(std::move(child)); !admitted.ok()) return admitted;
    return {};
}

Status JobJoin::add_child(AuthenticatedConnection child) {
    const auto link = child.first.type == FrameType::link ? Link::decode(child.first.payload) : std::nullopt;
    if (!link)
        return links_.fail(
            {Code::protocol, "a holder of the job's secret sent " + me_.text() + " a wrong link message"});
    const auto place = std::ranges::find(place_.children, link->who.rank, &TreeRange::first);
    const auto index = static_cast<std::size_t>(place - place_.children.begin());
    if (place == place_.children.end() || children_[index])
        return links_.fail(
            {Code::protocol, fmt::format("{} connected to {} as its child, which it is not or was already",
                                         link->who.text(), me_.text())});
    const std::string name = link->who.text();
    children_[index] = links_.add(std::move(child.channel), name, describe_subtree(*place, name));
    return {};
}

std::string JobJoin::describe_subtree(const TreeRange& range, const std::string& top) const {
    if (range.size() == 1) return top;
    std::vector<int> below;
    for (int rank = range.first + 1; rank < range.end; ++rank) below.push_back(rank);
    return fmt::format("{} or {} below it", top, rank_list(below));
}

Status JobJoin::timed_out() {
    if (parent_connector_)
        return links_.fail(
            {Code::timeout, fmt::format("{} could not connect to {} within {}", me_.text(),
                                        parent_connector_->describe_failure(), format_duration(settings_.timeout))});
    std::vector<int> missing;
    for (std::size_t i = 0; i < children_.size(); ++i)
        if (!children_[i]) missing.push_back(place_.children[i].first);
    return links_.fail({Code::timeout, fmt::format("{} did not connect to {} within {}", rank_list(missing), me_.text(),
                                                   format_duration(settings_.timeout))});
}

Result<std::unique_ptr<Bootstrap>> join_or_report(const Host& host, const Result<Settings>& read,
                                                  const Settings& fallback, const UniqueId& id, int rank, int nranks) {
    if (nranks == 1)
        return read.ok() ? Result<std::unique_ptr<Bootstrap>>(TreeBootstrap::single_rank())
                         : Result<std::unique_ptr<Bootstrap>>(read.status());
    auto job = JobJoin(host, read.ok() ? read.value() : fallback, id, rank, nranks).run();
    if (read.ok()) return job;
    if (job.ok()) job.value()->abort(read.status().message());
    return read.status();
}

}  // namespace npushmem::rendezvous
