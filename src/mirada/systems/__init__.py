"""Published systems, one short file each, assembled from the core and its blocks.

Importing this package registers them all; `create(name, size, …)` makes one.
"""

from mirada.systems.bert import Bert
from mirada.systems.cnn import CNN
from mirada.systems.convmixer import ConvMixer
from mirada.systems.cvt import CvT
from mirada.systems.deepvit import DeepViT
from mirada.systems.deit import DeiT
from mirada.systems.gat import GAT
from mirada.systems.gpt import GPT
from mirada.systems.image_gpt import ImageGPT
from mirada.systems.mlp import NodeMLP
from mirada.systems.mvit import MViT
from mirada.systems.registry import Card, card, cards, create, register
from mirada.systems.resnet import ResNet
from mirada.systems.seq2seq import Seq2Seq
from mirada.systems.spatioformer import Spatioformer
from mirada.systems.spatioformer_paper import SpatioformerPaper
from mirada.systems.swin import Swin
from mirada.systems.t2t_vit import T2TViT
from mirada.systems.transformer import Transformer
from mirada.systems.transunet import TransUNet
from mirada.systems.unet import UNet
from mirada.systems.vit import ViT
from mirada.systems.vit_3d import ViT3D
from mirada.systems.vit_hybrid import ViTHybrid
from mirada.systems.word2vec import Word2Vec

__all__ = [
    "CNN",
    "GAT",
    "GPT",
    "Bert",
    "Card",
    "ConvMixer",
    "CvT",
    "DeepViT",
    "DeiT",
    "ImageGPT",
    "MViT",
    "NodeMLP",
    "ResNet",
    "Seq2Seq",
    "Spatioformer",
    "SpatioformerPaper",
    "Swin",
    "T2TViT",
    "TransUNet",
    "Transformer",
    "UNet",
    "ViT",
    "ViT3D",
    "ViTHybrid",
    "Word2Vec",
    "card",
    "cards",
    "create",
    "register",
]
