// SPDX-License-Identifier: BSD-3-Clause
// Core's copies between GM and UB. Included by core.hpp only.
#pragma once

#include "npushmem/npu/core.hpp"

namespace npushmem::npu {

namespace detail {

inline std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

template <class T>
void check_plain_copy(const char* operation, const void* ub, const void* gm, std::size_t count, std::size_t ub_room,
                      std::size_t gm_room, const Where& where) {
    const std::size_t room = ub_room < gm_room ? ub_room : gm_room;
    const bool misaligned = ((number_of(ub) | (count * sizeof(T))) % ub_alignment | number_of(gm) % alignof(T)) != 0;
    // count - 1: zero wraps to a value larger than any room.
    if (misaligned || count - 1 >= room) [[unlikely]] {
        fail_plain_copy(operation, ub, gm, sizeof(T), count, ub_room, gm_room, where);
    }
}

// Bytes that the blocks and gaps of one side span.
inline std::size_t strided_span(const StridedShape& shape, std::size_t gap_units) {
    return ((shape.blocks - 1) * (shape.block_units + gap_units) + shape.block_units) * ub_alignment;
}

// `into_ub`: the target is UB, otherwise the source is.
inline void check_strided(const char* operation, const StridedShape& shape, std::size_t source_room,
                          std::size_t target_room, bool into_ub, const Where& where) {
    const Hazard source_hazard = into_ub ? Hazard::bad_address : Hazard::ub_overflow;
    const Hazard target_hazard = into_ub ? Hazard::ub_overflow : Hazard::bad_address;
    if (shape.blocks - 1 >= max_copy_blocks)
        fail_shape(Hazard::copy_shape, operation, "blocks must be 1 to 4095", shape.blocks, where);
    if (shape.block_units - 1 >= max_strided_block) {
        fail_shape(Hazard::copy_shape, operation, "block_units must be 1 to 65535", shape.block_units, where);
    }
    const std::size_t max_gap = SIZE_MAX / (2 * max_copy_blocks * ub_alignment);
    if (shape.source_gap_units > max_gap || strided_span(shape, shape.source_gap_units) > source_room) {
        fail_shape(source_hazard, operation, "the blocks and gaps must lie inside the source; its size in bytes",
                   source_room, where);
    }
    if (shape.target_gap_units > max_gap || strided_span(shape, shape.target_gap_units) > target_room) {
        fail_shape(target_hazard, operation, "the blocks and gaps must lie inside the target; its size in bytes",
                   target_room, where);
    }
}

inline void check_pad(const char* operation, const PadShape& shape, std::size_t element, std::size_t ub_room,
                      std::size_t gm_room, const Where& where) {
    if (shape.blocks - 1 >= max_copy_blocks)
        fail_shape(Hazard::copy_shape, operation, "blocks must be 1 to 4095", shape.blocks, where);
    if (shape.block_bytes - 1 >= max_pad_block || shape.block_bytes % element != 0) {
        fail_shape(Hazard::copy_shape, operation, "block_bytes must be 1 to 2097151 and whole elements",
                   shape.block_bytes, where);
    }
    const std::size_t max_gap = SIZE_MAX / (2 * max_copy_blocks * ub_alignment);
    if (shape.ub_gap_units > max_gap || shape.ub_span() > ub_room) {
        fail_shape(Hazard::ub_overflow, operation,
                   "the padded blocks and gaps must lie inside the UB view; its size in bytes", ub_room, where);
    }
    if (shape.gm_gap_bytes > max_gap || shape.gm_span() > gm_room) {
        fail_shape(Hazard::bad_address, operation, "the blocks and gaps must lie inside the GM view; its size in bytes",
                   gm_room, where);
    }
}

inline void check_aligned(const char* operation, const void* ub, const void* gm, std::size_t gm_alignment,
                          const Where& where) {
    if (number_of(ub) % ub_alignment != 0) {
        fail_shape(Hazard::alignment, operation, "the UB address must be 32-byte aligned; bytes beyond the boundary",
                   number_of(ub) % ub_alignment, where);
    }
    if (number_of(gm) % gm_alignment != 0) {
        fail_shape(Hazard::alignment, operation,
                   "the GM address must be aligned to the element; bytes beyond the boundary",
                   number_of(gm) % gm_alignment, where);
    }
}

inline void copy_blocks(void* target, const void* source, std::size_t bytes, std::size_t blocks,
                        std::size_t target_step, std::size_t source_step, Accumulate accumulate) {
    auto* to = static_cast<std::byte*>(target);
    const auto* from = static_cast<const std::byte*>(source);
    for (std::size_t i = 0; i < blocks; ++i, to += target_step, from += source_step) {
        if (accumulate != nullptr) [[unlikely]]
            accumulate(to, from, bytes);
        else
            std::memcpy(to, from, bytes);
    }
}

// Repeats the element until the block's last 32 bytes are full.
template <class T>
void pad_block(std::byte* block, std::size_t bytes, std::size_t padded, T padding) {
    for (; bytes + sizeof(T) <= padded; bytes += sizeof(T)) std::memcpy(block + bytes, &padding, sizeof(T));
}

template <class T>
void accumulate_elements(void* target, const void* source, std::size_t bytes) {
    vector_ops::atomic_accumulate(static_cast<T*>(target), static_cast<const T*>(source), bytes / sizeof(T));
}

}  // namespace detail

template <class Describe, class Run>
inline void Core::issue(Describe&& describe, Run&& run) {
    if (state_.hooks == nullptr) [[likely]]
        run();
    else
        state_.hooks->issue(describe(), std::forward<Run>(run));
}

template <class T>
inline void Core::data_copy(ub_view<T> target, gm_view<const std::type_identity_t<T>> source, std::size_t count,
                            const Where& where) {
    detail::check_plain_copy<T>("data_copy GM to UB", target.data(), source.data(), count, target.size(), source.size(),
                                where);
    const std::size_t bytes = count * sizeof(T);
    issue(
        [&] {
            return Command{
                "data_copy", Pipe::copy_in, {target.data(), bytes}, false, {{source.data(), bytes, 1, 0, true}, {}},
                where};
        },
        [=] { std::memcpy(target.data(), source.data(), bytes); });
}

template <class T>
inline void Core::data_copy(gm_view<T> target, ub_view<const std::type_identity_t<T>> source, std::size_t count,
                            const Where& where) {
    detail::check_plain_copy<T>("data_copy UB to GM", source.data(), target.data(), count, source.size(), target.size(),
                                where);
    const std::size_t bytes = count * sizeof(T);
    issue(
        [&] {
            return Command{"data_copy",
                           Pipe::copy_out,
                           {target.data(), bytes, 1, 0, true},
                           accumulate_ != nullptr,
                           {{source.data(), bytes}, {}},
                           where};
        },
        [=, accumulate = accumulate_] {
            if (accumulate != nullptr) [[unlikely]]
                accumulate(target.data(), source.data(), bytes);
            else
                std::memcpy(target.data(), source.data(), bytes);
        });
}

template <class T>
inline void Core::data_copy(ub_view<T> target, gm_view<const std::type_identity_t<T>> source, const StridedShape& shape,
                            const Where& where) {
    detail::check_aligned("strided data_copy GM to UB", target.data(), source.data(), alignof(T), where);
    detail::check_strided("strided data_copy GM to UB", shape, source.size_bytes(), target.size_bytes(), true, where);
    const std::size_t bytes = shape.block_units * ub_alignment;
    const std::size_t target_step = bytes + shape.target_gap_units * ub_alignment;
    const std::size_t source_step = bytes + shape.source_gap_units * ub_alignment;
    issue(
        [&] {
            return Command{"strided data_copy",
                           Pipe::copy_in,
                           {target.data(), bytes, shape.blocks, target_step},
                           false,
                           {{source.data(), bytes, shape.blocks, source_step, true}, {}},
                           where};
        },
        [=, blocks = shape.blocks] {
            detail::copy_blocks(target.data(), source.data(), bytes, blocks, target_step, source_step, nullptr);
        });
}

template <class T>
inline void Core::data_copy(gm_view<T> target, ub_view<const std::type_identity_t<T>> source, const StridedShape& shape,
                            const Where& where) {
    detail::check_aligned("strided data_copy UB to GM", source.data(), target.data(), alignof(T), where);
    detail::check_strided("strided data_copy UB to GM", shape, source.size_bytes(), target.size_bytes(), false, where);
    const std::size_t bytes = shape.block_units * ub_alignment;
    const std::size_t target_step = bytes + shape.target_gap_units * ub_alignment;
    const std::size_t source_step = bytes + shape.source_gap_units * ub_alignment;
    issue(
        [&] {
            return Command{"strided data_copy",
                           Pipe::copy_out,
                           {target.data(), bytes, shape.blocks, target_step, true},
                           accumulate_ != nullptr,
                           {{source.data(), bytes, shape.blocks, source_step}, {}},
                           where};
        },
        [=, blocks = shape.blocks, accumulate = accumulate_] {
            detail::copy_blocks(target.data(), source.data(), bytes, blocks, target_step, source_step, accumulate);
        });
}

template <class T>
inline void Core::data_copy_pad(ub_view<T> target, gm_view<const std::type_identity_t<T>> source, const PadShape& shape,
                                std::type_identity_t<T> padding, const Where& where) {
    detail::check_aligned("data_copy_pad GM to UB", target.data(), source.data(), alignof(T), where);
    detail::check_pad("data_copy_pad GM to UB", shape, sizeof(T), target.size_bytes(), source.size_bytes(), where);
    issue(
        [&] {
            return Command{"data_copy_pad",
                           Pipe::copy_in,
                           {target.data(), shape.ub_block_bytes(), shape.blocks, shape.ub_step(), false,
                            shape.ub_block_bytes() - shape.block_bytes},
                           false,
                           {{source.data(), shape.block_bytes, shape.blocks, shape.gm_step(), true}, {}},
                           where};
        },
        [=] {
            auto* block = reinterpret_cast<std::byte*>(target.data());
            detail::copy_blocks(block, source.data(), shape.block_bytes, shape.blocks, shape.ub_step(), shape.gm_step(),
                                nullptr);
            for (std::size_t i = 0; i < shape.blocks; ++i, block += shape.ub_step()) {
                detail::pad_block(block, shape.block_bytes, shape.ub_block_bytes(), padding);
            }
        });
}

template <class T>
inline void Core::data_copy_pad(gm_view<T> target, ub_view<const std::type_identity_t<T>> source, const PadShape& shape,
                                const Where& where) {
    detail::check_aligned("data_copy_pad UB to GM", source.data(), target.data(), alignof(T), where);
    detail::check_pad("data_copy_pad UB to GM", shape, sizeof(T), source.size_bytes(), target.size_bytes(), where);
    issue(
        [&] {
            return Command{"data_copy_pad",
                           Pipe::copy_out,
                           {target.data(), shape.block_bytes, shape.blocks, shape.gm_step(), true},
                           accumulate_ != nullptr,
                           {{source.data(), shape.block_bytes, shape.blocks, shape.ub_step()}, {}},
                           where};
        },
        [=, accumulate = accumulate_] {
            detail::copy_blocks(target.data(), source.data(), shape.block_bytes, shape.blocks, shape.gm_step(),
                                shape.ub_step(), accumulate);
        });
}

template <Number T>
inline void Core::set_atomic_add(const Where& where) {
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->atomic_mode(true, where);
    accumulate_ = &detail::accumulate_elements<T>;
}

inline void Core::clear_atomic(const Where& where) {
    if (state_.hooks != nullptr) [[unlikely]]
        state_.hooks->atomic_mode(false, where);
    accumulate_ = nullptr;
}

}  // namespace npushmem::npu
