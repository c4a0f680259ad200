// Shows a Transport object to a decorator's class as its host would: by a table.
#pragma once

#include "npushmem/plugin/transport_export.hpp"

namespace npushmem::fakes {

// The object stays the test's.
class InnerTable {
public:
    explicit InnerTable(Transport& inner) : inner_(inner) {
        detail::TransportTrampolines::fill(table_);
        table_.name = "inner";
        table_.summary = "";
        table_.capabilities = ~std::uint64_t{0};
        table_.close = [](void*) {};
    }
    [[nodiscard]] npushmem_transport_params params(int pe = 0) const {
        npushmem_transport_params out{};
        out.struct_size = sizeof out;
        out.pe = pe;
        out.npes = pe + 1;
        out.inner = &table_;
        out.inner_self = &inner_;
        return out;
    }

private:
    Transport& inner_;
    npushmem_transport_v1 table_{};
};

}  // namespace npushmem::fakes
