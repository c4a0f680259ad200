// A test bench for DirectCombine: a thread per PE, each with a device, buffers, payload and reference.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/moe/direct_combine.hpp"
#include "core/moe/payload.hpp"
#include "core/moe/reference.hpp"
#include "core/moe/stream/row_ring.hpp"
#include "npushmem/npu/device.hpp"
#include "tests/fakes/thread_world.hpp"
#include "tests/unit/core/moe/routing_cases.hpp"

namespace npushmem::moe {

class CombinePe {
public:
    CombinePe(fakes::ThreadWorld& world, const CombineConfig& config, int pe, int blocks, bool window)
        : world_(world),
          config_(config),
          memory_(std::make_shared<fakes::ThreadMemory>(world, pe)),
          fabric_(std::make_shared<fakes::ThreadFabric>(world, pe, window)),
          pe_(pe) {
        npu::DeviceConfig device;
        device.blocks = blocks;
        device_ = std::move(npu::Device::create(device, *fabric_)).value();
    }
    // A second layer on the same PE, memory and device; not opened.
    CombinePe(const CombinePe& other)
        : world_(other.world_),
          config_(other.config_),
          memory_(other.memory_),
          fabric_(other.fabric_),
          device_(other.device_),
          pe_(other.pe_) {}
    CombinePe& operator=(const CombinePe&) = delete;
    ~CombinePe() = default;

    [[nodiscard]] int pe() const { return pe_; }
    [[nodiscard]] CombineConfig& config() { return config_; }
    [[nodiscard]] DirectCombine& engine() { return *engine_; }
    [[nodiscard]] fakes::ThreadMemory& memory() { return *memory_; }
    [[nodiscard]] fakes::ThreadFabric& fabric() { return *fabric_; }
    [[nodiscard]] const std::string& error() const { return error_; }
    [[nodiscard]] const std::vector<std::byte>& out() const { return out_; }
    [[nodiscard]] std::byte* x_data() { return x_.data(); }
    [[nodiscard]] std::byte* out_data() { return out_.data(); }
    void use_random_payload() { random_payload_ = true; }
    void meet() { world_.meet(); }

    bool open() {
        auto made = DirectCombine::create(config_, *memory_, *device_);
        if (!made.ok()) return note(made.status());
        engine_ = std::move(made).value();
        return true;
    }
    void close() { engine_.reset(); }

    // Gives this PE's part of the routing to the library, and takes it as what to expect.
    bool route(const Routing& routing) {
        adopt(routing);
        return note(engine_->set_routing(own_));
    }
    // As what to expect only.
    void adopt(const Routing& routing) {
        routing_ = routing;
        own_ = routing_.rank(static_cast<std::size_t>(pe_));
    }

    void fill(std::uint64_t salt) {
        const CombinePlan& plan = engine_->plan();
        x_.assign(bytes_of(plan.rows, config_.row_bytes()).value(), std::byte{0x5A});
        for (std::int32_t expert = 0; expert < plan.local_experts; ++expert) {
            for (std::int32_t rank = 0; rank < plan.ranks; ++rank) fill_fragment(plan, expert, rank, salt);
        }
        out_.assign(own_.tokens(config_.top_k) * out_row(), std::byte{0xA5});
    }

    bool combine() { return note(engine_->combine(x_.data(), out_.data())); }

    // "" or the first element that is not the reference's.
    std::string first_difference(std::uint64_t salt) {
        for (std::size_t token = 0; token < own_.tokens(config_.top_k); ++token) {
            for (std::int64_t c = 0; c < config_.hidden; ++c) {
                const auto column = static_cast<std::size_t>(c);
                const std::byte* seen = out_.data() + token * out_row() + column * element_bytes(config_.output);
                std::byte expected[4];
                write(config_.output, expected, expected_sum(token, column, salt));
                if (std::memcmp(seen, expected, element_bytes(config_.output)) == 0) continue;
                return fmt::format("PE {}, token {}, column {}: expected {}, seen {}", pe_, token, column,
                                   read(config_.output, expected), read(config_.output, seen));
            }
        }
        return "";
    }

private:
    static std::size_t element_bytes(ElementType type) { return static_cast<std::size_t>(size_of(type)); }
    [[nodiscard]] std::size_t out_row() const {
        return static_cast<std::size_t>(config_.hidden) * element_bytes(config_.output);
    }
    bool note(const Status& status) {
        error_ = status.message();
        return status.ok();
    }

    [[nodiscard]] float value(const RowKey& key, std::size_t column) const {
        const std::uint64_t seed = row_seed(key);
        return random_payload_ ? random_value(seed, column) : exact_value(seed, column);
    }

    void fill_fragment(const CombinePlan& plan, std::int32_t expert, std::int32_t rank, std::uint64_t salt) {
        const Fragment fragment = plan.fragment(expert, rank);
        for (std::uint64_t row = fragment.first.value(); row < fragment.first.value() + fragment.count.value(); ++row) {
            const RowKey key{salt, rank, plan.slots[row], plan.first_expert + expert};
            std::byte* target = x_.data() + bytes_of(Rows{row}, config_.row_bytes()).value();
            for (std::size_t c = 0; c < static_cast<std::size_t>(config_.hidden); ++c) {
                write(config_.input, target + c * element_bytes(config_.input), value(key, c));
            }
        }
    }

    float expected_sum(std::size_t token, std::size_t column, std::uint64_t salt) const {
        const auto top_k = static_cast<std::size_t>(config_.top_k);
        const auto experts = own_.experts.subspan(token * top_k, top_k);
        const auto weights = own_.weights.subspan(token * top_k, top_k);
        return reference_sum(experts, weights, [&](std::size_t k) {
            return value({salt, pe_, static_cast<std::uint32_t>(token * top_k + k), experts[k]}, column);
        });
    }

    static void write(ElementType type, std::byte* target, float v) {
        if (type == ElementType::bfloat16) return put(target, from_float<Bfloat16>(v));
        if (type == ElementType::half) return put(target, from_float<Half>(v));
        put(target, v);
    }
    template <class Element>
    static void put(std::byte* target, Element element) {
        std::memcpy(target, &element, sizeof element);
    }
    static float read(ElementType type, const std::byte* source) {
        if (type == ElementType::bfloat16) return get<Bfloat16>(source);
        return type == ElementType::half ? get<Half>(source) : get<float>(source);
    }
    template <class Element>
    static float get(const std::byte* source) {
        Element element;
        std::memcpy(&element, source, sizeof element);
        return to_float(element);
    }

    fakes::ThreadWorld& world_;
    CombineConfig config_;
    std::shared_ptr<fakes::ThreadMemory> memory_;
    std::shared_ptr<fakes::ThreadFabric> fabric_;
    std::shared_ptr<npu::Device> device_;
    int pe_;
    std::unique_ptr<DirectCombine> engine_;
    Routing routing_;
    RankRouting own_;
    bool random_payload_ = false;
    std::vector<std::byte> x_;
    std::vector<std::byte> out_;
    std::string error_;
};

class CombineBench {
public:
    CombineBench(int pes, const CombineConfig& config, int blocks = 20, bool window = true, std::size_t heap = 0)
        : world_(pes, heap > 0 ? heap : heap_for(pes, config)), config_(config), blocks_(blocks), window_(window) {}

    // body on a thread per PE. An engine still open at the end is closed after all PEs got there.
    void run(const std::function<void(CombinePe&)>& body) {
        world_.run([&](int pe) {
            CombinePe self(world_, config_, pe, blocks_, window_);
            body(self);
            world_.meet();
        });
    }

private:
    static std::size_t heap_for(int pes, const CombineConfig& config) {
        const SlotLayout layout(pes, config.slots(), config.row_bytes());
        const Rows ring_rows{static_cast<std::uint64_t>(config.ring_rows)};
        const RingLayout rings(pes, row_ring_shape(config.row_bytes(), config.slots(), ring_rows));
        return 2 * (layout.total().value() + rings.total().value() + 32 * config.slots().value() + 65536);
    }

    fakes::ThreadWorld world_;
    CombineConfig config_;
    int blocks_;
    bool window_;
};

inline CombineConfig config_for(const CaseShape& shape, std::int64_t hidden) {
    CombineConfig config;
    config.experts = shape.experts;
    config.top_k = shape.top_k;
    config.hidden = hidden;
    config.max_tokens = std::max(shape.tokens, 1);
    config.audit = true;
    config.timeout = std::chrono::seconds(60);
    return config;
}

// `calls` calls in a row with the payload of each; every one exact, audited, canaries whole.
inline void expect_exact(const CaseShape& shape, const CombineConfig& config, int calls = 3, int blocks = 20) {
    const Routing routing = random_routing(shape);
    CombineBench bench(shape.ranks, config, blocks);
    bench.run([&](CombinePe& pe) {
        ASSERT_TRUE(pe.open()) << pe.error();
        ASSERT_TRUE(pe.route(routing)) << pe.error();
        for (int call = 0; call < calls; ++call) {
            pe.fill(static_cast<std::uint64_t>(call));
            ASSERT_TRUE(pe.combine()) << pe.error();
            ASSERT_EQ(pe.first_difference(static_cast<std::uint64_t>(call)), "");
        }
        ASSERT_TRUE(pe.engine().check_memory().ok());
    });
}

}  // namespace npushmem::moe
