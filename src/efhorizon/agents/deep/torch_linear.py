"""Products of matrices by oneDNN, which torch uses for convolutions.

Torch multiplies matrices of float32 on a CPU with MKL. On AMD's processors MKL leaves half of their vector units idle;
oneDNN does not, and is twice as fast there. On Intel's the two are equally fast.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional


def linear(inputs: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """inputs [B, D] times weights [O, D], plus bias [O]."""
    is_plain = inputs.device.type == "cpu" and inputs.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    if not is_plain or not _HAS_ONEDNN:
        return functional.linear(inputs, weights, bias)
    found: torch.Tensor = _Linear.apply(inputs, weights, bias)  # type: ignore[no-untyped-call]
    return found


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, inputs: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(inputs, weights)
        return product(inputs, weights, bias)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, ...]:
        inputs, weights = context.saved_tensors
        return (
            product(gradient, weights.t(), None),
            product(gradient.t(), inputs.t(), None),
            gradient.sum(dim=0),
        )


def product(left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """left [I, J] times the transpose of right [K, J], plus bias [K]; on a CPU."""
    if not _HAS_ONEDNN:
        return functional.linear(left, right, bias)
    return _by_onednn(left, right, bias)


def _by_onednn(left: torch.Tensor, right: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    found: torch.Tensor = torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")
    return found


def _has_onednn() -> bool:
    """Whether this torch has the operator: it is one that torch's own compiler uses."""
    try:
        return bool(torch.allclose(_by_onednn(torch.eye(2), torch.ones(3, 2), None), torch.ones(2, 3)))
    except (AttributeError, RuntimeError):
        return False


_HAS_ONEDNN = _has_onednn()
