"""The first layer of the Nature CNN on images that differ little from one picture, as those of most games do.

A convolution is linear. So the outputs for an image are those for a still picture plus those for the difference, which
is 0 in most blocks of 4 x 4 pixels: only the blocks that changed are multiplied with the filters. It is the same for
the gradient by the filters: for the still picture it needs only the sum over images of the gradients by the outputs.
Both are exact, up to rounding. In the seven games of Figure 4, 3% to 43% of the blocks change within a rollout.

The filters are 2 x 2 blocks wide, so each block takes part in up to four outputs.

Legend: B images [84, 84, 4] as a rule, R x C blocks of an image, F filters, X changed blocks of all images,
D numbers of a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from efhorizon.agents.deep.torch_linear import product
from efhorizon.compiled import compiled, compiled_with

_BLOCK = 4  # pixels
_ROWS = 256  # of products: a multiple of it
_MOST_CHANGED = 0.3  # share of blocks; with more, all are multiplied


@dataclass(frozen=True)
class Still:
    """The picture, and its blocks as the kernels take them."""

    picture: torch.Tensor  # [1, H, W, C], bytes

    @property
    def pixels(self) -> torch.Tensor:
        """As torch's convolutions take it."""
        return self.picture.to(torch.float32).permute(0, 3, 1, 2)


def still_picture(images: torch.Tensor) -> Still | None:
    """What most images [B, H, W, C] show in each block; None if too many blocks change."""
    flat = images.numpy()
    picture = np.empty_like(flat[:1])
    _majority(flat, picture[0])
    blocks = (images.shape[1] // _BLOCK) * (images.shape[2] // _BLOCK)
    if _changed(flat, picture[0], _NO_PLACES, _NO_NUMBERS) > _MOST_CHANGED * blocks * len(images):
        return None
    return Still(torch.from_numpy(picture))


def first_layer(images: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor, still: Still) -> torch.Tensor:
    """Outputs of filters [F, C, 8, 8] that move by 4, those below 0 set to 0: [B, F, R - 1, C - 1], channels last."""
    found: torch.Tensor = _FirstLayer.apply(images, weights, bias, still)  # type: ignore[no-untyped-call]
    return found


class _FirstLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, images: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor, still: Still
    ) -> torch.Tensor:
        places, differences = _changed_blocks(images, still)
        added = product(differences, _by_block(weights), None)  # [X, 4 F]
        base = functional.conv2d(still.pixels, weights, bias, _BLOCK).permute(0, 2, 3, 1)[0]
        outputs = base.expand(len(images), *base.shape).clone()
        _add(places, added.numpy(), outputs.numpy())
        outputs.relu_()
        context.save_for_backward(outputs, weights, differences)
        context.places, context.still = places, still
        return outputs.permute(0, 3, 1, 2)

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> Any:
        outputs, weights, differences = context.saved_tensors
        places, still = context.places, context.still
        by_output = torch.ops.aten.threshold_backward(gradient.permute(0, 2, 3, 1).contiguous(), outputs, 0)
        around = torch.zeros((len(differences), 4 * len(weights)))
        _collect(by_output.numpy(), places, around.numpy())
        total = by_output.sum(dim=0, keepdim=True).permute(0, 3, 1, 2)
        steps, wanted = [_BLOCK, _BLOCK], [False, True, True]
        _, found, by_bias = torch.ops.aten.convolution_backward(
            total, still.pixels, weights, [len(weights)], steps, [0, 0], [1, 1], False, [0, 0], 1, wanted
        )
        found += _by_filter(product(around.t(), differences.t(), None), weights)
        return None, found, by_bias, None


def _changed_blocks(images: torch.Tensor, still: Still) -> tuple[NDArray[np.int32], torch.Tensor]:
    """Image, row and column of each changed block [X, 3], and what was added to it [X, D], with zeros at the end.

    The number of rows is rounded up, because oneDNN compiles a product when it first meets its shape.
    """
    flat, picture = images.numpy(), still.picture.numpy()[0]
    count = _changed(flat, picture, _NO_PLACES, _NO_NUMBERS)
    places = np.empty((count, 3), np.int32)
    differences = np.empty(((count // _ROWS + 1) * _ROWS, _BLOCK**2 * flat.shape[3]), np.float32)
    _changed(flat, picture, places, differences)
    differences[count:] = 0
    return places, torch.from_numpy(differences)


def _by_block(weights: torch.Tensor) -> torch.Tensor:
    """Filters [F, C, 8, 8] by the block of theirs that a block of the image meets, [4 F, D]."""
    filters, channels = weights.shape[:2]
    cut = weights.detach().permute(0, 2, 3, 1).reshape(filters, 2, _BLOCK, 2, _BLOCK, channels)
    return cut.permute(1, 3, 0, 2, 4, 5).reshape(4 * filters, -1)


def _by_filter(gradient: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The inverse of `_by_block`."""
    filters, channels = weights.shape[:2]
    cut = gradient.view(2, 2, filters, _BLOCK, _BLOCK, channels).permute(2, 0, 3, 1, 4, 5)
    return cut.reshape(filters, 2 * _BLOCK, 2 * _BLOCK, channels).permute(0, 3, 1, 2)


_NO_PLACES = np.empty((0, 3), np.int32)
_NO_NUMBERS = np.empty((0, 0), np.float32)


@compiled_with(nogil=True)
def _changed(images: Any, picture: Any, places: Any, differences: Any) -> int:
    """How many blocks of images [B, H, W, 4] differ from the picture's; writes them down if there is room."""
    rows, still = images.reshape(len(images), len(picture), -1), picture.reshape(len(picture), -1)
    words, still_words = rows.view(np.uint64), still.view(np.uint64)
    num_rows, num_columns, across = len(picture) // _BLOCK, still.shape[1] // _BLOCK**2, _BLOCK**2
    found, is_written = 0, len(places) > 0
    for which in range(len(images)):
        for row in range(num_rows):
            for column in range(num_columns):
                if not _differs(words[which], still_words, row, column):
                    continue
                if is_written:
                    places[found, 0], places[found, 1], places[found, 2] = which, row, column
                    for line in range(_BLOCK):
                        for place in range(across):
                            now = np.float32(rows[which, _BLOCK * row + line, across * column + place])
                            usual = np.float32(still[_BLOCK * row + line, across * column + place])
                            differences[found, across * line + place] = now - usual
                found += 1
    return found


@compiled
def _majority(images: Any, picture: Any) -> None:
    """The majority vote of Boyer and Moore for each block: any block that most images show, else one of those seen."""
    words, still = images.reshape(len(images), len(picture), -1).view(np.uint64), picture.reshape(len(picture), -1)
    still_words = still.view(np.uint64)
    lead = np.zeros((len(picture) // _BLOCK, still.shape[1] // _BLOCK**2), np.int64)
    for which in range(len(images)):
        for row in range(lead.shape[0]):
            for column in range(lead.shape[1]):
                differs = _differs(words[which], still_words, row, column)
                if lead[row, column] == 0:
                    lead[row, column] = 1
                    for line in range(_BLOCK * row, _BLOCK * row + _BLOCK):
                        for place in range(2 * column, 2 * column + 2):
                            still_words[line, place] = words[which, line, place]
                else:
                    lead[row, column] += -1 if differs else 1


@compiled_with(nogil=True, inline="always")
def _differs(words: Any, others: Any, row: int, column: int) -> bool:
    """Whether a block differs; 4 pixels of 4 bytes in a row are two words."""
    found = np.uint64(0)
    for line in range(_BLOCK * row, _BLOCK * row + _BLOCK):
        found |= words[line, 2 * column] ^ others[line, 2 * column]
        found |= words[line, 2 * column + 1] ^ others[line, 2 * column + 1]
    return bool(found != 0)


@compiled_with(nogil=True, error_model="numpy")
def _add(places: Any, added: Any, outputs: Any) -> None:
    """What changed blocks add to the outputs [B, R - 1, C - 1, F]."""
    _, rows, columns, filters = outputs.shape
    for block in range(len(places)):
        for part in range(4):
            row, column = places[block, 1] - part // 2, places[block, 2] - part % 2
            if 0 <= row < rows and 0 <= column < columns:
                out = outputs[places[block, 0], row, column]
                own = added[block, filters * part : filters * (part + 1)]
                for place in range(filters):
                    out[place] += own[place]


@compiled_with(nogil=True, error_model="numpy")
def _collect(gradient: Any, places: Any, around: Any) -> None:
    """The gradient [B, R - 1, C - 1, F] by the four outputs of each changed block."""
    _, rows, columns, filters = gradient.shape
    for block in range(len(places)):
        for part in range(4):
            row, column = places[block, 1] - part // 2, places[block, 2] - part % 2
            out = around[block, filters * part : filters * (part + 1)]
            if 0 <= row < rows and 0 <= column < columns:
                own = gradient[places[block, 0], row, column]
                for place in range(filters):
                    out[place] = own[place]
            else:
                out[:] = 0
