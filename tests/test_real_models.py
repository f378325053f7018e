"""The two published models say here what they say in PyTorch."""

import json
from pathlib import Path

import numpy as np
import pytest

from attnbook import model as families
from attnbook import ops, train
from attnbook.pretrained import MiniLM, load_minilm, load_smollm2

DATA = Path(__file__).with_name("data")
REFERENCE = json.loads((DATA / "reference.json").read_text("utf-8"))
PROMPTS = list(enumerate(REFERENCE["prompts"]))
SENTENCES = list(enumerate(REFERENCE["sentences"]))
# Two that were known before the reference was made.
KNOWN = {
    "The capital of France is": (
        [504, 3575, 282, 4649, 314],
        "7042 30 198 198 504 2988 314 42 216 34 32 33 40 29 32 33 29 34 34 216",
    ),
    "Once upon a time, there was a": (
        [6403, 1980, 253, 655, 28, 665, 436, 253],
        "1165 3102 32047 281 260 1911 282 253 14055 2240 30 378 3102 436 1343 327 "
        "624 8685 6600 284",
    ),
}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    # Other tests run beside these: threads that wait for each other cost much.
    with train.one_thread():
        yield


@pytest.fixture(scope="module")
def arrays():
    with np.load(DATA / "reference.npz", allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


@pytest.fixture(scope="module")
def writer():
    return load_smollm2()


@pytest.fixture(scope="module")
def reader():
    return load_minilm()


def test_the_writer_is_the_published_one(writer):
    p = writer.parameters
    assert writer.layers() == 30
    assert (writer.heads, writer.kv_heads) == (9, 3)
    assert p["tokens"].shape == (49_152, 576)
    assert p["decoder.0.attention.w_k"].shape == (576, 3 * 64)
    assert p["decoder.29.feed_forward.w_down"].shape == (1536, 576)
    assert writer.rope_base == 100_000
    assert writer.eps == pytest.approx(1e-5)
    assert all(array.dtype == np.float32 for array in p.values())
    assert not any(array.flags.writeable for array in p.values())


@pytest.mark.parametrize("text", KNOWN)
def test_the_reference_says_what_was_known(text):
    (prompt,) = (p for _, p in PROMPTS if p["text"] == text)
    ids, then = KNOWN[text]
    assert prompt["ids"] == ids
    assert prompt["next"] == [int(number) for number in then.split()]
    # No two scores were so close that rounding could change the choice.
    assert min(p["smallest_gap"] for _, p in PROMPTS) > 0.01


@pytest.mark.parametrize(("number", "prompt"), PROMPTS)
def test_the_writer_goes_on_as_in_pytorch(writer, number, prompt):
    ids = writer.encode(prompt["text"])
    assert ids.tolist() == prompt["ids"]
    new = writer.generate(ids, 20)
    assert new == prompt["next"]
    assert writer.decode(new) == prompt["says"]


@pytest.mark.parametrize(("number", "prompt"), PROMPTS)
def test_scores_are_those_of_pytorch(writer, arrays, number, prompt):
    scores = writer.logits(np.array(prompt["ids"]))
    assert scores.dtype == np.float32
    part = scores[:, :: REFERENCE["every_word"]]
    assert np.abs(part - arrays[f"logits_{number}"]).max() < 1e-3
    # A wrong place in the vocabulary would be far off.
    assert np.abs(arrays[f"logits_{number}"]).max() > 5


def test_all_scores_over_a_whole_text_are_those_of_pytorch(writer, arrays):
    paragraph = REFERENCE["paragraph"]
    ids = writer.encode(paragraph["text"])
    assert ids.tolist() == paragraph["ids"]
    assert len(ids) == 96
    scores = writer.logits(ids).astype(np.float64)  # (96, 49152)
    # Every score has a part in the sum of exponentials, above all the large ones.
    log_sum = np.log(np.exp(scores - scores.max()).sum(axis=-1)) + scores.max()
    assert np.abs(log_sum - arrays["paragraph_log_sum"]).max() < 1e-3
    places = np.arange(len(ids))[:, None]
    best = arrays["paragraph_best"].astype(int)
    difference = scores[places, best] - arrays["paragraph_best_scores"]
    assert np.abs(difference).max() < 1e-3
    assert np.array_equal(scores.argmax(axis=-1), best[:, 0])
    # All 49,152 scores of the last place, which were rounded to a thousandth.
    last = arrays["paragraph_last"] * paragraph["step"]
    assert last.shape == (49_152,)
    assert np.abs(scores[-1] - last).max() < 1e-3
    targets = scores[np.arange(95), ids[1:]]
    nats = (log_sum[:-1] - targets).mean()
    assert nats == pytest.approx(paragraph["nats"], abs=1e-4)


def test_the_chapter_measures_by_the_same_text():
    path = DATA.parents[1] / "notebooks" / "en" / "09_real.ipynb"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    (source,) = ("".join(c["source"]) for c in cells if c["id"] == "break-text")
    space = {}
    exec(source, space)
    assert space["text"] == REFERENCE["paragraph"]["text"]
    record = json.loads((ops_data() / "real.json").read_text("utf-8"))
    nats = record["break: intact"]["nats"]
    assert nats == pytest.approx(REFERENCE["paragraph"]["nats"], abs=1e-3)


def ops_data():
    return Path(ops.__file__).with_name("data")


def test_weights_are_those_of_pytorch(writer, arrays):
    weights = writer.attention(np.array(PROMPTS[0][1]["ids"]))
    assert weights.shape == (30, 9, 5, 5)
    assert np.abs(weights - arrays["attention_0"]).max() < 1e-4
    assert np.allclose(weights.sum(axis=-1), 1, atol=1e-5)


def test_with_a_memory_the_writer_says_the_same(writer):
    ids = writer.encode("The opposite of hot is cold, and the opposite of")
    at_once = writer.logits(ids)
    caches, parts, start = writer.new_caches(), [], 0
    for size in (3, 1, 4, len(ids) - 8):
        parts.append(writer.logits(ids[start : start + size], caches))
        start += size
    assert np.abs(np.concatenate(parts) - at_once).max() < 1e-3
    slowly = list(ids)
    for _ in range(5):
        slowly.append(int(writer.logits(np.array(slowly))[-1].argmax()))
    assert slowly[len(ids) :] == writer.generate(ids, 5)


def test_side_by_side_or_apart_the_products_are_the_same(writer):
    x = np.random.default_rng(0).standard_normal((4, 576), np.float32)
    name = "decoder.3"
    for made, apart in zip(
        writer._project(x, f"{name}.attention"),
        families.DecoderOnly._project(writer, x, f"{name}.attention"),
        strict=True,
    ):
        assert np.allclose(made, apart, atol=1e-4)
    assert np.allclose(
        writer._think(x, f"{name}.feed_forward"),
        families.DecoderOnly._think(writer, x, f"{name}.feed_forward"),
        atol=1e-4,
    )


# --- the reader's own functions ------------------------------------------------


def counted(functions):
    """Wrap functions so that they count their calls."""
    calls = dict.fromkeys(functions, 0)

    def wrap(name, function):
        def wrapped(*arguments, **named):
            calls[name] += 1
            return function(*arguments, **named)

        return wrapped

    return {n: wrap(n, f) for n, f in functions.items()}, calls


def test_every_function_of_the_writer_can_be_the_readers_own(writer):
    used = set(families.REPLACEABLE) - {"cross_attention", "feed_forward", "layer_norm"}
    functions, calls = counted({name: getattr(ops, name) for name in sorted(used)})
    own = load_smollm2(**functions)
    assert own.parameters["tokens"] is writer.parameters["tokens"]  # shared
    ids = np.array(PROMPTS[0][1]["ids"])
    assert own.generate(ids, 3) == PROMPTS[0][1]["next"][:3]
    own.attention(ids)
    assert all(calls.values()), calls


def test_every_function_of_the_reader_can_be_the_readers_own(reader):
    functions, calls = counted(MiniLM.functions)
    own = load_minilm(**functions)
    ids = own.encode("Who looks at whom?")
    assert np.array_equal(own.token_vectors(ids), reader.token_vectors(ids))
    own.attention(ids)
    assert all(calls.values()), calls


def test_tiled_attention_writes_the_same(writer):
    own = load_smollm2(
        scaled_dot_product_attention=lambda q, k, v, allow=None, scale=None: (
            ops.tiled_attention(q, k, v, allow, scale, tile=4)
        )
    )
    assert own.generate(PROMPTS[0][1]["ids"], 4) == PROMPTS[0][1]["next"][:4]


@pytest.mark.parametrize("load", [load_smollm2, load_minilm])
def test_a_function_that_does_not_exist_is_refused(load):
    with pytest.raises(TypeError, match="softmacks cannot be replaced"):
        load(softmacks=np.exp)


def test_a_function_that_changes_the_dtype_is_refused():
    def double(x, gain, eps=1e-5):
        return ops.rms_norm(x, gain, eps).astype(np.float64)

    with pytest.raises(TypeError, match="float64"):
        load_smollm2(rms_norm=double).logits(np.array([1, 2]))


@pytest.mark.parametrize("ids", [[], [-1], [49_152], [0.5]])
def test_what_are_no_tokens_is_refused(writer, reader, ids):
    for call in (writer.logits, reader.token_vectors):
        with pytest.raises((TypeError, ValueError), match="ids"):
            call(np.array(ids))


# --- the encoder ---------------------------------------------------------------


@pytest.mark.parametrize(("number", "sentence"), SENTENCES)
def test_token_vectors_are_those_of_pytorch(reader, arrays, number, sentence):
    ids = reader.encode(sentence)
    vectors = reader.token_vectors(ids)
    assert vectors.dtype == np.float32
    assert np.abs(vectors - arrays[f"vectors_{number}"]).max() < 1e-4
    layers = reader.token_vectors(ids, layer=None)
    assert layers.shape == (7, len(ids), 384)
    part = layers[..., :: REFERENCE["every_number"]]
    assert np.abs(part - arrays[f"layers_{number}"]).max() < 1e-4
    assert np.array_equal(reader.token_vectors(ids, layer=2), layers[2])


def test_the_encoders_weights_are_those_of_pytorch(reader, arrays):
    weights = reader.attention(reader.encode(REFERENCE["sentences"][0]))
    assert weights.shape == arrays["minilm_attention_0"].shape
    assert np.abs(weights - arrays["minilm_attention_0"]).max() < 1e-4


def test_the_encoder_has_places_for_512_tokens(reader):
    with pytest.raises(ValueError, match="513 tokens; at most 512"):
        reader.token_vectors(np.full(513, 1037))
