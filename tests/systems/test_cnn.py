"""CNN and ResNet: parameter counts, equality with transformers, the layout in memory, images larger than small."""

import pytest
import torch
from transformers import ResNetConfig, ResNetForImageClassification

from mirada.errors import MiradaError
from mirada.systems import CNN, ResNet, create
from mirada.systems.cnn import channels_last


@pytest.mark.parametrize(("size", "count"), [("18", 11_689_512), ("34", 21_797_672)])
def test_resnet_parameters_are_the_published_ones(size, count):
    with torch.device("meta"):
        model = create("resnet", size, image_size=(224, 224), in_channels=3, num_classes=1000)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_resnet_equals_transformers_in_output_and_input_gradient(mode):
    depths = (2, 1, 3)
    theirs = ResNetForImageClassification(
        ResNetConfig(
            num_channels=5,
            embedding_size=8,
            hidden_sizes=[8, 16, 32],
            depths=depths,
            layer_type="basic",
            num_labels=7,
        )
    ).double()
    ours = ResNet(image_size=(37, 53), in_channels=5, num_classes=7, dim=8, depths=depths, stem="imagenet").double()
    with torch.no_grad():
        for tensor in theirs.state_dict().values():
            if tensor.is_floating_point():
                tensor.uniform_(0.1, 0.5) if tensor.ndim == 1 else tensor.normal_(std=0.3)
    # Both register stem, shortcut, convolutions and head in the same order.
    ours.load_state_dict(dict(zip(ours.state_dict(), theirs.state_dict().values(), strict=True)))
    x = torch.randn(3, 5, 37, 53, dtype=torch.float64)
    own, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    logits = ours.train(mode == "train")(own)
    expected = theirs.train(mode == "train")(other).logits
    torch.testing.assert_close(logits, expected)
    direction = torch.randn(3, 7, dtype=torch.float64)
    logits.backward(direction), expected.backward(direction)
    torch.testing.assert_close(own.grad, other.grad)


def test_resnet_blocks_start_as_the_identity():
    model = ResNet(image_size=(16, 16), in_channels=3, num_classes=5, dim=8).eval()
    x = torch.rand(2, 8, 5, 7)
    assert torch.equal(model.stages[0](x), x)


def test_resnet_unknown_stem_is_refused():
    with pytest.raises(MiradaError, match=r"stem='cifar10'.*did you mean 'cifar'"):
        ResNet(image_size=(16, 16), in_channels=3, num_classes=5, stem="cifar10")


@pytest.mark.parametrize(
    ("size", "stride"), [((8, 8), 1), ((48, 31), 1), ((49, 31), 2), ((64, 64), 2), ((224, 150), 8)]
)
def test_cnn_halves_large_images_at_once(size, stride):
    model = CNN(image_size=size, in_channels=2, num_classes=3, dim=8)
    assert model.stem[0].stride == (stride, stride)
    assert model.eval()(torch.randn(2, 2, *size)).shape == (2, 3)


@pytest.mark.parametrize("system", [CNN, ResNet])
def test_layout_in_memory_is_no_matter_and_weights_can_be_saved(system):
    model = system(image_size=(17, 13), in_channels=3, num_classes=5, dim=8).eval()
    x = torch.randn(2, 3, 17, 13)
    assert torch.equal(model(x), model(channels_last(x)))
    model(x).sum().backward()
    for parameter in model.parameters():
        assert parameter.is_contiguous()


def test_cnn_features_are_the_mean_of_the_last_maps():
    model = CNN(image_size=(17, 13), in_channels=3, num_classes=5, dim=8).eval()
    x = torch.randn(2, 3, 17, 13)
    maps = model.stages(model.stem(x))
    assert maps.shape == (2, 32, 3, 2)
    torch.testing.assert_close(model.features(x), maps.flatten(2).mean(-1))
