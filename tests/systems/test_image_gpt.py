"""Image GPT: counts, equality with transformers, density, drawing with and without a cache, features, other sizes."""

import math

import pytest
import torch
from torch.nn import functional as F
from transformers import ImageGPTConfig, ImageGPTForCausalImageModeling

from mirada.core import Cache, attention_layers, record
from mirada.errors import MiradaError
from mirada.systems import ImageGPT, card, create
from mirada.tasks.draw import complete, continued, generate
from mirada.tasks.pixels import first_rows
from mirada.weights import layout_for

PUBLISHED = {"S": 76_682_240, "M": 455_489_536, "L": 1_362_914_304}
SIZE, COLOURS, CHANNELS = (5, 3), 7, 2


@pytest.mark.parametrize(("size", "count"), PUBLISHED.items())
def test_parameters_are_those_of_the_paper(size, count):
    with torch.device("meta"):
        model = create("image_gpt", size, image_size=(32, 32), in_channels=3)
    assert sum(parameter.numel() for parameter in model.parameters()) == count


def make(**arguments) -> ImageGPT:
    torch.manual_seed(7)
    model = create("image_gpt", **{"image_size": SIZE, "in_channels": CHANNELS, **card("image_gpt").tiny, **arguments})
    model.give_palette(torch.randn(model.palette_TC.shape))
    return model


def shaken(**arguments) -> ImageGPT:
    model = make(**arguments)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model.eval()


def twins() -> tuple[ImageGPT, ImageGPTForCausalImageModeling]:
    config = ImageGPTConfig(
        vocab_size=COLOURS + 1, n_positions=15, n_embd=12, n_layer=3, n_head=2, n_inner=20,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    theirs = ImageGPTForCausalImageModeling(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(0.0, 0.4)
    arguments = {"image_size": SIZE, "in_channels": 3, "num_colours": COLOURS, "dim": 12, "depth": 3, "num_heads": 2}
    ours = ImageGPT(**arguments, mlp_ratio=20 / 12).eval()
    state = layout_for("image_gpt", "transformers").to_ours(theirs.state_dict(), arguments)
    ours.load_state_dict({**state, "palette_TC": torch.randn(COLOURS, 3)})
    return ours, theirs


def test_equals_transformers_in_output_and_gradient():
    ours, theirs = twins()
    read_BN = torch.randint(0, COLOURS + 1, (2, 15))
    logits, expected = ours.next_logits(read_BN), theirs(read_BN).logits
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-5)
    direction = torch.randn_like(expected)
    logits.backward(direction), expected.backward(direction)
    pairs = [
        (ours.embedding.weight, theirs.transformer.wte.weight),
        (ours.position.weight, theirs.transformer.wpe.weight),
        (ours.to_colour.weight, theirs.lm_head.weight),
        (ours.encoder.layers[0].mlp.inner.expand.weight, theirs.transformer.h[0].mlp.c_fc.weight.grad.T),
    ]
    for own, other in pairs:
        torch.testing.assert_close(own.grad, other if other.grad is None else other.grad, atol=1e-5, rtol=1e-5)


def test_likelihood_is_that_of_transformers():
    ours, theirs = twins()
    images = torch.randn(3, 3, *SIZE)
    colour_BN = ours.colours_of(images)
    read_BN = torch.cat([torch.full((3, 1), COLOURS), colour_BN[:, :-1]], dim=1)
    log_p = theirs(read_BN).logits.log_softmax(-1).gather(-1, colour_BN[..., None])[..., 0]
    torch.testing.assert_close(ours(images), -log_p.mean(1), atol=1e-5, rtol=1e-5)


def test_at_the_start_all_colours_are_equally_likely():
    nats = make()(torch.randn(3, CHANNELS, *SIZE))
    torch.testing.assert_close(nats, torch.full((3,), math.log(COLOURS)))


def test_probabilities_of_all_images_sum_to_one():
    """Two colours and four pixels: sixteen images."""
    model = shaken(image_size=(2, 2), num_colours=2)
    colour_BN = torch.cartesian_prod(*[torch.arange(2)] * 4)
    images = model.images_of(colour_BN)
    assert images.shape == (16, CHANNELS, 2, 2)
    assert torch.equal(model.colours_of(images), colour_BN)
    torch.testing.assert_close((-4 * model(images)).exp().sum(), torch.tensor(1.0))


def test_a_pixel_is_the_nearest_colour_in_raster_order():
    model = make(num_colours=3, in_channels=1, image_size=(2, 3))
    model.give_palette(torch.tensor([[0.0], [1.0], [5.0]]))
    image = torch.tensor([[0.2, 0.9, 4.0], [2.9, 3.1, -7.0]])[None, None]
    assert model.colours_of(image).tolist() == [[0, 1, 2, 1, 2, 0]]
    assert model.images_of(model.colours_of(image))[0, 0].tolist() == [[0.0, 1.0, 5.0], [1.0, 5.0, 0.0]]


def test_a_pixel_is_judged_by_those_before_it_only():
    model = shaken()
    colour_BN = torch.randint(0, COLOURS, (1, 15))
    changed = colour_BN.clone()
    changed[0, 6] = (changed[0, 6] + 1) % COLOURS
    before, after = model.logits(colour_BN)[0], model.logits(changed)[0]
    torch.testing.assert_close(before[:7], after[:7])
    assert all(not torch.allclose(before[n], after[n]) for n in range(7, 15))


@pytest.mark.parametrize("size", [SIZE, (3, 7)])
def test_reading_with_a_cache_equals_reading_at_once(size):
    model = shaken()
    count = size[0] * size[1]
    read_BN = torch.cat([torch.full((2, 1), model.start), torch.randint(0, COLOURS, (2, count - 1))], dim=1)
    whole = model.next_logits(read_BN, size)
    with torch.no_grad():
        cache = Cache()
        pieces = [model.next_logits(piece, size, cache) for piece in read_BN.split([4, 1, 1, count - 6], dim=1)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, atol=1e-5, rtol=1e-5)
    with pytest.raises(MiradaError, match="there is no such place"):
        model.next_logits(read_BN[:, :1], size, cache)


def uncached(model: ImageGPT, colour_BN, temperature, top_k, generator):
    """Every pixel from a whole pass over all before it."""
    while colour_BN.shape[1] < 15:
        padded_BN = F.pad(colour_BN, (0, 15 - colour_BN.shape[1]))
        logits_BT = model.logits(padded_BN)[:, colour_BN.shape[1]].double()
        if top_k:
            logits_BT = torch.where(logits_BT >= logits_BT.sort(-1).values[:, -top_k, None], logits_BT, -torch.inf)
        noise = torch.rand(logits_BT.shape, generator=generator, dtype=torch.float64)
        likelihood = (logits_BT / temperature).softmax(-1)
        colour_BN = torch.cat([colour_BN, (likelihood / -noise.log()).argmax(-1, keepdim=True)], dim=1)
    return colour_BN


@pytest.mark.parametrize(("temperature", "top_k"), [(1.0, None), (0.7, 3)])
def test_drawing_with_the_cache_equals_drawing_without(temperature, top_k):
    model = shaken()
    known_BN = torch.randint(0, COLOURS, (4, 6))
    with torch.no_grad():
        expected = uncached(model, known_BN, temperature, top_k, torch.Generator().manual_seed(3))
    got = continued(model, known_BN, temperature=temperature, top_k=top_k, generator=torch.Generator().manual_seed(3))
    assert torch.equal(got, expected)
    assert torch.equal(got[:, :6], known_BN)


def test_draws_follow_the_probabilities():
    """A thousand single pixels: the counts of colours are what the model says."""
    model = shaken(image_size=(1, 1))
    share_T = model.next_logits(torch.tensor([[model.start]]))[0, 0].softmax(-1)
    images = generate(model, 4000, generator=torch.Generator().manual_seed(0))
    assert images.shape == (4000, CHANNELS, 1, 1)
    found_T = torch.bincount(model.colours_of(images)[:, 0], minlength=COLOURS) / 4000
    assert (found_T - share_T).abs().max() < 4 * (0.25 / 4000) ** 0.5
    best = generate(model, 5, temperature=0.0)
    assert (model.colours_of(best)[:, 0] == share_T.argmax()).all()
    few = generate(model, 500, top_k=2, generator=torch.Generator().manual_seed(0))
    assert set(model.colours_of(few)[:, 0].tolist()) == set(share_T.topk(2).indices.tolist())


@pytest.mark.parametrize("size", [(6, 3), (4, 7)])
def test_completion_keeps_the_upper_half(size):
    model = shaken(image_size=(6, 3))
    images = torch.randn(3, CHANNELS, *size)
    done = complete(model, images, generator=torch.Generator().manual_seed(1))
    half = size[0] // 2
    colour_BN = model.colours_of(images)
    assert done.shape == images.shape
    assert torch.equal(done[:, :, :half], model.images_of(colour_BN, size)[:, :, :half])
    assert first_rows(colour_BN, size, 0.5).shape == (3, half * size[1])
    assert torch.equal(complete(model, images, share=1.0), model.images_of(colour_BN, size))


def test_features_are_the_mean_of_what_the_middle_attention_sees():
    model = shaken(depth=4)
    images = torch.randn(2, CHANNELS, *SIZE)
    seen = []
    handle = model.encoder.layers[2].attention.norm.register_forward_hook(lambda *args: seen.append(args[2]))
    model(images)
    handle.remove()
    torch.testing.assert_close(model.features(images), seen[0].mean(1))
    assert model.features(images).shape == (2, 16)
    assert not torch.allclose(model.features(images, layer=0), model.features(images))
    assert model.features(images, layer=4).shape == (2, 16)


def test_learns_a_pattern_and_then_draws_it():
    """Stripes whose phase the first pixel tells: all nats are in that pixel, and completions are right."""
    phase_B = torch.arange(2).repeat(16)
    colour_BN = (phase_B[:, None] + torch.arange(16)) % 2
    model = create("image_gpt", image_size=(4, 4), in_channels=1, **{**card("image_gpt").tiny, "num_colours": 2})
    model.give_palette(torch.tensor([[0.0], [1.0]]))
    images = model.images_of(colour_BN)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(150):
        loss = model(images).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 1.2 * math.log(2) / 16
    for parameter in model.parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all()
    assert torch.equal(complete(model.eval(), images[:4], temperature=0.5), images[:4])


def test_attention_is_recorded_causal_and_the_density_is_the_same():
    model = shaken()
    images = torch.randn(2, CHANNELS, *SIZE)
    plain = model(images)
    with record(model) as maps:
        assert torch.equal(model(images), plain)
    assert len(maps) == len(attention_layers(model)) == 2
    for name in maps:
        assert maps[name].shape == (2, 2, 15, 15)
        torch.testing.assert_close(maps[name].sum(-1), torch.ones(2, 2, 15))
        assert not maps[name].triu(1).any()


def test_another_size_uses_interpolated_positions():
    model = shaken()
    assert model(torch.randn(2, CHANNELS, 7, 11)).isfinite().all()
    assert model.grid(torch.randn(2, CHANNELS, 7, 11)) == (7, 11)


def test_dropout_acts_in_training_only():
    model = shaken(dropout=0.5)
    images = torch.randn(2, CHANNELS, *SIZE)
    assert torch.equal(model(images), model(images))
    assert not torch.equal(model.train()(images), model(images))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m: create("image_gpt", image_size=SIZE, in_channels=2)(torch.zeros(1, 2, 5, 3)), "no palette yet"),
        (lambda m: m.give_palette(torch.zeros(3, 2)), r"palette of \(3, 2\).*7 colours of 2 channels"),
        (lambda m: generate(m, 1, temperature=-1.0), "temperature=-1"),
        (lambda m: generate(m, 1, top_k=0), "top_k=0"),
        (lambda m: complete(m, torch.zeros(1, 2, 5, 3), share=1.5), "share=1.5"),
    ],
)
def test_misuse_is_refused(act, message):
    with pytest.raises(MiradaError, match=message):
        act(make())
