# SPDX-License-Identifier: BSD-3-Clause
# Selections (NPUSHMEM_TRANSPORTS) in which a transport that does not map memory serves a PE itself: a decorator around
# everything, and one around the PE itself only. Every suite that runs over several transports runs over these as well.
set(NPUSHMEM_UNMAPPED_SELF "nomap(p2p)" "trace(p2p)" "fault(p2p)" "nomap(self),p2p" "nomap(hccs)")

# npushmem_selection_name(<variable> <selection>): the selection as a part of a test's name, such as nomap_self_p2p.
function(npushmem_selection_name variable selection)
  string(REGEX REPLACE "[^a-z0-9]+" "_" name "${selection}")
  string(REGEX REPLACE "_$" "" name "${name}")
  set(${variable} "${name}" PARENT_SCOPE)
endfunction()
