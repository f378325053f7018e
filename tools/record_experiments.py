"""Run what takes too long for a notebook, over seeds, and record the results.

    python tools/record_experiments.py [name …]

Each experiment writes attnbook/data/<name>.json, and small_writer the numbers of
a model beside it. The text calls such numbers "recorded"; a test repeats one seed
of each.
"""

import json
import re
import sys
import time
from pathlib import Path

import matplotlib
import numpy as np
import real_models

from attnbook import ops, train

DATA = Path(__file__).parents[1] / "attnbook" / "data"


def pronoun_looks() -> dict:
    """Readers with one look and with two, over seeds: right answers on unseen names.

    ``attention`` holds the mean weight of the last look on the first and on the
    second name, where the first is meant and where the second is.
    """
    runs = []
    for looks, seeds in ((2, range(10)), (1, range(5))):
        for seed in seeds:
            runs.append(pronoun_run(seed, looks))
            print(f"  {looks} looks, seed {seed}: {runs[-1]['right']:.3f}")
    return {"sentences": 500, "steps": 600, "runs": runs}


def pronoun_run(seed: int, looks: int) -> dict:
    """Train one reader and test it on 500 sentences about unseen names."""
    grammar, reader, _ = train.train_pronoun_reader(seed, looks)
    test = grammar.draw(np.random.default_rng(7), 500, grammar.unseen)
    weights = reader.attention(test)[-1]
    n, second = np.arange(500), test.means_second
    on = {
        name: weights[n, place]
        for name, place in (("first", test.first), ("second", test.second))
    }
    attention = {
        meant: {name: round(float(on[name][rows].mean()), 3) for name in on}
        for meant, rows in (("first", ~second), ("second", second))
    }
    right = float(reader.right(test).mean())
    return {"looks": looks, "seed": seed, "right": right, "attention": attention}


def attention_times() -> dict:
    """Seconds for one head of width 64, direct and in tiles, at growing lengths."""
    rng = np.random.default_rng(0)
    functions = {
        "direct": ops.scaled_dot_product_attention,
        "tiled": ops.tiled_attention,
    }
    runs = []
    with train.one_thread():
        for n in (256, 512, 1024, 2048, 4096, 8192):
            q, k, v = (rng.standard_normal((n, 64), np.float32) for _ in range(3))
            seconds = {}
            for name, function in functions.items():
                times = []
                for _ in range(5):
                    start = time.perf_counter()
                    function(q, k, v)
                    times.append(time.perf_counter() - start)
                seconds[name] = round(float(np.median(times)), 5)
            runs.append({"n": n, "seconds": seconds})
            print(f"  {n} tokens: {seconds}")
    return {"width": 64, "threads": 1, "dtype": "float32", "runs": runs}


def stream_times() -> dict:
    """Seconds for one step of a stream after more and more items, width 64."""
    rng = np.random.default_rng(0)
    width, runs = 64, []
    recur, take = rng.standard_normal((2, width, width), np.float32) / 8

    def attention(item, kept):
        return ops.scaled_dot_product_attention(item[None], kept, kept)

    def recurrent(item, state):
        return np.tanh(state @ recur + item @ take)

    with train.one_thread():
        for items in (100, 1_000, 10_000, 100_000):
            kept = rng.standard_normal((items, width), np.float32)
            seconds = {}
            for name, step, memory in (
                ("attention", attention, kept),
                ("recurrent", recurrent, kept[-1]),
            ):
                times = []
                for _ in range(201):
                    start = time.perf_counter()
                    step(kept[0], memory)
                    times.append(time.perf_counter() - start)
                seconds[name] = round(float(np.median(times)), 7)
            runs.append({"items": items, "seconds": seconds})
            print(f"  {items} items: {seconds}")
    return {"width": width, "threads": 1, "dtype": "float32", "runs": runs}


def local_times() -> dict:
    """Seconds to find a pattern of three neighbours: by sliding, and by three heads
    that look at all places, or in a window of three."""
    rng = np.random.default_rng(0)
    pattern = np.array([-1, 0, 1], np.float32)
    runs = []
    with train.one_thread():
        for places in (128, 256, 512, 1024, 2048, 4096):
            signal = rng.standard_normal(places, np.float32)
            looks = neighbour_looks(places, len(pattern))
            seconds = {}
            for name, find, given in (
                ("attention", by_heads, (signal, pattern, looks)),
                ("window", by_windows, (signal, pattern)),
                ("convolution", by_sliding, (signal, pattern)),
            ):
                times = []
                for _ in range(21):
                    start = time.perf_counter()
                    find(*given)
                    times.append(time.perf_counter() - start)
                seconds[name] = round(float(np.median(times)), 8)
            runs.append({"places": places, "seconds": seconds})
            print(f"  {places} places: {seconds}")
    return {"pattern": len(pattern), "threads": 1, "dtype": "float32", "runs": runs}


def neighbour_looks(places: int, width: int) -> list[np.ndarray]:
    """Return a mask for each neighbour, (T, S); at the ends there may be nobody."""
    steps = range(-(width // 2), width - width // 2)
    return [np.eye(places, k=step, dtype=bool) for step in steps]


def by_sliding(signal: np.ndarray, pattern: np.ndarray) -> np.ndarray:
    """Slide the pattern along the signal, with zeros beyond its ends."""
    return np.correlate(signal, pattern, "same")


def by_windows(signal: np.ndarray, pattern: np.ndarray) -> np.ndarray:
    """Find the same by heads that look at the neighbours alone, (T, 1, width)."""
    width = len(pattern)
    padded = np.pad(signal, (width // 2, width - 1 - width // 2))
    near = np.lib.stride_tricks.sliding_window_view(padded, width)[..., None]
    query, keys = np.zeros((len(signal), 1, 1), signal.dtype), np.zeros_like(near)
    found = np.zeros_like(signal)
    for number, allow in zip(pattern, np.eye(width, dtype=bool), strict=True):
        mixed = ops.scaled_dot_product_attention(query, keys, near, allow)
        found += number * mixed[:, 0, 0]
    return found


def by_heads(
    signal: np.ndarray, pattern: np.ndarray, looks: list[np.ndarray]
) -> np.ndarray:
    """Find the same by a head for each number; its mask leaves one neighbour."""
    no_match, values = np.zeros((len(signal), 1), signal.dtype), signal[:, None]
    found = np.zeros_like(signal)
    for number, allow in zip(pattern, looks, strict=True):
        mixed = ops.scaled_dot_product_attention(no_match, no_match, values, allow)
        found += number * mixed[:, 0]
    return found


def families() -> dict:
    """Tiny families on two chains, over seeds, against counted arithmetic.

    ``cost`` is the arithmetic, in thousands of millions of multiply–adds, at the
    first of three tests in a row in which the last token was right nearly as often
    as for somebody who knows the chain: ``short`` may be missing. None if that did
    not happen. ``best`` says for each chain how often that somebody is right, at
    the last token and in the middle.
    """
    plans = [(n, 64, back, RATE) for back in (1, 2) for n in train.OBJECTIVES]
    plans += [(name, 4, 1, RATE) for name in ("decoder", "decoder_asked_15")]
    rates = (RATE / 2, RATE * 2)
    plans += [(n, 64, 1, rate) for n in ("decoder", "masked_15") for rate in rates]
    runs = []
    for name, batch, back, rate in plans:
        for seed in SEEDS:
            run = family_run(name, seed, batch, back, rate)
            if name not in DRAWN or (batch, rate) != (64, RATE):
                del run["curve"]
            runs.append(run)
            print(f"  {name}, {batch}, {back}, {rate}, {seed}: {run['cost']}")
    best = {}
    for back in (1, 2):
        chain, test = train.chain_and_test(back)
        best[str(back)] = {
            "last": chain.usual(test, -1),
            "middle": chain.usual(test, chain.LENGTH // 2),
        }
    return {
        "texts": 500,
        "short": SHORT,
        "rate": RATE,
        "seeds": list(SEEDS),
        "budgets": BUDGETS,
        "best": best,
        "runs": runs,
    }


SEEDS, RATE, SHORT = range(5), 4e-3, 0.05
DRAWN = ("decoder", "decoder_no_look", "decoder_asked_15", "masked_15", "masked_last")


BUDGETS = {"masked": 16, "others": 8, "small batch": 1}  # thousands of millions


def family_run(name: str, seed: int, batch=64, back=1, rate=RATE) -> dict:
    """Train one tiny family; its curve holds pairs of arithmetic and accuracy."""
    kind = "masked" if train.OBJECTIVES[name].in_place else "others"
    # Tests are closer in arithmetic for small batches than for large ones.
    kind, every = (kind, 10) if batch == 64 else ("small batch", 8)
    budget = BUDGETS[kind] * 1e9
    family, points = train.train_family(
        name, seed, budget, batch, every, back=back, rate=rate
    )
    chain, test = train.chain_and_test(back)
    enough = [p["last"] >= chain.usual(test, -1) - SHORT for p in points]
    reached = [i for i in range(len(points) - 2) if all(enough[i : i + 3])]
    curve = [(round(p["multiply_adds"] / 1e9, 2), p["last"]) for p in points]
    return {
        "objective": name,
        "back": back,
        "seed": seed,
        "batch": batch,
        "rate": rate,
        "numbers": sum(p.size for p in family.parameters.values()),
        "signals": points[reached[0]]["signals"] if reached else None,
        "cost": curve[reached[0]][0] if reached else None,
        "last": points[-1]["last"],
        "middle": points[-1]["middle"],
        "curve": curve,
    }


# Beginnings of which the logits are kept, for the widget.
BEGINNINGS = (
    "alice was beginning to get very tired of sitting by her sister o",
    "said the mock turtl",
    "the mouse ",
    "alice th",
    "oh dear! ",
    "and the q",
)


def small_writer() -> dict:
    """Small models that write like Alice, over seeds; the first is kept whole.

    ``heads`` holds for each layer and head the mean weight on the token itself and
    on those 1, 2, … places before it, on the held-out text; ``without`` the loss
    with that head silenced, ``without_layer`` with all heads of a layer, ``seen`` if
    the model is given the last so many letters alone, ``learned`` on as long a text
    that was learned from. ``longer`` are trainings of four times as many steps.
    """
    text = train.alice()
    letters = train.Letters(text)
    ids, test = train.held_out(letters.encode(text))
    runs = []
    for seed in range(5):
        writer, losses = train.train_writer(seed, ids, len(letters))
        untrained, _ = train.new_writer(seed, len(letters))
        runs.append(writer_run(seed, writer, untrained, ids, test, losses))
        print(f"  seed {seed}: {runs[-1]['test']:.3f} nats")
        if seed == 0:
            kept = {n: a.astype(np.float16) for n, a in writer.parameters.items()}
            np.savez_compressed(DATA / "small_writer.npz", **kept)
    longer = []
    for seed in range(LONGER["seeds"]):
        writer, _ = train.train_writer(seed, ids, len(letters), LONGER["steps"])
        longer.append(longer_run(seed, writer, ids, test))
        print(f"  seed {seed}, longer: {longer[-1]['test']:.3f} nats")
    writer = train.recorded_writer()
    return {
        "letters": letters.letters,
        "beginnings": [
            {
                "text": beginning,
                "logits": np.round(
                    writer.logits(letters.encode(beginning[-48:]))[-1].astype(float), 3
                ).tolist(),
            }
            for beginning in BEGINNINGS
        ],
        "runs": runs,
        "longer": {"steps": LONGER["steps"], "runs": longer},
    }


LONGER = {"steps": 2800, "seeds": 3}
SEEN = (1, 2, 3, 4, 6, 8, 12, 24, 48)


def longer_run(seed, writer, ids, test) -> dict:
    """Measure what a model has learned, on the text it knows and on the other."""
    return {
        "seed": seed,
        "learned": round(train.loss_on(writer, ids[: len(test)]), 3),
        "test": round(train.loss_on(writer, test), 3),
        "seen": [[n, round(loss_seeing(writer, test, n), 3)] for n in SEEN],
    }


def loss_seeing(writer, test: np.ndarray, n: int, every: int = 5) -> float:
    """Return the loss on every fifth letter if the ``n`` before it are all there is."""
    starts = np.arange(max(SEEN) - n, len(test) - n, every)  # the same letters
    cut = train.pieces(test, starts, n)
    last = writer.logits(cut["inputs"])[:, -1]
    return float(train.cross_entropy(last, cut["targets"][:, -1])[0])


def without_layer(writer, layer: int):
    """Return the model with all heads of a layer silenced."""
    for head in range(writer.heads):
        writer = train.without_head(writer, layer, head)
    return writer


def writer_run(seed, writer, untrained, ids, test, losses) -> dict:
    """Measure one small model: its loss, where its heads look, what it repeats."""
    texts = train.pieces(test, np.arange(0, 4800, 48), 48)["inputs"]

    def looks(model):
        return [
            train.weight_by_distance(w).astype(float).round(3).tolist()
            for w in model.attention(texts)
        ]

    return {
        **longer_run(seed, writer, ids, test),
        "first": round(losses[0], 3),
        "heads": looks(writer),
        "untrained": looks(untrained),
        "without": [
            [
                round(train.loss_on(train.without_head(writer, layer, head), test), 3)
                for head in range(writer.heads)
            ]
            for layer in range(writer.layers())
        ],
        "without_layer": [
            round(train.loss_on(without_layer(writer, layer), test), 3)
            for layer in range(writer.layers())
        ],
        "repeating": repeating(writer, test),
    }


def repeating(writer, test: np.ndarray, tokens: int = 24) -> dict:
    """See whether a model expects a text that it has just read a second time.

    ``random`` letters and pieces of the ``held_out`` text: for each the loss on a
    half that stood before as well, and on the same half after another one.
    ``most`` is the largest mean weight on the letter that came next the first time.
    """
    rng = np.random.default_rng(5)
    words = writer.parameters["unembedding"].shape[-1]
    starts = rng.integers(len(test) - tokens, size=(2, 200, 1))
    found = {}
    for name, (other, half) in {
        "random": rng.integers(words, size=(2, 200, tokens)),
        "held_out": test[starts + np.arange(tokens)],
    }.items():
        found[name] = {
            after: round(loss_on_second(writer, first, half), 3)
            for after, first in (("itself", half), ("another", other))
        }
        if name == "random":
            twice = np.concatenate([half, half], axis=1)  # (200, 48)
    t = np.arange(tokens, 2 * tokens)
    # An induction head looks from a letter to what followed the same one before.
    most = max(
        float(w[:, :, t, t - tokens + 1].mean(axis=(0, 2)).max())
        for w in writer.attention(twice)
    )
    return {
        **found,
        "most": round(most, 3),
        "even": round(float((1 / (t + 1)).mean()), 3),
    }


def loss_on_second(writer, first: np.ndarray, second: np.ndarray) -> float:
    """Return the loss on the second half of a text, from its eighth letter on."""
    logits = writer.logits(np.concatenate([first, second[:, :-1]], axis=1))
    asked = second[:, 8:]
    rows = logits[:, -asked.shape[1] :].reshape(-1, logits.shape[-1])
    return float(train.cross_entropy(rows, asked.ravel())[0])


def real() -> dict:
    """What the chapter on the published model asks it: its own cells, run live."""
    notebook = Path(__file__).parents[1] / "notebooks" / "en" / "09_real.ipynb"
    matplotlib.use("Agg")
    names: dict = {}
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    if not names["ask"].live:
        sys.exit(f"{names['trouble']}")
    return names["ask"].answers


EXPERIMENTS = {
    "attention_times": attention_times,
    "families": families,
    "local_times": local_times,
    "pronoun_looks": pronoun_looks,
    "real": real,
    "small_writer": small_writer,
    "stream_times": stream_times,
    **real_models.EXPERIMENTS,
}


def main() -> None:
    for name in sys.argv[1:] or EXPERIMENTS:
        print(name)
        text = json.dumps(EXPERIMENTS[name](), indent=1) + "\n"
        # A list of numbers, such as the point of a curve, stands on one line.
        text = re.sub(
            r"\[[-+\d.e,\s]+\]", lambda found: json.dumps(json.loads(found[0])), text
        )
        (DATA / f"{name}.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
