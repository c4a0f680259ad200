// Objects of libfabric that close themselves.
#pragma once

#include <rdma/fabric.h>

#include <memory>

namespace npushmem::libfabric {

struct CloseFid {
    template <class Object>
    void operator()(Object* object) const {
        fi_close(&object->fid);
    }
};
template <class Object>
using Owned = std::unique_ptr<Object, CloseFid>;

}  // namespace npushmem::libfabric
