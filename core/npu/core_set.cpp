#include "core/npu/core_set.hpp"

#include <fmt/format.h>

#include <utility>

namespace npushmem::npu::detail {
namespace {

constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

Result<std::unique_ptr<CoreSet>> CoreSet::create(const DeviceConfig& config) {
    const auto cores = static_cast<std::size_t>(config.cores());
    auto ub = AnonymousMapping::create(cores * config.ub_bytes, "the unified buffers");
    if (!ub.ok()) return ub.status();
    auto stacks = AnonymousMapping::create(cores * (page + whole_pages(config.stack_bytes)), "the stacks of the cores");
    if (!stacks.ok()) return stacks.status();
    return std::unique_ptr<CoreSet>(new CoreSet(config, std::move(ub).value(), std::move(stacks).value()));
}

CoreSet::CoreSet(const DeviceConfig& config, AnonymousMapping ub, AnonymousMapping stacks)
    : ub_bytes_(config.ub_bytes),
      ub_reserved_(config.ub_reserved),
      stack_bytes_(whole_pages(config.stack_bytes)),
      ub_(std::move(ub)),
      stacks_(std::move(stacks)),
      cores_(static_cast<std::size_t>(config.cores())) {}

Status CoreSet::prepare(int count) {
    for (; prepared_ < count; ++prepared_) {
        const std::size_t guard = static_cast<std::size_t>(prepared_) * (page + stack_bytes_);
        if (Status status = stacks_.protect(guard, page); !status.ok()) return status;
    }
    return {};
}

UbRegion CoreSet::ub(int index) const {
    return {ub_.data() + static_cast<std::size_t>(index) * ub_bytes_, ub_bytes_ - ub_reserved_, ub_reserved_};
}

CoreSet::Stack CoreSet::stack(int index) const {
    return {stacks_.data() + static_cast<std::size_t>(index) * (page + stack_bytes_) + page, stack_bytes_};
}

}  // namespace npushmem::npu::detail
