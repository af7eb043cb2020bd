"""Choose the device that a model runs on."""

from __future__ import annotations

import torch

from ..errors import HarpError

__all__ = ["choose_device"]


def choose_device(name: str | None) -> torch.device:
    """Return the device of that name.

    Args:
        name: PyTorch's name of a device, such as ``cpu`` or ``cuda:1``. None chooses CUDA if there
            is a GPU, and the CPU otherwise.

    Raises:
        HarpError: this machine has no such device.
    """
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = " ".join(str(error).split())[:120]
        raise HarpError(f"device {name!r} cannot be used: {reason}") from error
    return device
