#include "core/moe/dispatch/dispatch_rows.hpp"

#include "core/moe/nontemporal_copy.hpp"
#include "core/moe/pack/staged_pack.hpp"

namespace npushmem::moe {
namespace {

using npu::Core;
using npu::Pipe;

// The routes: each puts rows, one behind the other, from `target` on.
class DirectPuts {
public:
    DirectPuts(Core& core, const DispatchWork& work, std::byte* target, std::int32_t holder)
        : core_(core), work_(work), target_(target), holder_(holder) {}

    void put(std::uint32_t slot) {
        const std::size_t row = work_.layout.row_bytes().value();
        core_.put(target_, work_.row_of(slot), row, holder_);
        target_ += row;
    }
    static void finish() {}

private:
    Core& core_;
    const DispatchWork& work_;
    std::byte* target_;
    std::int32_t holder_;
};

class StreamingPuts {
public:
    StreamingPuts(Core& core, const DispatchWork& work, std::byte* target, std::int32_t holder)
        : work_(work), remote_(core.remote(target, holder)) {}

    void put(std::uint32_t slot) {
        const std::size_t row = work_.layout.row_bytes().value();
        copy_nontemporal(remote_, work_.row_of(slot), row);
        remote_ += row;
    }
    // Streaming stores are ordered with nothing; the release of the signal alone would let it overtake them.
    static void finish() { nontemporal_fence(); }

private:
    const DispatchWork& work_;
    std::byte* remote_;
};

// Rows of one expert lie together at its holder, so short ones go out many in one copy.
class StagedPuts {
public:
    StagedPuts(Core& core, const DispatchWork& work, std::byte* target, std::int32_t holder)
        : work_(work), pack_(core, work.in, work.layout.row_bytes(), core.remote(target, holder)) {}

    void put(std::uint32_t slot) { pack_.put({Rows{slot / static_cast<std::uint32_t>(work_.top_k)}, Rows{1}}); }
    void finish() { pack_.finish(); }

private:
    const DispatchWork& work_;
    StagedPack pack_;
};

struct Fragments {
    std::uint64_t begin = 0;  // in `order`
    std::uint64_t end = 0;
    std::uint64_t start = 0;  // in x of the holder
};

template <class Route>
void put_expert(Core& core, const DispatchWork& work, std::int32_t holder, const Fragments& f) {
    const std::size_t mark = core.ub_used();
    {
        Route route(core, work, work.region + (work.layout.x() + work.layout.row_bytes() * f.start).value(), holder);
        for (std::uint64_t i = f.begin; i < f.end; ++i) route.put(core.load(work.tables.order + i));
        route.finish();
    }
    core.ub_release(mark);
}

void put_by_route(Core& core, const DispatchWork& work, std::int32_t holder, const Fragments& f) {
    switch (work.route) {
        case CopyRoute::staged: return put_expert<StagedPuts>(core, work, holder, f);
        case CopyRoute::direct: return put_expert<DirectPuts>(core, work, holder, f);
        case CopyRoute::streaming: return put_expert<StreamingPuts>(core, work, holder, f);
    }
}

void put_slots(Core& core, const DispatchWork& work, std::int32_t holder, const Fragments& f) {
    auto* slots = reinterpret_cast<std::uint32_t*>(work.region + work.layout.slots().value());
    core.put(slots + f.start, work.tables.order + f.begin, f.end - f.begin, holder);
}

}  // namespace

void put_rows(Core& core, const DispatchWork& work, std::int32_t holder) {
    for (std::int32_t e = work.placement.first_expert(holder); e < work.placement.first_expert(holder + 1); ++e) {
        const Fragments f{core.load(work.tables.begins + e), core.load(work.tables.begins + e + 1),
                          core.load(work.tables.starts + e)};
        if (f.begin == f.end) continue;
        put_by_route(core, work, holder, f);
        put_slots(core, work, holder, f);
    }
    core.set_flag<Pipe::copy_out, Pipe::scalar>(0);
    core.wait_flag<Pipe::copy_out, Pipe::scalar>(0);
}

}  // namespace npushmem::moe
