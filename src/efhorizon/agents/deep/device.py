"""Where torch computes."""

from __future__ import annotations

import torch

from efhorizon.errors import EfhorizonError


class DeviceError(EfhorizonError):
    """There is no such device here; the message is one line for the user."""


def torch_device(name: str) -> torch.device:
    """The device of this name; "auto" is a GPU that CUDA knows, or the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise DeviceError(f"torch cannot use the device {name!r} here; choose auto, cpu or cuda") from None
    return device
