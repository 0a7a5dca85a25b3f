"""Published systems, one short file each, assembled from the core and its blocks.

Importing this package registers them all; `create(name, size, …)` makes one.
"""

from mirada.systems.cnn import CNN
from mirada.systems.convmixer import ConvMixer
from mirada.systems.deit import DeiT
from mirada.systems.gat import GAT
from mirada.systems.mlp import NodeMLP
from mirada.systems.registry import Card, card, cards, create, register
from mirada.systems.resnet import ResNet
from mirada.systems.vit import ViT

__all__ = ["CNN", "GAT", "Card", "ConvMixer", "DeiT", "NodeMLP", "ResNet", "ViT", "card", "cards", "create", "register"]
