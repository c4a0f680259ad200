// The emulated NPU's direct way to PEs that are not mapped: each core has queues of its own, and its thread calls the
// transport.
//
// A queue orders only what is its own. What other cores have put to a PE and may not be there yet is therefore
// completed before a signal or an atomic operation to that PE, and all of it by quiet and before whatever follows a
// fence.
#pragma once

#include <memory>

#include "core/runtime/npu_remote.hpp"

namespace npushmem {

class NpuDirect final : public NpuRemote {
public:
    // `peers` outlives this.
    NpuDirect(SliceAddressing places, RemotePeers& peers, int pes);
    ~NpuDirect() override;

    Status put(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) override;
    Status get(void* target, const void* source, std::size_t bytes, int pe, npu::RemoteWait& wait) override;
    Status put_signal(void* target, const void* source, std::size_t bytes, std::uint64_t* signal, std::uint64_t value,
                      int pe, npu::RemoteWait& wait) override;
    Status atomic(const npu::RemoteAtomic& operation, std::uint64_t* before, int pe, npu::RemoteWait& wait) override;
    Status fence(npu::RemoteWait& wait) override;
    Status quiet(npu::RemoteWait& wait) override;

private:
    using WaitFunction = RemoteAccess::WaitFunction;
    using Completion = RemoteAccess::Completion;
    class Queues;
    class Registry;
    class Core;

    Queues& queues_of(npu::RemoteWait& wait);
    // Everything that this core and others put to the PE comes before what this core begins next.
    Status order(Queues& mine, int pe, const WaitFunction& wait_function);
    // While others complete what this core has put to the PE, it puts nothing more.
    static Status wait_until_may_post(const Queues& mine, int pe, npu::RemoteWait& wait);
    // What cores other than `mine` have put to these PEs is complete.
    Status complete_others(const Queues& mine, int first_pe, int pes, const WaitFunction& wait_function);

    const int pes_;
    std::shared_ptr<Registry> registry_;  // cores that outlive this find it gone
};

}  // namespace npushmem
