// SPDX-License-Identifier: BSD-3-Clause
#include "bench/moe/routing_binary.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "core/base/bytes.hpp"

namespace npushmem::moe {

namespace {

constexpr std::string_view magic("NPUSHRT\0", 8);
constexpr std::uint32_t version = 1;
constexpr std::size_t header_bytes = 32;
constexpr std::size_t choice_bytes = 8;  // an id and a weight

class BinaryReader {
public:
    BinaryReader(std::string_view bytes, std::string_view name)
        : file_bytes_(bytes.size()), in_(std::as_bytes(std::span(bytes))), name_(name) {}

    Result<Routing> routing() {
        if (Status s = read_header(); !s.ok()) return s;
        if (Status s = read_token_counts(); !s.ok()) return s;
        routing_.model = take_text(model_bytes_);
        routing_.origin = take_text(origin_bytes_);
        for (std::size_t rank = 0; rank < ranks_; ++rank) {
            if (Status s = read_ids(rank); !s.ok()) return s;
            if (Status s = read_weights(rank); !s.ok()) return s;
        }
        return std::move(routing_);
    }

private:
    [[nodiscard]] Status refuse(const std::string& problem) const {
        return {Code::argument, fmt::format("routing file '{}', binary: {}", name_, problem)};
    }
    [[nodiscard]] Status refuse_choice(const char* what, std::size_t rank, std::size_t index,
                                       const std::string& problem) const {
        const auto k = static_cast<std::size_t>(routing_.top_k);
        return refuse(fmt::format("{}, rank {}, token {}, choice {}: {}", what, rank, index / k, index % k, problem));
    }

    std::uint32_t take() { return in_.integer<std::uint32_t>(); }
    std::string take_text(std::size_t length) {
        const auto text = in_.take(length);
        return {reinterpret_cast<const char*>(text.data()), text.size()};
    }

    Status take_number(const char* field, std::uint32_t most, std::int32_t& number) {
        const std::uint32_t word = take();
        number = static_cast<std::int32_t>(word);
        if (word >= 1 && word <= most) return {};
        return refuse(fmt::format("{} is {}, must be from 1 to {}", field, word, most));
    }

    Status read_header() {
        if (file_bytes_ < header_bytes) {
            return refuse(
                fmt::format("it has {} bytes, its header alone {}; was it cut off?", file_bytes_, header_bytes));
        }
        (void)in_.take(magic.size());
        if (const std::uint32_t seen = take(); seen != version) {
            return refuse(fmt::format("it is of version {}, this program reads version {}", seen, version));
        }
        std::int32_t ranks = 0;
        if (Status s = take_number("the number of ranks", largest_number, ranks); !s.ok()) return s;
        if (Status s = take_number("the number of experts", largest_number, routing_.experts); !s.ok()) return s;
        if (Status s = take_number("top_k", max_file_top_k, routing_.top_k); !s.ok()) return s;
        ranks_ = static_cast<std::size_t>(ranks);
        model_bytes_ = take();
        origin_bytes_ = take();
        return {};
    }

    // Computes all sizes and compares them with the file's size before it allocates anything of such a size.
    Status read_token_counts() {
        std::uint64_t size = header_bytes + 4 * std::uint64_t{ranks_} + model_bytes_ + origin_bytes_;
        if (size > file_bytes_) return wrong_size(size, "at least ");
        for (std::size_t rank = 0; rank < ranks_; ++rank) {
            const std::uint32_t tokens = take();
            if (tokens > max_file_tokens) {
                return refuse(fmt::format("the number of tokens of rank {} is {}, at most {} is accepted", rank, tokens,
                                          max_file_tokens));
            }
            choices_.push_back(std::size_t{tokens} * static_cast<std::size_t>(routing_.top_k));
            size += choice_bytes * choices_.back();
            if (size > file_bytes_) return wrong_size(size, "at least ");
        }
        return size == file_bytes_ ? Status{} : wrong_size(size, "");
    }

    [[nodiscard]] Status wrong_size(std::uint64_t size, const char* least) const {
        return refuse(fmt::format(
            "it has {} bytes, but with {} ranks, their tokens and top_k {} as its header says it must have {}{}; {}",
            file_bytes_, ranks_, routing_.top_k, least, size,
            size > file_bytes_ ? "was it cut off?" : "what is behind its end?"));
    }

    Status read_ids(std::size_t rank) {
        auto& ids = routing_.expert_ids.emplace_back();
        for (std::size_t i = 0; i < choices_[rank]; ++i) {
            ids.push_back(static_cast<std::int32_t>(take()));
            if (ids.back() >= no_expert && ids.back() < routing_.experts) continue;
            return refuse_choice(
                "expert", rank, i,
                fmt::format("is {}, must be from 0 to {}, or -1 for none", ids.back(), routing_.experts - 1));
        }
        return {};
    }

    Status read_weights(std::size_t rank) {
        auto& weights = routing_.weights.emplace_back();
        for (std::size_t i = 0; i < choices_[rank]; ++i) {
            weights.push_back(std::bit_cast<float>(take()));
            if (std::isfinite(weights.back())) continue;
            return refuse_choice("weight", rank, i, fmt::format("is {}, must be finite", weights.back()));
        }
        return {};
    }

    std::size_t file_bytes_;
    ByteReader in_;  // the sizes have been checked before anything behind the header is read
    std::string_view name_;
    std::size_t ranks_ = 0;
    std::size_t model_bytes_ = 0;
    std::size_t origin_bytes_ = 0;
    std::vector<std::size_t> choices_;  // per rank
    Routing routing_;
};

}  // namespace

bool is_routing_binary(std::string_view bytes) { return bytes.starts_with(magic); }

Result<Routing> parse_routing_binary(std::string_view bytes, std::string_view name) {
    return BinaryReader(bytes, name).routing();
}

std::string routing_binary(const Routing& routing) {
    ByteWriter out;
    out.bytes(std::as_bytes(std::span(magic)));
    const auto append_word = [&out](auto word) { out.integer(static_cast<std::uint32_t>(word)); };
    append_word(version);
    append_word(routing.ranks());
    append_word(routing.experts);
    append_word(routing.top_k);
    append_word(routing.model.size());
    append_word(routing.origin.size());
    for (const auto& ids : routing.expert_ids) {
        append_word(ids.size() / static_cast<std::size_t>(routing.top_k));
    }
    out.bytes(std::as_bytes(std::span(routing.model))).bytes(std::as_bytes(std::span(routing.origin)));
    for (std::size_t rank = 0; rank < routing.expert_ids.size(); ++rank) {
        for (const std::int32_t id : routing.expert_ids[rank]) append_word(id);
        for (const float weight : routing.weights[rank]) append_word(std::bit_cast<std::uint32_t>(weight));
    }
    const auto bytes = out.take();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace npushmem::moe
