"""Every family that can be loaded, by the model_type of its config.json."""

from ..family import Family
from .decoders import DECODERS
from .encoder_decoders import ENCODER_DECODERS
from .encoders import ENCODERS
from .experts import EXPERTS
from .gpt_line import GPT_LINE
from .llama_line import LLAMA_LINE
from .relatives import RELATIVES

FAMILIES: dict[str, Family] = {
    family.model_type: family
    for family in (*ENCODERS, *DECODERS, *LLAMA_LINE, *GPT_LINE, *EXPERTS, *ENCODER_DECODERS, *RELATIVES)
}
