#include "core/runtime/npu_remote.hpp"

#include <fmt/format.h>

#include "core/runtime/runtime.hpp"

namespace npushmem {
namespace {

using Completion = RemoteAccess::Completion;

RemoteAccess::Waiting by(npu::RemoteWait& wait) {
    return [&wait](const std::function<bool()>& ready, const WaitFor& what) {
        return wait.until(ready, what.what, what.needs.count == 1 ? what.needs.first : -1);
    };
}

// By RemoteAtomic::Kind.
constexpr std::uint8_t operations[] = {NPUSHMEM_ATOMIC_SET,       NPUSHMEM_ATOMIC_ADD,  NPUSHMEM_ATOMIC_FETCH,
                                       NPUSHMEM_ATOMIC_FETCH_ADD, NPUSHMEM_ATOMIC_SWAP, NPUSHMEM_ATOMIC_COMPARE_SWAP};

bool fetches(npu::RemoteAtomic::Kind kind) { return kind >= npu::RemoteAtomic::Kind::fetch; }

}  // namespace

NpuRemote::NpuRemote(Runtime& runtime) : runtime_(runtime), access_(runtime.remote_peers()) {}

std::uint64_t NpuRemote::offset_of(const void* address) const {
    static_assert(no_offset == Runtime::no_offset);
    return runtime_.offset_of(address);
}

Status NpuRemote::check(const void* address, std::size_t bytes) const {
    const std::uint64_t offset = offset_of(address);
    if (offset == no_offset) return {Code::not_symmetric, fmt::format("{} is not in symmetric memory", address)};
    const std::uint64_t room = runtime_.room_from(offset);
    if (bytes <= room) return {};
    return {Code::range, fmt::format("{} bytes at {} reach beyond symmetric memory, which ends {} bytes after it",
                                     bytes, address, room)};
}

Status NpuRemote::put(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) {
    if (Status inside = check(target, bytes); !inside.ok()) return inside;
    const auto waiting = by(wait);
    return access_.put(pe, offset_of(target), source, bytes, Completion::local, &waiting);
}

Status NpuRemote::get(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) {
    if (Status inside = check(source, bytes); !inside.ok()) return inside;
    const auto waiting = by(wait);
    return access_.get(pe, offset_of(source), target, bytes, Completion::local, &waiting);
}

Status NpuRemote::put_signal(void* target, const void* source, std::size_t bytes, std::uint64_t* signal,
                             std::uint64_t value, int pe, npu::RemoteWait& wait) {
    Status inside = check(target, bytes);
    if (inside.ok()) inside = check(signal, sizeof *signal);
    const auto waiting = by(wait);
    // The signal announces what was put before, too.
    if (inside.ok()) inside = access_.fence(pe, &waiting);
    if (!inside.ok()) return inside;
    return access_.put_signal(pe, offset_of(target), source, bytes, offset_of(signal), value, NPUSHMEM_SIGNAL_SET,
                              Completion::local, &waiting);
}

Status NpuRemote::atomic(const npu::RemoteAtomic& operation, std::uint64_t* before, int pe, npu::RemoteWait& wait) {
    if (Status inside = check(operation.object, operation.width); !inside.ok()) return inside;
    const auto waiting = by(wait);
    if (operation.kind != npu::RemoteAtomic::Kind::fetch)
        if (Status fenced = access_.fence(pe, &waiting); !fenced.ok()) return fenced;
    npushmem_atomic op{};
    op.pe = pe;
    op.operation = operations[static_cast<std::size_t>(operation.kind)];
    op.width = static_cast<std::uint8_t>(operation.width);
    op.offset = offset_of(operation.object);
    op.operand = operation.operand;
    op.compare = operation.expected;
    if (!fetches(operation.kind)) return access_.atomic(op, Completion::later, &waiting);
    *before = 0;  // of 32 bits only the lower half is written
    op.result = before;
    return access_.atomic(op, Completion::local, &waiting);
}

Status NpuRemote::fence(npu::RemoteWait& wait) {
    const auto waiting = by(wait);
    return access_.fence(&waiting);
}

Status NpuRemote::quiet(npu::RemoteWait& wait) {
    const auto waiting = by(wait);
    return access_.quiet(&waiting);
}

}  // namespace npushmem
