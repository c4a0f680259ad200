# SPDX-License-Identifier: BSD-3-Clause
# A layer of a mixture of experts in Python, on numpy arrays, with the names of DeepEP. The dispatch sends each token's row
# once to every PE that hosts one of its two experts; the experts compute and apply the router's weights; the combine returns
# the rows and adds them up.
#
# Here expert e multiplies a row by e + 1, and the weights are 0.75 and 0.25, so that every result is exact.
#
#     $ npushmem-run -n 4 python3 ../moe_layer.py
#     48 rows of 4 PEs went to 8 experts, 0 results are wrong
import numpy as np

import npushmem

EXPERTS, TOP_K, HIDDEN, TOKENS = 8, 2, 256, 8

npushmem.init()
me, pes = npushmem.my_pe(), npushmem.n_pes()

# What the router of a model would give: token t of PE `me` goes to two neighbouring experts.
token = np.arange(TOKENS)
x = np.repeat((me * TOKENS + token)[:, None], HIDDEN, axis=1).astype(np.float32)
topk_idx = (me + token[:, None] + np.arange(TOP_K)) % EXPERTS
topk_weights = np.tile(np.float32([0.75, 0.25]), (TOKENS, 1))

buffer = npushmem.Buffer(max_tokens=TOKENS)
rows, idx, weights, counts, handle, _ = buffer.dispatch(x, topk_idx=topk_idx, topk_weights=topk_weights, num_experts=EXPERTS)
first_expert = me * EXPERTS // pes
rows *= (weights * (first_expert + idx + 1)).sum(axis=1, keepdims=True)  # the weight of another PE's choice is 0
out, _, _ = buffer.combine(rows, handle)

wrong = int((out != x * (topk_weights * (topk_idx + 1)).sum(axis=1, keepdims=True)).sum())

# PE 0 adds up the counts of all PEs: each sends one row to it, whose "expert" it is.
sums = buffer.dispatch(np.float32([[len(rows), wrong]]), topk_idx=np.array([[0]]), num_experts=pes)[0].sum(axis=0)
if me == 0:
    print(f"{int(sums[0])} rows of {pes} PEs went to {EXPERTS} experts, {int(sums[1])} results are wrong", flush=True)
npushmem.finalize()
raise SystemExit(wrong != 0)
