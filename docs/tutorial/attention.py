# ruff: noqa: E402 (each section imports the parts that it introduces)
# %% [markdown]
# # Attention, step by step
#
# This page builds attention from nothing, one idea and one picture at a time. Every claim is an `assert` in the code,
# and the whole page is run by the tests, so what you read here is what the library does.
#
# You need to know what a vector and a matrix product are. The code is PyTorch; the parts come from `mirada.core`.

# %%
import matplotlib.pyplot as plt
import torch
from drawing import ACCENT, BLUE, FAINT, GREEN, PURPLE, heatmap, line_graph, mask_matrix, plane_graph, show
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)

# %% [markdown]
# ## 1. A weighted average
#
# Take the sentence *el gato negro salta la cuerda* (the black cat jumps the rope). Each word is a vector, its
# **value** v. Attention gives each word a new vector: a mixture of the values of all the words, with more of those
# that matter to it. For *negro* (black), what matters most is itself and *gato* (cat):
#
#     h_negro = 0.025 v_el + 0.4 v_gato + 0.5 v_negro + 0.025 v_salta + 0.025 v_la + 0.025 v_cuerda
#
# The weights are positive and sum to one. Such a sum is called a *convex combination*: the result always lies between
# the values it mixes, never outside.

# %%
words = "el gato negro salta la cuerda".split()
weights = torch.tensor([0.025, 0.4, 0.5, 0.025, 0.025, 0.025])
values = torch.tensor([[0.0, 0.2], [1.0, 3.0], [3.2, 2.6], [4.2, 0.8], [0.6, 1.3], [2.4, -0.4]])

h_negro = weights @ values

assert torch.isclose(weights.sum(), torch.tensor(1.0))
assert (values.min(0).values <= h_negro).all() and (h_negro <= values.max(0).values).all()

# %% [picture]
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.1))
left.barh(words[::-1], weights.flip(0).tolist(), color=[BLUE] * 3 + [ACCENT] + [BLUE] * 2)
left.set(title="weights of “negro”", xlim=(0, 0.58))
for row, weight in enumerate(weights.flip(0).tolist()):
    left.text(weight + 0.01, row, f"{weight:g}", va="center", fontsize=9)
right.fill(*values[[0, 1, 2, 3, 5]].T, color=BLUE, alpha=0.1, lw=0)
beside = {"la": (-30, 2), "el": (9, -4)}
for word, weight, value in zip(words, weights.tolist(), values, strict=True):
    right.plot(*torch.stack([value, h_negro]).T, color=BLUE, lw=10 * weight + 0.4, alpha=0.7, zorder=1)
    right.scatter(*value, color=BLUE, s=30, zorder=2)
    right.annotate(f"v {word}", value, xytext=beside.get(word, (6, 5)), textcoords="offset points", fontsize=9)
right.scatter(*h_negro, color=ACCENT, s=90, zorder=3)
right.annotate("h negro", h_negro, xytext=(-20, 11), textcoords="offset points", color=ACCENT, weight="bold")
right.set(title="the mixture lies between the values", xticks=[], yticks=[], xlim=(-0.3, 5.2), ylim=(-0.8, 3.6))
show(
    figure,
    "weighted-average",
    "Left: bars of the six weights, gato 0.4 and negro 0.5. Right: six value vectors as points; h negro lies inside the area they span, close to gato and negro.",  # noqa: E501
)

# %% [markdown]
# In the core, `Attend` computes such mixtures from three things: a **query** (who asks), **keys** (how each word
# presents itself) and **values** (what each word gives). To get given weights out of it, let query times key be their
# logarithms. Tensors have four dimensions: batch, heads, tokens, channels.

# %%
from mirada.core import Attend, Dot

query = torch.ones(1, 1, 1, 1)
keys = weights.log().reshape(1, 1, 6, 1)
mixed = Attend(score=Dot())(query, keys, values.reshape(1, 1, 6, 2))

assert torch.allclose(mixed[0, 0, 0], h_negro)

# %% [markdown]
# ## 2. Who asks, who answers: the key–query table
#
# Where do the weights come from? Each word sends out a query and shows a key; where query and key point the same way,
# their dot product is large. In *a fluffy blue creature roamed the verdant forest*, nouns ask “which adjectives
# describe me?” and the verb asks “which nouns are there?”. Here are vectors in which each channel stands for one such
# property:

# %%
sentence = "a fluffy blue creature roamed the verdant forest".split()
#                        creature's adjective, forest's adjective, noun, (unused)
key = {"fluffy": [4.5, -4.5, -4.5, 0], "blue": [4.7, -4.5, -4.5, 0], "verdant": [-4.5, 4.5, -4.5, 0],
       "creature": [-4.5, -4.5, 4.5, 0], "forest": [-4.5, -4.5, 4.5, 0]}  # fmt: skip
query = {"creature": [4.0, 0, 0, 0], "forest": [0, 4.0, 0, 0], "roamed": [0, 0, 4.0, 0]}
k = torch.tensor([key.get(word, [-4.5, -4.5, -4.5, 0]) for word in sentence])
q = torch.tensor([query.get(word, [0.0, 0, 0, 0]) for word in sentence])

logits = q @ k.T / 4**0.5  # section 3 says why √4: there are 4 channels
table = logits.exp() / logits.exp().sum(dim=1, keepdim=True)  # softmax: positive, and each row sums to one

creature = sentence.index("creature")
assert torch.allclose(table.sum(1), torch.ones(8))
assert torch.allclose(table[creature, 1:3], torch.tensor([0.4013, 0.5987]), atol=1e-4)

# %% [markdown]
# Turning numbers into weights by exponential and division is the **softmax**. The core does the same, and `record`
# shows its weights:

# %%
from mirada.core import ScaledDot, record

attend = Attend(score=ScaledDot())
with record(attend) as maps:
    attend(q[None, None], k[None, None], torch.randn(1, 1, 8, 5))

assert torch.allclose(maps[0][0, 0], table, atol=1e-6)

# %% [picture]
figure, (left, right) = plt.subplots(1, 2, figsize=(9.2, 5.4))
heatmap(left, table, sentence, sentence, title="Mirada: a row per query\nrows sum to 1", digits=2)
left.set(xlabel="key: who is seen", ylabel="query: who looks")
heatmap(right, table.T, sentence, sentence, title="some lectures: a column per query\ncolumns sum to 1", digits=2)
right.set(xlabel="query: who looks", ylabel="key: who is seen")
show(
    figure,
    "key-query-table",
    "Two 8 by 8 tables of weights of the sentence, one the transpose of the other. Creature looks at fluffy (0.4) and blue (0.6); words that ask nothing look at all words equally.",  # noqa: E501
)

# %% [markdown]
# Three things to see. *Creature* shares its attention between *fluffy* and *blue*: a small difference of 0.4 between
# the two logits makes it 0.40 against 0.60. *Forest* is sure about *verdant*. Words whose query is zero look at
# everybody equally: a plain average.
#
# **The trap:** some books draw the transpose, with a column for each query. Both are right as long as the softmax
# runs over the *keys*. Over the queries it is something else:

# %%
over_queries = logits.exp() / logits.exp().sum(dim=0, keepdim=True)

assert not torch.allclose(over_queries, table, atol=0.1)
assert not torch.allclose(over_queries.sum(1), torch.ones(8), atol=0.1)  # no longer an average

# %% [markdown]
# ## 3. Why divide by √d_k
#
# A dot product of two random vectors with d_k channels is a sum of d_k terms, so it spreads like √d_k. Without a
# correction, wide vectors give logits so far apart that the softmax picks a single winner and its gradient vanishes.
# Dividing by √d_k keeps the spread at 1, whatever the width. Dividing by d_k itself (a common slip) overdoes it: the
# wider the vectors, the closer the result is to a plain average that looks at nothing.

# %%
widths = [4, 16, 64, 256, 1024]
spread = {"q·k": [], "q·k / √d_k": [], "q·k / d_k": []}
for width in widths:
    q, k = torch.randn(400, width), torch.randn(400, width)
    for name, divisor in zip(spread, (1, width**0.5, width), strict=True):
        spread[name].append((q @ k.T / divisor).std().item())
    assert torch.allclose(ScaledDot()(q, k), q @ k.T / width**0.5, atol=1e-4)

assert all(0.95 < s < 1.05 for s in spread["q·k / √d_k"])
assert abs(spread["q·k / d_k"][2] - 0.125) < 0.01  # d_k = 64: eight times too flat
assert abs(spread["q·k"][2] - 8) < 0.3  #            d_k = 64: eight times too sharp

# %% [picture]
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2))
q, k = torch.randn(1, 1, 1, 1024), torch.randn(1, 1, 24, 1024)
for (name, numbers), scale, colour in zip(
    spread.items(), (1.0, 1 / 32, 1 / 1024), (PURPLE, ACCENT, GREEN), strict=True
):
    left.loglog(widths, numbers, "o-", color=colour, label=name)
    attend = Attend(score=ScaledDot(scale))
    with record(attend) as maps:
        attend(q, k, k)
    right.plot(range(1, 25), maps[0].flatten().sort(descending=True).values, ".-", color=colour, lw=1.5, label=name)
left.set(title="spread of the logits", xlabel="width d_k", xticks=widths, xticklabels=widths)
left.minorticks_off()
left.legend(frameon=False, fontsize=9)
right.set(title="weights of 24 keys at d_k = 1024", xlabel="key, from the most to the least seen", ylim=(-0.03, 1.05))
show(
    figure,
    "scale",
    "Left: the spread of q·k grows with the square root of the width, stays at 1 if divided by it, and shrinks if divided by the width. Right: unscaled, one key of 24 takes nearly all the weight; divided by the width, all keys get almost the same.",  # noqa: E501
)

# %% [markdown]
# ## 4. The score can be swapped
#
# The dot product is one way to say how well a query fits a key. Before it became the usual one there were others, and
# the rest of attention does not care which is used:
#
#     dot        q · k                            Luong 2015
#     bilinear   qᵀ W k                           Luong 2015 ("general"); with W = I it is the dot product
#     additive   vᵀ tanh(W_q q + W_k k)           Bahdanau 2015

# %%
from mirada.core import Additive, Bilinear

x = torch.randn(1, 1, 8, 6)  # eight words, six channels, one head
scores = {"dot": Dot(), "bilinear": Bilinear(6, 6), "additive": Additive(6, 6, hidden_dim=16)}
score_maps = {}
for name, score in scores.items():
    attend = Attend(score=score)
    with record(attend) as maps:
        attend(x, x, x)
    score_maps[name] = maps[0][0, 0]
    assert torch.allclose(score_maps[name].sum(-1), torch.ones(8))

with torch.no_grad():
    scores["bilinear"].weight.copy_(torch.eye(6)[None])
assert torch.allclose(scores["bilinear"](x, x), Dot()(x, x))

# %% [picture]
figure, axes = plt.subplots(1, 3, figsize=(8.4, 3.8))
for ax, (name, weights_NM) in zip(axes, score_maps.items(), strict=True):
    heatmap(ax, weights_NM, sentence if name == "dot" else None, sentence, title=name, vmax=1)
show(
    figure,
    "scores",
    "Weights of the same eight random word vectors under three scores. The dot product favours the diagonal; the untrained bilinear and additive scores do not.",  # noqa: E501
)

# %% [markdown]
# The vectors are random and nothing is trained yet. The dot product favours the diagonal, because a vector is most like
# itself; the two others have weights of their own, which training will set.
#
# ## 5. Neighbourhoods: who may look at whom
#
# So far every word looked at every word. A **neighbourhood** restricts that. It can be drawn as a matrix of allowed
# pairs (a *mask*) or as a graph with an edge from i to j where i may look at j. These are two pictures of one thing,
# and attention is a message passed along the edges:
#
#     h_i = Σ_{j ∈ N_i} α(x_i, x_j) v_j         the weights α of each i sum to one over its own neighbours

# %%
from mirada.core import Edges, Fixed, Grid, Strided, Windows, causal, full, line, plane, window

sequence, image = line(12), plane(4, 4)
ring_and_chords = [(i, (i + 1) % 12) for i in range(12)] + [(0, 5), (2, 9), (3, 7), (6, 10)]
edges = torch.tensor([pair for i, j in ring_and_chords for pair in ((i, j), (j, i))]).T

neighbourhoods = {
    "full": (full(), sequence),
    "causal": (causal(), sequence),
    "window(2)": (window(2), sequence),
    "Strided(4)": (Strided(4), sequence),
    "Fixed(4, 1)": (Fixed(4, 1), sequence),
    "Grid(1)": (Grid(1), image),
    "Windows, shifted": (Windows((2, 2), shift=(1, 1)), image),
    "Edges": (Edges(edges, 12, 12), sequence),
}

assert causal().allowed(sequence, sequence).equal(torch.ones(12, 12, dtype=torch.bool).tril())
assert set(Grid(1).allowed(image, image).sum(1).tolist()) == {4, 6, 9}  # corner, border, inside; itself included

# %% [picture]
figure, axes = plt.subplots(4, 4, figsize=(8.4, 8.6))
angle = torch.arange(12) * torch.pi / 6
circle = torch.stack([-angle.cos(), angle.sin()], dim=-1)
for number, (name, (neighbours, places)) in enumerate(neighbourhoods.items()):
    matrix_ax, graph_ax = axes[number // 4 * 2 : number // 4 * 2 + 2, number % 4]
    allowed = neighbours.allowed(places, places)
    mask_matrix(matrix_ax, allowed, focus=9, title=name)
    if name == "Edges":
        plane_graph(graph_ax, allowed, circle, focus=9)
    elif places is image:
        plane_graph(graph_ax, allowed, image.coords_NA, focus=9)
    else:
        line_graph(graph_ax, allowed, focus=9)
for ax in axes[::2, 0]:
    ax.set(xlabel="seen →", ylabel="← looks")
show(
    figure,
    "neighbourhoods",
    "Eight neighbourhoods, each as a matrix and below it as a graph: full, causal, window, strided and fixed on a line of 12 tokens, grid and shifted windows on a plane of 4 by 4, and the edges of a given graph. One token and whom it sees is highlighted.",  # noqa: E501
)

# %% [markdown]
# One token and those it sees are orange. On the line, arcs above look back and arcs below look ahead.
#
# - **Causal** hides the future: what a model that writes word by word needs.
# - **Window** sees only near tokens, so the cost grows with N and not with N².
# - **Strided** and **fixed** (Sparse Transformer) see near tokens plus every l-th one, or the last of each block. Two
#   steps then reach everything before.
# - **Grid** and **windows** do the same on images; shifting the windows in every second layer lets them exchange.
# - **Edges** is any graph you have: molecules, citations, roads.
#
# Neighbourhoods combine with `&` and `|`. Three facts follow from the picture, and hold exactly:

# %%
from mirada.core import Attention, Concatenated

x = torch.randn(2, 12, 8)
layer = Attention(Concatenated(dim=8, num_heads=2))

every_pair = torch.cartesian_prod(torch.arange(12), torch.arange(12)).T
assert torch.allclose(layer(x, neighbours=window(12)), layer(x), atol=1e-6)  # a wide window is full attention
assert torch.allclose(layer(x, neighbours=Edges(every_pair, 12, 12)), layer(x), atol=1e-6)  # and so is a full graph

later = x.clone()
later[:, 7:] = torch.randn(2, 5, 8)  # another future …
before, after = (layer(tokens, neighbours=causal()) for tokens in (x, later))
assert torch.allclose(before[:, :7], after[:, :7], atol=1e-6)  # … never changes the past

two_steps = Strided(4).allowed(line(16), line(16)).double() @ Strided(4).allowed(line(16), line(16)).double()
assert (two_steps > 0).equal(torch.ones(16, 16, dtype=torch.bool).tril())

# %% [markdown]
# ## 6. Positions
#
# Attention as built so far does not know the order of the words. Shuffle the input and the output is shuffled the
# same way, nothing else changes: *the dog bites the man* and *the man bites the dog* are the same to it.

# %%
from mirada.core import Sinusoidal

order = torch.randperm(12)
assert torch.allclose(layer(x[:, order]), layer(x)[:, order], atol=1e-6)

position = Sinusoidal(dim=8)
with_order = position(x, line(12))
shuffled = position(x[:, order], line(12))
assert not torch.allclose(layer(shuffled), layer(with_order)[:, order], atol=0.1)

# %% [markdown]
# There are three ways to put order in.
#
# **Added** to the words: each position has a vector of its own. The *sinusoidal* table uses pairs of sine and cosine,
# from fast to slow, like the hands of a clock (i is the position, D the width, m the pair):
#
#     PE(i, 2m) = sin(i / 10000^{2m/D}),      PE(i, 2m+1) = cos(i / 10000^{2m/D})
#
# Its virtue: moving by s positions is the same rotation everywhere, so that “three words back” can be learned once.

# %%
robot = Sinusoidal(dim=4, base=100.0).table(line(4))  # for "I am a robot"
expected = [[0, 1, 0, 1], [0.84, 0.54, 0.10, 1.00], [0.91, -0.42, 0.20, 0.98], [0.14, -0.99, 0.30, 0.96]]
assert torch.allclose(robot, torch.tensor(expected, dtype=torch.float64), atol=0.006)

code = Sinusoidal(dim=32).table(line(64))
step = torch.tensor(3.0, dtype=torch.float64)  # by which the fastest pair turns in 3 positions
turn = torch.stack([torch.stack([step.cos(), -step.sin()]), torch.stack([step.sin(), step.cos()])])
assert torch.allclose(code[3:, :2], code[:-3, :2] @ turn)  # the same for every position

# %% [markdown]
# **Rotary**: turn query and key by an angle that grows with their position. In their dot product only the difference
# of the angles is left, so the score depends on how far apart two tokens are and not on where they stand.
#
# **Relative bias**: add to each logit a learned number that depends on the offset j − i.
#
# Put the same query and the same key at every position, and both show their stripes:

# %%
from mirada.core import BiasTable, Rotary

rotary = Rotary(head_dim=16)
q, k = torch.randn(1, 1, 1, 16).expand(-1, -1, 24, -1), torch.randn(1, 1, 1, 16).expand(-1, -1, 24, -1)
rotary_logits = ScaledDot()(rotary(q, line(24)), rotary(k, line(24)))[0, 0]
assert torch.allclose(rotary_logits[:-5, :-5], rotary_logits[5:, 5:], atol=1e-5)  # only j − i matters

bias = BiasTable(size=(24,), num_heads=1)
with torch.no_grad():
    bias.table[:, 0] = -(torch.arange(-23, 24).abs() ** 0.5)  # trained by hand: the farther, the less
bias_logits = bias.bias(q, line(24), line(24))[0, 0]
assert torch.allclose(bias_logits[:-5, :-5], bias_logits[5:, 5:])

# %% [picture]
figure, axes = plt.subplots(1, 4, figsize=(8.8, 2.7), width_ratios=(1.1, 1, 1, 1))
heatmap(axes[0], code, title="sinusoidal table", vmin=-1, vmax=1)
axes[0].set(xlabel="channel", ylabel="position", aspect="auto")
axes[1].add_patch(plt.Circle((0, 0), 1, fill=False, color=FAINT))
for i, colour in ((2, BLUE), (10, BLUE), (5, ACCENT), (13, ACCENT)):
    axes[1].plot([0, code[i, 5]], [0, code[i, 4]], color=colour, lw=1.5)
    axes[1].annotate(str(i), (code[i, 5] * 1.22, code[i, 4] * 1.22), ha="center", va="center", color=colour)
axes[1].set(title="3 further:\none rotation", aspect="equal", xticks=[], yticks=[], xlim=(-1.4, 1.4), ylim=(-1.4, 1.4))
axes[1].set_xlabel("channels 4 and 5")
heatmap(axes[2], rotary_logits, title="rotary", vmin=None)
heatmap(axes[3], bias_logits, title="relative bias", vmin=None)
for ax in axes[2:]:
    ax.set(xlabel="key j")
axes[2].set_ylabel("query i")
axes[1].spines[:].set_visible(False)
show(
    figure,
    "positions",
    "Four panels. The sinusoidal table: fast waves in the first channels, slow in the last. Two channels drawn as a clock hand: from position 2 to 5 and from 10 to 13 it turns by the same angle. Rotary logits and relative bias: matrices that are constant along their diagonals.",  # noqa: E501
)

# %% [markdown]
# ## 7. Several heads
#
# One average can answer one question. A layer therefore asks several at once: each **head** has its own projections
# of the words to queries, keys and values, and its own map. The results are put side by side and projected back:
#
#     MultiHead = Concat(head_1 … head_H) W^O  =  Σ_h head_h W^O_h
#
# The second form says the same: cut W^O into H slices and every head adds its share.

# %%
heads = Concatenated(dim=12, num_heads=3)
layer = Attention(heads)
x = torch.randn(1, 8, 12)
with record(layer) as head_maps:
    out = layer(x)

each_head = layer.attend(heads.queries(x), heads.keys(x), heads.values(x))  # (batch, heads, tokens, 4 channels)
slices = heads.to_out.weight.T.unflatten(0, (3, 4))
summed = sum(each_head[:, h] @ slices[h] for h in range(3)) + heads.to_out.bias
assert torch.allclose(out, summed, atol=1e-6)

# %% [markdown]
# **Collaborative** heads (Cordonnier 2020) notice that heads often ask similar things: all of them share one wide
# query and one wide key, and each head only chooses how much of every channel it uses. Ordinary heads are the special
# case where each head takes a block of channels for itself, so trained heads can be taken over without any loss, and
# then shrunk.

# %%
from mirada.core import Collaborative

shared = Collaborative(dim=12, num_heads=3)
shared.load_concatenated(heads)
assert torch.allclose(Attention(shared)(x), out, atol=1e-6)

# %% [picture]
figure, axes = plt.subplots(1, 4, figsize=(8.8, 3.0), width_ratios=(1, 1, 1, 1.25))
for h in range(3):
    heatmap(axes[h], head_maps[0][0, h], sentence if h == 0 else None, sentence, title=f"head {h + 1}", vmax=0.5)
heatmap(axes[3], shared.mixing, ["1", "2", "3"], title="who uses which\nshared channel", cmap="magma")
axes[3].set(xlabel="channel of the shared key", ylabel="head", aspect=2)
show(
    figure,
    "heads",
    "Maps of three heads of one layer, each different, and the mixing matrix of collaborative heads: ordinary heads are three separate blocks of channels.",  # noqa: E501
)

# %% [markdown]
# ## 8. A convolution is attention on a grid
#
# A 3 × 3 convolution gives each pixel a weighted sum of its nine neighbours, with weights that depend only on the
# offset. That is attention with a grid neighbourhood, nine heads, and a relative bias so sharp that each head looks
# at one neighbour only; the numbers of the filter sit in the values. What attention adds is that the weights may
# depend on *what* is seen, and not only on where.

# %%
size, places = (21, 23), plane(21, 23)
row, column = places.coords_NA.double().unbind(-1)
pixels = (((row - 10) ** 2 + (column - 11) ** 2).sqrt() / 1.3).cos().float() + 0.4 * (column > 11)
sobel = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])

sharp = BiasTable(size=(2, 2), num_heads=9)  # offsets −1, 0, 1 in both directions: 9 rows, one for each head
with torch.no_grad():
    sharp.table.copy_(100 * torch.eye(9))
filter_in_values = pixels * sobel.flatten().flip(0)[:, None]  # row 0 is the offset i − j = (−1, −1): the last number

nine_heads = Attend(neighbours=Grid(1), position=sharp)
nothing = torch.zeros(1, 9, 21 * 23, 1)  # queries and keys that say nothing: only the place counts
each_head = nine_heads(nothing, nothing, filter_in_values[None, ..., None], queries=places, keys=places)
by_attention = each_head.sum(1).reshape(size)
by_convolution = F.conv2d(pixels.reshape(1, 1, *size), sobel[None, None], padding=1)[0, 0]

inside = (slice(1, -1), slice(1, -1))  # at the border a head has no neighbour to look at; the convolution sees zeros
assert torch.allclose(by_attention[inside], by_convolution[inside], atol=1e-4)

# %% [picture]
with record(nine_heads) as maps:
    nine_heads(nothing, nothing, filter_in_values[None, ..., None], queries=places, keys=places)
middle = maps[0][0, :, 10 * 23 + 11].reshape(9, *size)[:, 8:13, 9:14].flip(0)  # so that the first looks up and left
figure, axes = plt.subplots(1, 4, figsize=(8.8, 2.6))
heatmap(axes[0], pixels.reshape(size), title="image", cmap="gray", vmin=None)
tiled = torch.full((21, 21), torch.nan)
for h in range(9):
    top, left = h // 3 * 7 + 1, h % 3 * 7 + 1
    tiled[top : top + 5, left : left + 5] = middle[h]
heatmap(axes[1], tiled, title="nine heads look", cmap="magma")
heatmap(axes[2], by_attention[inside], title="their sum", vmin=None)
heatmap(axes[3], by_convolution[inside], title="F.conv2d", vmin=None)
show(
    figure,
    "convolution",
    "An image of rings; nine small maps, each head looking at one of the nine neighbours of the middle pixel; the sum of the heads and the convolution by F.conv2d, which are the same picture.",  # noqa: E501
)

# %% [markdown]
# ## 9. Same numbers, less work
#
# The parts say *what* is computed. *How* is decided by Mirada: for each call it takes the first kernel in a visible
# [table](../kernels.md) that serves the parts and is worth it. The simplest one, the `reference`, writes out the whole
# matrix and serves everything. The block kernels skip nearly all pairs that the neighbourhood excludes, and the `fused`
# one never keeps the matrix. All give the same numbers:

# %%
from mirada.core import kernels
from mirada.core.kernels.call import Call

q, k, v = torch.randn(3, 1, 2, 144, 8)
for name, neighbours, places in [
    ("block local", window(5), line(144)),
    ("block sparse", Strided(12), line(144)),
    ("block grid", Grid(1), plane(12, 12)),
    ("block grid", Windows((4, 4), shift=(2, 2)), plane(12, 12)),
    ("fused", causal(), line(144)),
]:
    call = Call(q, k, v, ScaledDot(), neighbours, queries=places, keys=places)  # what `Attend` hands to a kernel
    assert kernels.choose(call).name == name
    fast = kernels.run(call)
    with kernels.forced("reference"):
        assert torch.allclose(kernels.run(call), fast, atol=1e-5)

# %% [markdown]
# How much work is saved can be counted. Here is a score that counts the pairs it is asked for:


# %%
from mirada.core import Score


class CountingDot(Score):
    """q kᵀ, and how many pairs were compared."""

    num_pairs = 0

    def forward(self, q, k):
        logits = q @ k.mT
        self.num_pairs += logits.numel()
        return logits


def count_pairs(neighbours, length):
    score, tokens = CountingDot(), torch.zeros(1, 1, length, 1)
    Attend(score, neighbours)(tokens, tokens, tokens)
    return score.num_pairs


lengths = [64, 256, 1024, 4096]
counts = {
    "full": [count_pairs(full(), n) for n in lengths],
    "strided, l = √N": [count_pairs(Strided(round(n**0.5)), n) for n in lengths],
    "window(8)": [count_pairs(window(8), n) for n in lengths],
}

assert counts["full"] == [n * n for n in lengths]
assert counts["window(8)"][3] == 4 * counts["window(8)"][2]  # 4 times the tokens, 4 times the work
assert counts["strided, l = √N"][3] == 8 * counts["strided, l = √N"][2]  # N · √N

# %% [picture]
figure, ax = plt.subplots(figsize=(5.6, 3.1))
for (name, numbers), colour in zip(counts.items(), (PURPLE, GREEN, ACCENT), strict=True):
    ax.loglog(lengths, numbers, "o-", color=colour)
    ax.annotate(name, (lengths[-1], numbers[-1]), xytext=(10, -3), textcoords="offset points", color=colour)
ax.set(title="pairs compared", xlabel="tokens N", xticks=lengths, xticklabels=lengths, xlim=(50, 22000))
ax.minorticks_off()
show(
    figure,
    "cost",
    "Pairs compared against the number of tokens, from 64 to 4,096: full attention grows with the square, strided with N times its root, a window in proportion to N.",  # noqa: E501
)

# %% [markdown]
# ## 10. Seeing what a model does
#
# `with record(model) as maps:` gives the weights of every attention layer of any model built from the core, whichever
# kernel ran. To have something worth seeing, here is a model that learns to write a sequence backwards. Every place
# of the output is a query that knows only its own position; the memory is the input.


# %%
from mirada.core import Learned


class Reverser(nn.Module):
    def __init__(self, num_symbols=11, length=9, dim=32):
        super().__init__()
        self.embed, self.answer = nn.Embedding(num_symbols, dim), nn.Linear(dim, num_symbols)
        self.input_place, self.output_place = Learned((length,), dim, std=0.5), Learned((length,), dim, std=0.5)
        self.look = Attention(Concatenated(dim, num_heads=2))

    def forward(self, symbols):
        places = line(symbols.shape[1])
        memory = self.input_place(self.embed(symbols), places)
        asking = self.output_place(torch.zeros_like(memory), places)
        return self.answer(self.look(asking, memory))


model = Reverser()
optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
for _ in range(200):
    symbols = torch.randint(11, (32, 9))
    loss = F.cross_entropy(model(symbols).flatten(0, 1), symbols.flip(1).flatten())
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

symbols = torch.randint(11, (200, 9))
plain = model(symbols)
assert (plain.argmax(-1) == symbols.flip(1)).float().mean() > 0.99

with record(model) as maps:
    recorded = model(symbols)
assert recorded.equal(plain)  # recording changes nothing, not one bit
assert list(maps) == ["look.attend"] and maps[0].shape == (200, 2, 9, 9)  # sequences, heads, queries, keys

mean_map = maps[0].mean((0, 1))
assert mean_map.argmax(-1).tolist() == list(range(8, -1, -1))  # output 0 looks at input 8, and so on

# %% [markdown]
# Nobody told the model where to look. With `mode="differentiate"` the recorded weights lie on the way to the output, so
# that the gradient of an answer with respect to each weight can be taken: how much a look *mattered*.

# %%
with record(model, mode="differentiate") as live_maps:
    answers = model(symbols[:1])
answers[0, 0].max().backward(inputs=[weights := live_maps[0]])
assert weights.grad.shape == weights.shape and weights.grad[0, :, 0].abs().sum() > 0
assert weights.grad[0, :, 1:].abs().sum() == 0  # the first answer depends on the first row only

# %% [picture]
figure, axes = plt.subplots(1, 3, figsize=(8.4, 2.9))
for h in range(2):
    heatmap(axes[h], maps[0][0, h], title=f"head {h + 1}", vmax=1)
    axes[h].set(xlabel="input", ylabel="output")
    axes[h].set_xticks(range(9), symbols[0].tolist(), rotation=0)
    axes[h].set_yticks(range(9), symbols[0].flip(0).tolist())
mattered = (weights.grad * weights)[0, :, 0].sum(0)
axes[2].bar(range(9), mattered.tolist(), color=ACCENT)
axes[2].set(title="what mattered for output 1", xlabel="input", ylabel="gradient × weight")
axes[2].set_xticks(range(9), symbols[0].tolist())
show(
    figure,
    "recording",
    "Left and middle: the maps of both heads of the trained model, with the weight on the anti-diagonal. Right: for the first answer only the last input mattered.",  # noqa: E501
)

# %% [markdown]
# ## Where to go from here
#
# - [The parts](../core.md): all scores, neighbourhoods, positions and heads, with equations and when to use them.
# - [The kernels](../kernels.md): which kernel serves which parts.
# - `make demo` trains a small vision transformer on handwritten digits and draws where it looks.
