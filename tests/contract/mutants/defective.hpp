// SPDX-License-Identifier: BSD-3-Clause
// Seeds one defect into any transport.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "npushmem/plugin/decorator_transport.hpp"
#include "npushmem/testing/mocks.hpp"
#include "tests/contract/mutants/defects.hpp"

namespace npushmem::contract {

using OpenTransport =
    std::function<Result<std::unique_ptr<Transport>>(const npushmem_host&, const npushmem_transport_params&)>;

// Returns a function that opens what `open` opens, with the defect around it. Some defects wait within a call until the
// inner transport has delivered; they need an inner transport that delivers at calls of the initiator alone.
OpenTransport with_defect(Defect defect, OpenTransport open);

// Say where, so that the failure of the case shows that the defect is the cause.
[[noreturn]] void hang(const char* where);
void crash(const char* where);

// The transport that a defective one wraps. A base, because it must exist before the decorator.
class OwnedInner {
protected:
    explicit OwnedInner(std::unique_ptr<Transport> inner) : owned_(std::move(inner)) {}
    std::unique_ptr<Transport> owned_;
    fakes::InnerTable table_{*owned_};
};

// A method that differs from the decorator's holds the defects of that call. Tokens are this class's own numbers.
class Defective final : private OwnedInner, public DecoratorTransport {
public:
    Defective(Defect defect, std::unique_ptr<Transport> inner, const npushmem_transport_params& params)
        : OwnedInner(std::move(inner)),
          DecoratorTransport(table_.params(params.pe), 0),
          defect_(defect),
          pe_(params.pe),
          host_(params.host) {}
    ~Defective() override;

    Result<std::vector<npushmem_device>> devices() override;
    Reach reach(const npushmem_peer& peer) override;
    Code deregister_memory(std::uint64_t region) override;
    Result<std::uint64_t> import_memory(int pe, std::span<const std::byte> handle) override;
    Code release_memory(std::uint64_t remote) override;
    Result<void*> map(std::uint64_t remote) override;
    Result<std::uint64_t> create_queue() override;
    Code destroy_queue(std::uint64_t queue) override;

    Code put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override;
    Code get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) override;
    Code atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) override;
    Code put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) override;
    Code put_strided(std::uint64_t queue, const npushmem_put_strided& op, std::uint64_t* token) override;
    Code fence(std::uint64_t queue) override;
    Code quiet(std::uint64_t queue) override;
    Code test(std::uint64_t queue, std::uint64_t token) override;
    Code progress() override;
    Code poll_event(npushmem_event& out) override;
    Code forget(int pe) override;
    Code report_arrivals(void (*arrived)(void* context), void* context) override;

private:
    struct Token {
        std::uint64_t queue;
        std::uint64_t number;
    };
    // An addition in two steps: a get, and a put of the sum.
    struct Addition {
        std::uint64_t queue;
        npushmem_atomic op;
        std::uint64_t* word;
        std::uint64_t token;
    };

    // A get into memory of this class, whose data is copied to its caller when it has arrived.
    struct Landing {
        std::uint64_t queue;
        std::uint64_t token;
        void* to;
        Bytes bytes;
    };

    [[nodiscard]] bool has(Defect defect) const { return defect_ == defect; }
    // Returns whether this call is one in `period`.
    bool each(std::uint64_t period) { return ++calls_ % period == 0; }
    // A queue of the inner transport that no fence of the caller reaches.
    std::uint64_t unfenced(std::uint64_t queue);
    bool has_unfenced_queue() const;
    bool quiet_covers_unfenced() const;
    // Calls `call(queue, &inner token)` and gives the caller a token.
    template <class Post>
    Code post(std::uint64_t queue, std::uint64_t* token, Post call);
    Code done(std::uint64_t* token) const;
    // Repeats the call while it returns again.
    template <class Call>
    Code repeat(Call call);
    Code wait_for_delivery(std::uint64_t queue);

    std::optional<Code> lose_put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token);
    int owner_of(std::uint64_t remote, int otherwise) const;
    npushmem_rma wrong_put(const npushmem_rma& op) const;
    Code put_around_border(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token);
    Code put_and_more(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token);
    Code put_in_halves(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token);
    Code get_around_border(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token);
    Code get_in_halves(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token);
    Code get_from_cache(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token);
    npushmem_put_strided wrong_strided(const npushmem_put_strided& op) const;
    npushmem_atomic wrong_atomic(const npushmem_atomic& op) const;
    Code atomic_of_wrong_width(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token);
    Code fetch_new_value(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token);
    Code add_in_two_steps(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token);
    void finish_additions();
    Code signal_after_halves(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token);
    // Instead of the caller's memory, which may end before a defective transfer: a copy of the source, and a landing.
    npushmem_rma with_own_source(const npushmem_rma& op);
    Code get_into_landing(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token);
    void finish_landings();
    Code signal_first(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token);
    Code forget_unknown(int pe);
    void forget_all();

    const Defect defect_;
    const int pe_;
    const npushmem_host_id host_;
    std::recursive_mutex mutex_;  // guards what follows, and holds through each call
    std::uint64_t calls_ = 0;
    std::uint64_t last_token_ = 0;
    std::map<std::uint64_t, Token> tokens_;
    std::set<std::uint64_t> lost_tokens_;
    std::vector<std::uint64_t> queues_;                // alive, in the order of their creation
    std::set<std::uint64_t> destroyed_;                // queues
    std::map<std::uint64_t, std::uint64_t> unfenced_;  // by the caller's queue
    std::set<std::uint64_t> outstanding_;              // queues with posts since their last successful quiet
    std::map<std::uint64_t, Code> failed_;             // queues
    bool lose_next_put_ = false;
    bool has_event_ = false;
    std::function<void()> on_arrival_;                                     // under the lock of the fake fabric
    std::set<int> forgotten_;                                              // PEs
    std::map<int, std::vector<void*>> mapped_;                             // addresses of each PE's memory
    std::map<int, std::vector<std::pair<std::uint64_t, Bytes>>> imports_;  // of each PE: number and handle
    std::set<std::uint64_t> released_;
    std::set<std::uint64_t> unreachable_;  // imports
    std::set<std::uint64_t> invented_;     // numbers given for handles that the inner transport has refused
    std::map<std::pair<std::uint64_t, std::uint64_t>, Bytes> cache_;  // by remote and offset
    std::vector<Addition> additions_;
    std::vector<std::unique_ptr<Landing>> landings_;
    std::vector<std::unique_ptr<Bytes>> sources_;
    std::vector<std::unique_ptr<std::uint64_t>> words_;  // of additions
};

// The token belongs to `queue`, which is the inner transport's.
template <class Post>
Code Defective::post(std::uint64_t queue, std::uint64_t* token, Post call) {
    std::uint64_t number = 0;
    const Code code = call(queue, &number);
    if (code != Code::ok) return code;
    outstanding_.insert(queue);
    if (token == nullptr) return code;
    *token = 0;
    if (number == 0) return code;
    *token = has(Defect::reused_token) ? 1 : ++last_token_;
    tokens_[*token] = {queue, number};
    if (has(Defect::lost_completions) && *token % 100 == 0) lost_tokens_.insert(*token);
    return code;
}

template <class Call>
Code Defective::repeat(Call call) {
    Code code = call();
    while (code == Code::again) {
        (void)inner().progress();
        code = call();
    }
    return code;
}

}  // namespace npushmem::contract
