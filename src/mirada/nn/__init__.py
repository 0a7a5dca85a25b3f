"""Blocks made of the core: from an input to tokens, through layers, to one vector or one per token."""

from mirada.nn.decoder import Decoder, DecoderLayer
from mirada.nn.decoding import State
from mirada.nn.embedding import TokenEmbedding, TokenMatrices
from mirada.nn.encoder import Encoder, EncoderLayer
from mirada.nn.merging import PatchMerging
from mirada.nn.mlp import MLP, GatedMLP, QuickGELU
from mirada.nn.neighbourhood import neighbours_named
from mirada.nn.norm import TokenBatchNorm
from mirada.nn.patches import ConvPatches, ConvStem, LinearPatches, ShiftedPatches, image_of, patches_of
from mirada.nn.pooled_attention import HeadPooling, PooledAttention
from mirada.nn.pooling import AttentionPooling, ClassToken, Mean, SequencePooling
from mirada.nn.recurrent import BahdanauDecoder, DecoderState, ElmanCell, LuongDecoder, RecurrentEncoder
from mirada.nn.residual import LayerScale, PostNorm, PreNorm, StochasticDepth, post_norm, pre_norm, rising_rates
from mirada.nn.tokens import ExtraTokens
from mirada.nn.windowed import WindowedAttention

__all__ = [
    "MLP",
    "AttentionPooling",
    "BahdanauDecoder",
    "ClassToken",
    "ConvPatches",
    "ConvStem",
    "Decoder",
    "DecoderLayer",
    "DecoderState",
    "ElmanCell",
    "Encoder",
    "EncoderLayer",
    "ExtraTokens",
    "GatedMLP",
    "HeadPooling",
    "LayerScale",
    "LinearPatches",
    "LuongDecoder",
    "Mean",
    "PatchMerging",
    "PooledAttention",
    "PostNorm",
    "PreNorm",
    "QuickGELU",
    "RecurrentEncoder",
    "SequencePooling",
    "ShiftedPatches",
    "State",
    "StochasticDepth",
    "TokenBatchNorm",
    "TokenEmbedding",
    "TokenMatrices",
    "WindowedAttention",
    "image_of",
    "neighbours_named",
    "patches_of",
    "post_norm",
    "pre_norm",
    "rising_rates",
]
