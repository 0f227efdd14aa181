"""What this machine has: memory and processor cores, the same on Linux and macOS."""

from __future__ import annotations

import os

import psutil


def available_memory() -> int:
    """Bytes that can still be used without swapping."""
    return int(psutil.virtual_memory().available)


def usable_cores() -> list[int]:
    """The cores that this process may run on, by number; empty where the system does not say (macOS)."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def num_cores() -> int:
    """How many cores this process may use."""
    return len(usable_cores()) or os.cpu_count() or 1
