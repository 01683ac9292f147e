"""Text and image encoders: presets with prompts, pooling and lengths, and encoding a dataset folder.
A new encoder is a preset, or a class with `encode` in a file of its own. Heavy packages load on use."""

from ..threads import settle
from .base import Encoder
from .encode import encode_dataset
from .load import encoder_of, load_encoder
from .presets import INSTRUCTIONS, PRESETS, preset_of, short_name

__all__ = ["INSTRUCTIONS", "PRESETS", "Encoder", "encode_dataset", "encoder_of", "load_encoder", "preset_of", "short_name"]

settle()
