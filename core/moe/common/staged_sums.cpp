// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/staged_sums.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace npushmem::moe {
namespace {

using npu::Core;
using npu::Pipe;

// Two buffers for pieces of rows and two for sums, so that the copies overlap the arithmetic. Flag ids are those of the
// buffers.
template <class Input, class Output>
class Sums {
public:
    Sums(Core& core, std::size_t columns)
        : core_(core),
          columns_(columns),
          piece_(piece_of(core, columns)),
          rows_{core.ub_alloc<Input>(piece_), core.ub_alloc<Input>(piece_)},
          outs_{core.ub_alloc<Output>(piece_), core.ub_alloc<Output>(piece_)},
          sums_(core.ub_alloc<float>(piece_)) {}

    void compute(std::byte* out, const WeightedRows& rows) {
        for (std::size_t first = 0; first < columns_; first += piece_) {
            const std::size_t count = std::min(piece_, columns_ - first);
            add_up(rows, first, count);
            write(reinterpret_cast<Output*>(out) + first, count);
        }
    }

    // Takes the flags that are still set, and waits for the copies out.
    void finish() {
        for (const int buffer : {0, 1}) {
            if (row_used_[buffer]) core_.wait_flag<Pipe::vector, Pipe::copy_in>(buffer);
            if (out_used_[buffer]) core_.wait_flag<Pipe::copy_out, Pipe::vector>(buffer);
        }
        core_.set_flag<Pipe::copy_out, Pipe::scalar>(0);
        core_.wait_flag<Pipe::copy_out, Pipe::scalar>(0);
    }

private:
    static std::size_t piece_of(const Core& core, std::size_t columns) {
        constexpr std::size_t longest = 4096;
        constexpr std::size_t unit = 64;
        const std::size_t room = core.ub_free() / (2 * sizeof(Input) + 2 * sizeof(Output) + sizeof(float));
        return std::clamp(std::min(columns, room) / unit * unit, unit, longest);
    }

    void add_up(const WeightedRows& rows, std::size_t first, std::size_t count) {
        core_.pipe_barrier<Pipe::vector>();
        core_.fill(sums_, 0.0F, count);
        for (std::size_t i = 0; i < rows.count; ++i) {
            const auto& row = rows_[row_];
            if (std::exchange(row_used_[row_], true)) core_.wait_flag<Pipe::vector, Pipe::copy_in>(row_);
            read(row, static_cast<const Input*>(rows.rows[i]) + first, count);
            core_.set_flag<Pipe::copy_in, Pipe::vector>(row_);
            core_.wait_flag<Pipe::copy_in, Pipe::vector>(row_);
            core_.pipe_barrier<Pipe::vector>();
            core_.axpy(sums_, row, rows.weights[i], count);
            core_.set_flag<Pipe::vector, Pipe::copy_in>(row_);
            row_ ^= 1;
        }
    }

    void read(const npu::ub_view<Input>& row, const Input* from, std::size_t count) {
        core_.data_copy_pad(row, npu::gm(from, count), npu::PadShape{1, count * sizeof(Input), 0, 0});
    }

    void write(Output* to, std::size_t count) {
        const auto& out = outs_[out_];
        if (std::exchange(out_used_[out_], true)) core_.wait_flag<Pipe::copy_out, Pipe::vector>(out_);
        core_.pipe_barrier<Pipe::vector>();
        core_.cast(out, sums_, count);
        core_.set_flag<Pipe::vector, Pipe::copy_out>(out_);
        core_.wait_flag<Pipe::vector, Pipe::copy_out>(out_);
        core_.data_copy_pad(npu::gm(to, count), out, npu::PadShape{1, count * sizeof(Output), 0, 0});
        core_.set_flag<Pipe::copy_out, Pipe::vector>(out_);
        out_ ^= 1;
    }

    Core& core_;
    std::size_t columns_;
    std::size_t piece_;
    std::array<npu::ub_view<Input>, 2> rows_;
    std::array<npu::ub_view<Output>, 2> outs_;
    npu::ub_view<float> sums_;
    std::array<bool, 2> row_used_{};
    std::array<bool, 2> out_used_{};
    int row_ = 0;
    int out_ = 0;
};

template <class Input, class Output>
void run(Core& core, std::size_t columns, std::uint64_t begin, std::uint64_t end, const GatherRows& gather,
         const SumTarget& target) {
    const std::size_t mark = core.ub_used();
    {
        Sums<Input, Output> sums(core, columns);
        WeightedRows rows;
        for (std::uint64_t i = begin; i < end; ++i) {
            rows.clear();
            gather(i, rows);
            sums.compute(target(i), rows);
        }
        sums.finish();
    }
    core.ub_release(mark);
}

template <class Input>
void run_to(ElementType output, Core& core, std::size_t columns, std::uint64_t begin, std::uint64_t end,
            const GatherRows& gather, const SumTarget& target) {
    switch (output) {
        case ElementType::bfloat16: return run<Input, npu::bfloat16>(core, columns, begin, end, gather, target);
        case ElementType::half: return run<Input, npu::half>(core, columns, begin, end, gather, target);
        case ElementType::float32: return run<Input, float>(core, columns, begin, end, gather, target);
    }
}

}  // namespace

void staged_sums(Core& core, const Reduction& reduction, std::uint64_t begin, std::uint64_t end,
                 const GatherRows& gather, const SumTarget& target) {
    if (begin == end) return;
    const std::size_t columns = reduction.shape.columns;
    switch (reduction.input) {
        case ElementType::bfloat16:
            return run_to<npu::bfloat16>(reduction.output, core, columns, begin, end, gather, target);
        case ElementType::half: return run_to<npu::half>(reduction.output, core, columns, begin, end, gather, target);
        case ElementType::float32: return run_to<float>(reduction.output, core, columns, begin, end, gather, target);
    }
}

}  // namespace npushmem::moe
