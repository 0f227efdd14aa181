"""In which numbers a network computes: float32, or bfloat16 where it was asked for and works.

Parameters, Adam's moments and sums over a minibatch are float32 in any case. Some virtual machines announce
instructions for bfloat16 (AMX) that end the process when they are used, so they are first tried in another one.
"""

from __future__ import annotations

import subprocess
import sys

import torch

from efhorizon.agents.deep.device import DeviceError
from efhorizon.policies.pretraining_settings import Precision

_TRIAL = """
import torch
with torch.autocast("cpu", torch.bfloat16):
    images = torch.rand(64, 3, 64, 64)
    torch.nn.Conv2d(3, 32, 8, 4)(images).sum().backward()
    torch.nn.Linear(64, 64)(images[0]).sum().backward()
"""
_SECONDS = 120


def chosen_precision(asked: str, device: torch.device) -> Precision:
    """What to compute in: "auto" is bfloat16 on a GPU that has it, else float32."""
    if asked == "float32":
        return "float32"
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported():
            return "bfloat16"
        works = False
    elif asked == "auto":
        return "float32"
    else:
        works = _works_on_cpu()
    if asked == "auto":
        return "float32"
    if not works:
        raise DeviceError(f"bfloat16 does not work on this machine's {device.type}; choose --precision float32")
    return "bfloat16"


def _works_on_cpu() -> bool:
    trial = subprocess.run([sys.executable, "-c", _TRIAL], capture_output=True, timeout=_SECONDS, check=False)
    return trial.returncode == 0
