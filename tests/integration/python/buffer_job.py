# SPDX-License-Identifier: BSD-3-Clause
"""A job that compares npushmem.Buffer with a reference that computes all PEs' tokens itself, and calls it wrongly.

    npushmem-run -n 4 python3 buffer_job.py      with a launcher
    python3 buffer_job.py --unique-id 2          starts the PEs itself
"""
import subprocess
import sys

import numpy as np

import npushmem

HIDDEN = 33


def tokens_of(pe, seed):
    return 0 if (pe + seed) % 4 == 3 else 5 + 3 * pe


def inputs_of(pe, seed, dtype, experts, top_k):
    """The tokens of any PE: rows, choices with dropped and repeated ones, weights."""
    generator = np.random.default_rng([seed, pe])
    tokens = tokens_of(pe, seed)
    x = generator.integers(-8, 9, (tokens, HIDDEN)).astype(np.float32)
    x = (x.view(np.uint32) >> 16).astype(np.uint16) if dtype == np.uint16 else x.astype(dtype)  # exact in bfloat16
    choices = generator.integers(-1, experts, (tokens, top_k))
    weights = generator.integers(1, 9, (tokens, top_k)).astype(np.float32) / 8
    return x, choices, weights


def to_float(x):
    return (x.astype(np.uint32) << 16).view(np.float32) if x.dtype == np.uint16 else x.astype(np.float32)


def owner_of(expert, experts, pes):
    """The PE of an expert, by counting."""
    sizes = [experts // pes + (pe < experts % pes) for pe in range(pes)]
    return next(pe for pe in range(pes) if expert < sum(sizes[:pe + 1]))


def reference_rows(me, pes, seed, dtype, experts, top_k):
    """What PE `me` receives: (rows, choices by local number, weights), token by token."""
    first = next((e for e in range(experts) if owner_of(e, experts, pes) == me), 0)
    rows, ids, weights = [], [], []
    for pe in range(pes):
        for row, choices, token_weights in zip(*inputs_of(pe, seed, dtype, experts, top_k)):
            own = [e >= 0 and owner_of(e, experts, pes) == me for e in choices]
            if any(own):
                rows.append(row)
                ids.append([e - first if here else -1 for e, here in zip(choices, own)])
                weights.append([w if here else 0 for w, here in zip(token_weights, own)])
    return (np.array(rows, dtype).reshape(-1, HIDDEN), np.array(ids, np.int64).reshape(-1, top_k),
            np.array(weights, np.float32).reshape(-1, top_k))


def compare(buffer, seed, dtype, experts, top_k):
    me, pes = npushmem.my_pe(), npushmem.n_pes()
    x, choices, weights = inputs_of(me, seed, dtype, experts, top_k)
    per_rank, _, per_expert, in_rank, _ = buffer.get_dispatch_layout(choices, experts)
    owners = [{owner_of(e, experts, pes) for e in token if e >= 0} for token in choices]
    assert [sorted(owner) for owner in owners] == [list(np.flatnonzero(token)) for token in in_rank]
    assert list(per_rank) == [sum(pe in owner for owner in owners) for pe in range(pes)]
    assert list(per_expert) == [int((choices == e).sum()) for e in range(experts)]

    rows, ids, row_weights, counts, handle, event = buffer.dispatch(
        x, num_tokens_per_rank=per_rank, is_token_in_rank=in_rank, num_tokens_per_expert=per_expert, topk_idx=choices,
        topk_weights=weights, expert_alignment=4)
    wanted_rows, wanted_ids, wanted_weights = reference_rows(me, pes, seed, dtype, experts, top_k)
    assert event is None and rows.dtype == np.dtype(dtype)
    assert np.array_equal(rows, wanted_rows) and np.array_equal(ids, wanted_ids)
    assert np.array_equal(row_weights, wanted_weights)
    local = sum(owner_of(e, experts, pes) == me for e in range(experts))
    assert counts == [-(-int((wanted_ids == e).sum()) // 4) * 4 for e in range(local)], counts

    combined, combined_weights, _ = buffer.combine(rows, handle, topk_weights=row_weights)
    assert combined.dtype == np.dtype(dtype)
    assert np.array_equal(to_float(combined), to_float(x) * in_rank.sum(axis=1, keepdims=True))
    assert np.array_equal(combined_weights, np.where(choices >= 0, weights, 0))
    return handle, rows, x, in_rank


def refuse(error, text, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except error as problem:
        assert text in str(problem), (text, str(problem))
        return
    raise AssertionError(f"accepted, although: {text}")


def check_refusals(buffer, other):
    """No PE calls the library here, so that no PE waits."""
    x, choices, weights = np.zeros((2, HIDDEN), np.float32), np.zeros((2, 3), np.int64), np.ones((2, 3), np.float32)

    def dispatch(x=x, choices=choices, weights=weights, **named):
        return buffer.dispatch(x, topk_idx=choices, topk_weights=weights, **{"num_experts": 4, **named})

    refuse(TypeError, "expected a numpy array", dispatch, [[0.0]])
    refuse(ValueError, "x has the shape (2,): expected (any, any)", dispatch, x[:, 0].copy())
    refuse(TypeError, "rows of float64", buffer.dispatch, x.astype(np.float64), topk_idx=choices, num_experts=4)
    refuse(ValueError, "numpy.ascontiguousarray(x)", dispatch, np.asfortranarray(x))
    refuse(ValueError, "numpy.ascontiguousarray(topk_idx)", dispatch, choices=np.zeros((2, 6), np.int64)[:, ::2])
    refuse(ValueError, "topk_idx has the shape (1, 3): expected (2, any)", dispatch, choices=choices[:1])
    refuse(ValueError, "topk_idx has no choices", dispatch, choices=choices[:, :0].copy(), weights=None)
    refuse(TypeError, "expected int64 or int32", dispatch, choices=choices.astype(np.int16))
    refuse(TypeError, "topk_weights has the type float64: expected float32", dispatch, weights=weights.astype(np.float64))
    refuse(ValueError, "token 0, choice 0: is 4, must be from 0 to 3", dispatch, choices=choices + 4)
    refuse(ValueError, "is -2, must be from 0", dispatch, choices=choices - 2)
    refuse(ValueError, "num_experts is None", dispatch, num_experts=None)
    refuse(ValueError, "expert_alignment is 0", dispatch, expert_alignment=0)
    refuse(TypeError, "dispatch needs topk_idx", buffer.dispatch, x)
    many = buffer.max_tokens + 1
    refuse(ValueError, f"x has {many} tokens", buffer.dispatch, np.zeros((many, HIDDEN), np.float32),
           topk_idx=np.zeros((many, 1), np.int64), num_experts=4)
    handle, rows = other
    refuse(ValueError, "takes either a handle or", dispatch, handle=handle)
    refuse(TypeError, "handle is a int", buffer.combine, rows, 3)
    refuse(ValueError, f"expected ({len(rows)}, any)", buffer.combine, np.zeros((len(rows) + 1, HIDDEN), rows.dtype), handle)
    refuse(ValueError, "topk_weights has the shape", buffer.combine, rows, handle, np.ones((len(rows), 99), np.float32))
    refuse(ValueError, "only None is supported", npushmem.Buffer, "group")
    refuse(ValueError, "max_tokens is 0", npushmem.Buffer, None, 100)


def run():
    me, pes = npushmem.my_pe(), npushmem.n_pes()
    buffer = npushmem.Buffer(max_tokens=32)
    for seed, (dtype, experts, top_k) in enumerate([(np.float32, 8, 3), (np.float16, 7, 2), (np.uint16, 1, 1), (np.float32, 64, 8)]):
        for repetition in range(2):
            compare(buffer, 10 * seed + repetition, dtype, experts, top_k)

    # Handles: the first one's routing is no longer the layer's when its rows return, and a dispatch may reuse it.
    first = compare(buffer, 100, np.float32, 8, 3)
    second = compare(buffer, 101, np.float32, 8, 3)
    for handle, rows, x, in_rank in (first, second, first):
        assert np.array_equal(buffer.combine(rows, handle)[0], x * in_rank.sum(axis=1, keepdims=True))
        again = buffer.dispatch(2 * x, handle=handle)
        assert np.array_equal(again[0], 2 * rows) and again[1:] == (None,) * 5
    check_refusals(buffer, first[:2])

    # An array in symmetric memory serves as input.
    symmetric = npushmem.empty((4, HIDDEN), np.float32)
    symmetric[:] = me + 1
    rows, _, weights, _, handle, _ = buffer.dispatch(symmetric, topk_idx=np.full((4, 1), pes - 1, np.int32), num_experts=pes)
    assert weights is None and len(rows) == (4 * pes if me == pes - 1 else 0)
    assert np.array_equal(buffer.combine(rows, handle)[0], symmetric)
    npushmem.barrier_all()
    npushmem.free(symmetric)

    other = npushmem.Buffer(None, 1 << 20, max_tokens=8)
    refuse(ValueError, "belongs to another Buffer", other.combine, rows, handle)
    other.destroy()
    refuse(RuntimeError, "the Buffer is destroyed", other.combine, rows, handle)
    # A failure of the library, on all PEs alike.
    large = npushmem.Buffer(max_tokens=1 << 40)
    refuse(npushmem.Error, "max_tokens is 1099511627776", large.dispatch, np.zeros((1, HIDDEN), np.float32), topk_idx=np.zeros((1, 1), np.int64), num_experts=1)
    npushmem.finalize()
    for call in (npushmem.my_pe, lambda: buffer.combine(rows, handle), lambda: npushmem.empty(1)):
        refuse(RuntimeError, "not initialised, or is finalized", call)
    print(f"python buffer: PE {me} of {pes} good", flush=True)


def start_with_unique_id(pes):
    """PE 0 is this process; it passes the id to the others on their standard input."""
    unique_id = npushmem.get_unique_id()
    others = []
    for rank in range(1, pes):
        other = subprocess.Popen([sys.executable, "-B", __file__, "--join", str(rank), str(pes)], stdin=subprocess.PIPE)
        other.stdin.write(unique_id)
        other.stdin.close()
        others.append(other)
    npushmem.init(unique_id, 0, pes)
    run()
    if any([other.wait() for other in others]):
        sys.exit(1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--unique-id"]:
        start_with_unique_id(int(sys.argv[2]))
    elif sys.argv[1:2] == ["--join"]:
        npushmem.init(sys.stdin.buffer.read(), int(sys.argv[2]), int(sys.argv[3]))
        run()
    else:
        npushmem.init()
        run()
