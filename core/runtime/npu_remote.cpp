#include "core/runtime/npu_remote.hpp"

#include <fmt/format.h>

namespace npushmem {
namespace {

// By RemoteAtomic::Kind.
constexpr std::uint8_t operations[] = {NPUSHMEM_ATOMIC_SET,       NPUSHMEM_ATOMIC_ADD,  NPUSHMEM_ATOMIC_FETCH,
                                       NPUSHMEM_ATOMIC_FETCH_ADD, NPUSHMEM_ATOMIC_SWAP, NPUSHMEM_ATOMIC_COMPARE_SWAP};

}  // namespace

RemoteAccess::WaitFunction wait_function_for(npu::RemoteWait& wait) {
    return [&wait](const std::function<bool()>& ready, const WaitFor& what) {
        return wait.until(ready, what.what, what.needs.count == 1 ? what.needs.first : -1);
    };
}

Status NpuRemote::check(const void* address, std::size_t bytes) const {
    const std::uint64_t offset = offset_of(address);
    if (offset == no_offset) return {Code::not_symmetric, fmt::format("{} is not in symmetric memory", address)};
    const std::uint64_t room = addressing_.bytes_to_end(offset);
    if (bytes <= room) return {};
    return {Code::range, fmt::format("{} bytes at {} reach beyond symmetric memory, which ends {} bytes after it",
                                     bytes, address, room)};
}

npushmem_atomic NpuRemote::as_transport_atomic(const npu::RemoteAtomic& operation, int pe) const {
    npushmem_atomic op{};
    op.pe = pe;
    op.operation = operations[static_cast<std::size_t>(operation.kind)];
    op.width = static_cast<std::uint8_t>(operation.width);
    op.offset = offset_of(operation.object);
    op.operand = operation.operand;
    op.compare = operation.expected;
    return op;
}

}  // namespace npushmem
