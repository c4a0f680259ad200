// How the checker of a PE finds those of the other processes of its job, and what it must know of their host programs.
#pragma once

#include <cstdint>
#include <memory>

#include "core/npu/check/job_records.hpp"

namespace npushmem::npu::check {

class JobLink {
public:
    JobLink() = default;
    JobLink(const JobLink&) = delete;
    JobLink& operator=(const JobLink&) = delete;
    virtual ~JobLink() = default;

    [[nodiscard]] virtual JobRecords& records() const = 0;
    // The kernels of every PE are recorded.
    [[nodiscard]] virtual bool complete() const = 0;
    // The number of the last meeting of all PEs that this PE's host has entered.
    [[nodiscard]] virtual std::uint64_t meeting() const = 0;
    // Whether a PE's host has called a function, other than a meeting, that may order something, since it entered that
    // meeting or a later one.
    [[nodiscard]] virtual bool host_called(int pe, std::uint64_t meeting) const = 0;
};

}  // namespace npushmem::npu::check
