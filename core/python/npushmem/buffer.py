# SPDX-License-Identifier: BSD-3-Clause
"""Dispatch and combine of mixture-of-experts layers on numpy arrays, in the shape of DeepEP's Buffer.

A layer of npushmem/moe.h whose "experts" are the PEs moves the rows: a row travels once to each PE that hosts any of its
token's experts. A second such layer moves the numbers and weights of the choices as rows of float.
"""
import ctypes

import numpy as np

from . import _library
from ._library import check, library

BF16, HALF, FLOAT = 1, 2, 3
MODE_DIRECT = 0
RING_AT_RECEIVER = 0
TEAM_WORLD = 1
ROW_PER_CHOICE = 0  # of the ranks, which are the experts of these layers
NO_EXPERT = -1


class _Config(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("experts", ctypes.c_int32), ("top_k", ctypes.c_int32),
                ("mode", ctypes.c_int32), ("hidden", ctypes.c_int64), ("max_tokens", ctypes.c_int64),
                ("input_type", ctypes.c_int32), ("output_type", ctypes.c_int32), ("copy", ctypes.c_int32),
                ("audit", ctypes.c_int32), ("timeout_ns", ctypes.c_int64), ("capacity", ctypes.c_int64),
                ("ring", ctypes.c_int32), ("team", ctypes.c_void_p), ("rows", ctypes.c_int32), ("reserved", ctypes.c_int32)]


class _Plan(ctypes.Structure):
    _fields_ = [("local_experts", ctypes.c_int32), ("first_expert", ctypes.c_int32), ("ranks", ctypes.c_int32),
                ("copy", ctypes.c_int32), ("rows", ctypes.c_int64), ("tokens", ctypes.c_int64),
                ("offset_table", ctypes.c_void_p), ("length_table", ctypes.c_void_p), ("slots", ctypes.c_void_p)]


library.npushmemx_moe_destroy.restype = None


def _pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def _element_type(dtype):
    """The number of npushmem/moe.h for the type of rows. uint16 has the bits of bfloat16; so has ml_dtypes.bfloat16."""
    if dtype.name in ("bfloat16", "uint16"):
        return BF16
    types = {"float16": HALF, "float32": FLOAT}
    if dtype.name not in types:
        raise TypeError(f"rows of {dtype.name}: expected one of float32, float16, uint16 (the bits of bfloat16), bfloat16")
    return types[dtype.name]


def _require(name, array, shape, dtype=None):
    """Raises unless the argument is a C-contiguous array of the shape, in which None stands for any size."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} is a {type(array).__name__}: expected a numpy array")
    fits = array.ndim == len(shape) and all(want is None or want == size for want, size in zip(shape, array.shape))
    if not fits:
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} has the shape {array.shape}: expected ({wanted})")
    if dtype is not None and array.dtype != dtype:
        raise TypeError(f"{name} has the type {array.dtype.name}: expected {np.dtype(dtype).name}")
    if not array.flags.c_contiguous or not array.flags.aligned or not array.dtype.isnative:
        raise ValueError(f"{name} is not contiguous, aligned and native: pass numpy.ascontiguousarray({name})")


def _require_choices(topk_idx, num_experts, tokens=None):
    _require("topk_idx", topk_idx, (tokens, None))
    if topk_idx.dtype not in (np.int32, np.int64):
        raise TypeError(f"topk_idx has the type {topk_idx.dtype.name}: expected int64 or int32")
    if topk_idx.shape[1] < 1:
        raise ValueError("topk_idx has no choices: expected at least one per token")
    if num_experts is None or num_experts < 1:
        raise ValueError(f"num_experts is {num_experts}: expected at least 1, or num_tokens_per_expert of get_dispatch_layout")
    wrong = np.argwhere((topk_idx < NO_EXPERT) | (topk_idx >= num_experts))
    if len(wrong):
        token, choice = (int(index) for index in wrong[0])
        raise ValueError(f"topk_idx, token {token}, choice {choice}: is {topk_idx[token, choice]}, must be from 0 to "
                         f"{num_experts - 1}, or -1 for none")


def _experts_of(rank, num_experts, ranks):
    """The numbers of the experts on a rank: nearly equal blocks, the first ones larger, as in npushmem/moe.h."""
    each, larger = divmod(num_experts, ranks)
    first = rank * each + min(rank, larger)
    return range(first, first + each + (rank < larger))


class _Layer:
    """One layer of the library: rows of one length and type, with the PEs as experts."""

    def __init__(self, buffer, hidden, dtype, ranks_per_token):
        element = _element_type(dtype)
        config = _Config(ctypes.sizeof(_Config), buffer.num_ranks, ranks_per_token, MODE_DIRECT, hidden, buffer.max_tokens,
                         element, element, 0, 0, 0, buffer.max_tokens * buffer.num_ranks, RING_AT_RECEIVER, TEAM_WORLD,
                         ROW_PER_CHOICE, 0)
        self.hidden, self.dtype = hidden, dtype
        self.routed = None  # the handle whose routing the layer has
        self._moe = ctypes.c_void_p()
        check(library.npushmemx_moe_create(ctypes.byref(config), ctypes.byref(self._moe)))

    def destroy(self):
        library.npushmemx_moe_destroy(self._moe)

    def dispatch(self, x, handle):
        self.routed = None
        rows, plan = ctypes.c_void_p(), _Plan()
        check(library.npushmemx_moe_dispatch(self._moe, ctypes.c_int64(len(x)), _pointer(x), _pointer(handle.ranks),
                                             _pointer(handle.ones), ctypes.byref(rows)))
        check(library.npushmemx_moe_get_plan(self._moe, ctypes.byref(plan)))
        self.routed = handle
        size = plan.rows * self.hidden * self.dtype.itemsize
        if size == 0:
            return np.empty((0, self.hidden), self.dtype)
        received = (ctypes.c_char * size).from_address(rows.value)
        return np.frombuffer(received, self.dtype).reshape(plan.rows, self.hidden).copy()

    def combine(self, x, handle):
        if self.routed is not handle:
            self.routed = None
            check(library.npushmemx_moe_set_routing(self._moe, ctypes.c_int64(len(handle.ranks)), _pointer(handle.ranks),
                                                    _pointer(handle.ones)))
            self.routed = handle
        out = np.empty((len(handle.ranks), self.hidden), self.dtype)
        check(library.npushmemx_moe_combine(self._moe, _pointer(x), _pointer(out)))
        return out


class Handle:
    """The layout of one dispatch: combine needs it, and a later dispatch may reuse it. Opaque; belongs to one Buffer."""

    def __init__(self, buffer, is_token_in_rank, top_k):
        width = min(top_k, buffer.num_ranks)
        order = np.argsort(~is_token_in_rank, axis=1, kind="stable")[:, :width]  # the token's ranks first, ascending
        present = np.take_along_axis(is_token_in_rank, order, axis=1)
        self.buffer = buffer
        self.top_k = top_k
        self.ranks = np.ascontiguousarray(np.where(present, order, NO_EXPERT), dtype=np.int32)
        self.ones = np.ones(self.ranks.shape, np.float32)
        self.received = None  # rows, after the dispatch


class Buffer:
    """Communication of mixture-of-experts layers between all PEs, with the names and results of DeepEP's Buffer.

    Expert e of `num_experts` is on a PE in contiguous, nearly equal blocks. Rows are float32, float16, uint16 (the bits of
    bfloat16) or ml_dtypes.bfloat16. Every array must be C-contiguous. Results are new arrays.

    All methods but get_dispatch_layout are collective: all PEs call them in the same order, with rows of the same length and
    type and as many choices per token; the numbers of tokens may differ, and may be 0. They return when the call is complete;
    the `event` of their results is always None. See the package for errors.

    `group` must be None: all PEs take part. A PE has at most `max_tokens` tokens in a call. If max_tokens is None, it is what
    num_nvl_bytes + num_rdma_bytes of symmetric memory hold of rows of 7168 elements of two bytes with 8 choices. The first
    use of a row length and type takes the memory: max_tokens * (2 * min(top_k, PEs) + PEs) rows.
    """

    def __init__(self, group=None, num_nvl_bytes=0, num_rdma_bytes=0, *, max_tokens=None):
        if group is not None:
            raise ValueError("group: only None is supported, which is all PEs")
        self._generation = _library.generation()
        self.rank, self.num_ranks = _library.my_pe(), _library.n_pes()
        if max_tokens is None:
            row = 7168 * 2 * (2 * min(8, self.num_ranks) + self.num_ranks)
            max_tokens = (num_nvl_bytes + num_rdma_bytes) // row
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}: expected at least 1; pass max_tokens or larger sizes")
        self.max_tokens = int(max_tokens)
        self._layers = {}
        _library.at_finalize(self.destroy)

    def destroy(self):
        """Frees the symmetric memory. A second call does nothing."""
        while self._layers:
            self._layers.pop(next(iter(self._layers))).destroy()
        self._generation = None

    def get_dispatch_layout(self, topk_idx, num_experts):
        """Not collective. For topk_idx [tokens, top_k] of int64 or int32, -1 for none, returns (num_tokens_per_rank [PEs] int32,
        None, num_tokens_per_expert [num_experts] int32, is_token_in_rank [tokens, PEs] bool, None). num_tokens_per_expert
        counts every choice, also if a token has chosen an expert twice."""
        self._check_open()
        _require_choices(topk_idx, num_experts)
        is_token_in_rank = np.zeros((len(topk_idx), self.num_ranks), bool)
        for rank in range(self.num_ranks):
            experts = _experts_of(rank, num_experts, self.num_ranks)
            is_token_in_rank[:, rank] = ((topk_idx >= experts.start) & (topk_idx < experts.stop)).any(axis=1)
        per_expert = np.bincount(topk_idx[topk_idx != NO_EXPERT].ravel(), minlength=num_experts).astype(np.int32)
        return is_token_in_rank.sum(axis=0, dtype=np.int32), None, per_expert, is_token_in_rank, None

    def dispatch(self, x, handle=None, num_tokens_per_rank=None, num_tokens_per_rdma_rank=None, is_token_in_rank=None,
                 num_tokens_per_expert=None, topk_idx=None, topk_weights=None, expert_alignment=1, *, num_experts=None):
        """Sends each row of x [tokens, hidden] once to every PE that hosts any of its token's experts.

        With topk_idx [tokens, top_k] and topk_weights (float32, same shape; None: without), and the number of experts as
        num_experts or as the size of num_tokens_per_expert. The other arguments of get_dispatch_layout are accepted and
        computed anew. Returns (recv_x [rows, hidden], recv_topk_idx [rows, top_k], recv_topk_weights or None,
        num_recv_tokens_per_expert_list, handle, None). Rows are ordered by the PE that owns the token, then by token.
        recv_topk_idx numbers the experts of this PE from 0; -1, with weight 0, where the choice is another PE's. The list has
        the choices of each expert of this PE, rounded up to a multiple of expert_alignment.

        With the handle of an earlier dispatch instead, the rows take the same ways: (recv_x, None, None, None, None, None).
        """
        self._check_open()
        _require("x", x, (None, None))
        if handle is not None:
            if topk_idx is not None or topk_weights is not None:
                raise ValueError("dispatch takes either a handle or topk_idx and topk_weights")
            self._check_handle(handle)
            _require("x", x, (len(handle.ranks), None))
            return self._layer(x, handle).dispatch(x, handle), None, None, None, None, None
        if num_experts is None and num_tokens_per_expert is not None:
            num_experts = len(num_tokens_per_expert)
        if topk_idx is None:
            raise TypeError("dispatch needs topk_idx, or the handle of an earlier dispatch")
        _require_choices(topk_idx, num_experts, len(x))
        if topk_weights is not None:
            _require("topk_weights", topk_weights, topk_idx.shape, np.float32)
        if expert_alignment < 1:
            raise ValueError(f"expert_alignment is {expert_alignment}: expected at least 1")
        if len(x) > self.max_tokens:
            raise ValueError(f"x has {len(x)} tokens: the Buffer was made for at most {self.max_tokens}")
        top_k = topk_idx.shape[1]
        handle = Handle(self, self.get_dispatch_layout(topk_idx, num_experts)[3], top_k)
        choices = np.empty((len(x), 2, top_k), np.float32)
        choices[:, 0] = topk_idx.astype(np.int32).view(np.float32)
        choices[:, 1] = 0 if topk_weights is None else topk_weights
        recv_x = self._layer(x, handle).dispatch(x, handle)
        choices = choices.reshape(len(x), 2 * top_k)
        received = self._layer(choices, handle, "choices").dispatch(choices, handle).reshape(-1, 2, top_k)
        handle.received = len(recv_x)

        experts = _experts_of(self.rank, num_experts, self.num_ranks)
        recv_idx = np.ascontiguousarray(received[:, 0]).view(np.int32)
        own = (recv_idx >= experts.start) & (recv_idx < experts.stop)
        recv_idx = np.where(own, recv_idx - experts.start, NO_EXPERT).astype(topk_idx.dtype)
        recv_weights = None if topk_weights is None else np.where(own, received[:, 1], np.float32(0))
        counts = np.bincount(recv_idx[own], minlength=len(experts))
        aligned = [-(-int(count) // expert_alignment) * expert_alignment for count in counts]
        return recv_x, recv_idx, recv_weights, aligned, handle, None

    def combine(self, x, handle, topk_weights=None):
        """Returns each row of x [rows of the dispatch, hidden] to its token's PE, which adds up the rows of a token in float, in the
        order of the PEs, and rounds once: (combined_x [tokens, hidden], combined_topk_weights, None). The experts apply
        the weights before. combined_topk_weights [tokens, top_k] is the same sum of topk_weights [rows, top_k] float32, or
        None without them. A token without experts becomes 0."""
        self._check_open()
        self._check_handle(handle)
        _require("x", x, (handle.received, None))
        if topk_weights is not None:
            _require("topk_weights", topk_weights, (handle.received, handle.top_k), np.float32)
        combined = self._layer(x, handle).combine(x, handle)
        if topk_weights is None:
            return combined, None, None
        padded = np.concatenate([topk_weights, np.zeros_like(topk_weights)], axis=1)
        weights = self._layer(padded, handle, "choices").combine(padded, handle)
        return combined, np.ascontiguousarray(weights[:, :handle.top_k]), None

    def _check_open(self):
        if self._generation != _library.generation():
            raise RuntimeError("the Buffer is destroyed: make a new one after npushmem.init()")

    def _check_handle(self, handle):
        if not isinstance(handle, Handle):
            raise TypeError(f"handle is a {type(handle).__name__}: expected what dispatch returned")
        if handle.buffer is not self:
            raise ValueError("the handle belongs to another Buffer")

    def _layer(self, x, handle, purpose="rows"):
        """The layer for the rows of x, made at their first use."""
        key = (purpose, x.shape[1], x.dtype.name, handle.ranks.shape[1])
        if key not in self._layers:
            self._layers[key] = _Layer(self, x.shape[1], x.dtype, handle.ranks.shape[1])
        return self._layers[key]
