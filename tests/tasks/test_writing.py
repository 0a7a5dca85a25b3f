"""Going on with a text: each continuation is its own, pieces are the whole, and no text is too long."""

import pytest
import torch

from mirada.data.text.tokeniser import Tokeniser
from mirada.errors import MiradaError
from mirada.systems import card, create
from mirada.tasks.writing import MOST_HELD, OVERLAP, Draw, Writer

SEEN = 8  # tokens at once
TEXT = "el niño come pan y bebe agua; ¿qué más? 20 €"


def writer(kind: str = "character") -> Writer:
    torch.manual_seed(5)
    tokeniser = Tokeniser.train([TEXT] * 3, kind, 270)
    model = create("gpt", **{**card("gpt").tiny, "num_tokens": len(tokeniser), "max_length": SEEN})
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return Writer(model, tokeniser, SEEN, torch.device("cpu"))


def test_a_continuation_does_not_depend_on_how_many_there_are():
    """Nor after the model has begun anew from the later half of what it can see."""
    several = writer().write("el ", count=3, max_tokens=30)
    assert writer().write("el ", count=1, max_tokens=30) == several[:1]
    assert writer().write("el ", count=2, max_tokens=30) == several[:2]
    assert len(set(several)) == 3


@pytest.mark.parametrize("length", [SEEN - 1, SEEN, SEEN + 1, 5 * SEEN])
def test_a_prompt_may_be_longer_than_what_the_model_sees(length):
    written = writer()
    prompt = (TEXT * 2)[:length]
    tokens = written.tokeniser.encode(prompt)
    assert len(tokens) == length
    got = [
        token for step in written.tokens(prompt, count=1, max_tokens=7, draw=Draw(temperature=0)) for _, token in step
    ]
    allowed = torch.zeros(len(written.tokeniser)).index_fill(0, written.tokeniser.ordinary, 1).log()
    allowed[written.tokeniser.end] = 0
    seen = list(tokens)
    for token in got:
        seen = seen if len(seen) < SEEN else seen[-SEEN // 2 :]
        with torch.no_grad():
            assert token == int((written.model(torch.tensor([seen]))[0, -1] + allowed).argmax())
        seen.append(token)
    assert got and (len(got) == 7 or written.tokeniser.end not in got)
    assert len(written.next(prompt, k=3)) == 3


@pytest.mark.parametrize("kind", ["character", "word", "bpe", "wordpiece", "byte"])
@pytest.mark.parametrize("prompt", ["", "el niño"])
def test_pieces_are_the_whole(kind, prompt):
    """Also where characters are cut into bytes, and the last is cut off."""
    written = writer(kind)
    for seed in range(3):
        how = {"max_tokens": 60, "draw": Draw(seed=seed)}
        assert "".join(written.stream(prompt, **how)) == written.write(prompt, **how)[0]


def test_half_a_character_is_not_shown():
    written = writer("byte")
    euro = written.tokeniser.encode("€")
    written.tokens = lambda *_, **__: iter([[(0, token)] for token in [*euro, *euro[:-1]]])
    assert len(euro) == 3 and list(written.stream("20 ")) == ["€", "\ufffd"]


@pytest.mark.parametrize("token", ["n", "half"])
def test_a_long_text_is_not_decoded_from_its_beginning(token):
    written = writer("byte")
    number = written.tokeniser.encode("€")[0] if token == "half" else written.tokeniser.encode("n")[0]
    written.tokens = lambda *_, **__: iter([[(0, number)]] * 500)
    sizes, decode = [], written.tokeniser.decode
    written.tokeniser.decode = lambda ids: sizes.append(len(ids)) or decode(ids)
    assert len("".join(written.stream("el niño"))) == 500
    assert max(sizes) <= len("el niño".encode()) + 2 * OVERLAP + MOST_HELD


def test_nothing_to_write_is_refused():
    with pytest.raises(MiradaError, match="0 tokens are asked for"):
        writer().write("el", max_tokens=0)
