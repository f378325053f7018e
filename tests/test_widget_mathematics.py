"""The mathematics of the widgets, run in the browser, equals NumPy and attnbook.ops."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from widget_support import served, write_page

from attnbook import ops
from attnbook.widgets import scaling, three_steps

TOLERANCE = {"rtol": 1e-12, "atol": 1e-12}
numbers = st.floats(-1e3, 1e3)
scores = st.lists(st.one_of(numbers, st.just(-math.inf)), min_size=1, max_size=12)
coordinates = st.integers(-30, 30).map(lambda n: n / 10)
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def page(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mathematics")
    write_page(folder)
    with served(folder) as address:
        page = browser.new_page()
        page.goto(address)
        yield page
        page.close()


@pytest.fixture(scope="module")
def call(page):
    """Call a function that a widget's module exports."""

    def call(widget: str, function: str, *arguments):
        return page.evaluate(
            """async ([widget, name, given]) => {
                const module = await import(
                    new URL(`_static/widgets/${widget}.js`, location.href).href
                );
                const result = module[name](...given);
                return ArrayBuffer.isView(result) ? Array.from(result) : result;
            }""",
            [widget, function, list(arguments)],
        )

    return call


@given(x=scores)
@settings(max_examples=80)
@pytest.mark.parametrize("widget", ["three_steps", "scaling"])
def test_softmax(call, widget, x):
    expected = ops.softmax(np.array(x, dtype=float))
    np.testing.assert_allclose(call(widget, "softmax", x), expected, **TOLERANCE)


@pytest.mark.parametrize(
    "x",
    [
        [0.0],
        [-math.inf],
        [-math.inf, -math.inf, -math.inf],
        [-math.inf, 3.0],
        [1e300, -1e300, 0.0],
        [710.0, 711.0],
        [-1e5, -1e5 + 1],
        [5.0] * 16,
    ],
)
def test_softmax_at_the_extremes(call, x):
    expected = ops.softmax(np.array(x))
    weights = call("scaling", "softmax", x)
    np.testing.assert_allclose(weights, expected, **TOLERANCE)
    assert [w == 0 for w in weights] == list(expected == 0)


@given(x=scores)
@settings(max_examples=60)
def test_entropy_in_bits(call, x):
    weights = ops.softmax(np.array(x, dtype=float))
    bits = call("scaling", "entropyBits", weights.tolist())
    np.testing.assert_allclose(bits, ops.entropy(weights), **TOLERANCE)


@pytest.mark.parametrize("weights", [[1], [0, 1, 0], [0, 0], []])
def test_no_entropy_is_minus_zero(call, weights):
    bits = call("scaling", "entropyBits", weights)
    assert math.copysign(1, bits) == 1  # Playwright hands −0 over as −0
    assert bits == 0


@given(data=st.data(), n=st.integers(1, 4), m=st.integers(1, 4), p=st.integers(1, 4))
@settings(max_examples=40)
def test_matrix_and_dot_products(call, data, n, m, p):
    def matrix(rows, columns):
        row = st.lists(numbers, min_size=columns, max_size=columns)
        return data.draw(st.lists(row, min_size=rows, max_size=rows))

    a, b = matrix(n, m), matrix(m, p)
    product = np.array(a) @ np.array(b)
    bound = {"rtol": 1e-12, "atol": 1e-12 * 1e6}  # sums of products up to 10⁶
    np.testing.assert_allclose(call("three_steps", "matmul", a, b), product, **bound)
    column = [row[0] for row in b]
    np.testing.assert_allclose(
        call("three_steps", "dot", a[0], column), product[0, 0], **bound
    )


@given(values=st.lists(numbers, min_size=1, max_size=30))
@settings(max_examples=40)
def test_variance(call, values):
    np.testing.assert_allclose(
        call("scaling", "variance", values), np.var(values), rtol=1e-12, atol=1e-9
    )


@pytest.mark.parametrize("variance", [1, 4, 64, 1024])
def test_normal_density_is_that_of_the_law(call, variance):
    xs = np.linspace(-6, 6, 7) * math.sqrt(variance)
    for x in xs:
        expected = math.exp(-(x**2) / 2 / variance) / math.sqrt(2 * math.pi * variance)
        density = call("scaling", "normalDensity", float(x), variance)
        assert density == pytest.approx(expected, rel=1e-12)


@given(seed=seeds, index=st.integers(0, 2**23))
@settings(max_examples=100)
def test_random_words_are_the_same_bit_for_bit(call, seed, index):
    expected = scaling.random_words(seed, np.array([index]))[0]
    assert call("scaling", "randomWord", seed, index) == int(expected)


def test_random_words_are_those_of_mulberry32(call):
    def mulberry32(seed, count):  # step by step, in Python's whole numbers
        mask, a, words = 2**32 - 1, seed, []
        for _ in range(count):
            a = (a + 0x6D2B79F5) & mask
            t = ((a ^ a >> 15) * (a | 1)) & mask
            t = ((t + (t ^ t >> 7) * (t | 61)) & mask) ^ t
            words.append(t ^ t >> 14)
        return words

    for seed in (0, 1, 91, 2**31, 2**32 - 1):
        words = mulberry32(seed, 20)
        assert scaling.random_words(seed, np.arange(20)).tolist() == words
        assert [call("scaling", "randomWord", seed, i) for i in range(20)] == words


@given(seed=seeds, index=st.integers(0, 2**20))
@settings(max_examples=60)
def test_normals_and_their_products(call, seed, index):
    words = scaling.random_words(seed, np.array([2 * index, 2 * index + 1]))
    u1, u2 = (words + 0.5) / 2**32
    radius, angle = math.sqrt(-2 * math.log(u1)), 2 * math.pi * u2
    q, k = radius * math.cos(angle), radius * math.sin(angle)
    got = [call("scaling", name, seed, index) for name in ("normal", "normalProduct")]
    np.testing.assert_allclose(got, [q, q * k], **TOLERANCE)


@pytest.mark.parametrize("seed", [0, 91, 2**32 - 1])
def test_sums_over_dimensions_equal_numpy(call, page, seed):
    sums = np.array(call("scaling", "keyProducts", seed)).reshape(-1, scaling.KEYS)
    assert sums.shape == (1025, 16)
    for d in (1, 2, 64, 1024):
        expected = scaling.key_products(seed, d)
        np.testing.assert_allclose(sums[d], expected, rtol=1e-12, atol=1e-11)
    rows = page.evaluate(
        """async (seed) => {
            const address = new URL("_static/widgets/scaling.js", location.href).href;
            const pairs = new (await import(address)).PairProducts(seed);
            let pieces = 0; // drawn in many small pieces
            while (!pairs.extend(1024, 1)) pieces++;
            return [pieces, ...[1, 7, 1024].map((d) => Array.from(pairs.at(d)))];
        }""",
        seed,
    )
    assert rows.pop(0) > 1
    for d, row in zip((1, 7, 1024), rows, strict=True):
        # Kept as float32, summed as float64.
        expected = scaling.pair_products(seed, d)
        np.testing.assert_allclose(row, expected, rtol=1e-6, atol=1e-7)


@given(
    values=st.lists(st.floats(-20, 20), min_size=1, max_size=60),
    limit=st.sampled_from([8, 32]),
)
@settings(max_examples=40)
def test_histogram_counts_what_numpy_counts(call, values, limit):
    # NumPy puts the upper end into the last bin and rounds edges its own way.
    edges = np.linspace(-limit, limit, 65)
    inside = [x for x in values if np.abs(edges - x).min() > 1e-9]
    expected, _ = np.histogram(inside, 64, (-limit, limit))
    got = call("scaling", "histogram", inside, 1, limit, 64)
    assert got == expected.tolist()
    assert call("scaling", "histogram", [-limit, limit], 1, limit, 64)[0] == 1


@given(
    rows=st.lists(st.tuples(coordinates, coordinates), min_size=4, max_size=4),
    asker=st.integers(0, 3),
)
@settings(max_examples=80)
def test_the_three_steps_are_attention(call, rows, asker):
    x = np.array(rows)
    q, k, v = (x @ three_steps._PROJECTIONS[name] for name in ("query", "key", "value"))
    q = q[asker : asker + 1]
    got = call("three_steps", "attend", x.tolist(), asker)
    expected = {
        "q": q[0],
        "k": k,
        "v": v,
        "products": (q @ k.T)[0],
        "scores": (q @ k.T)[0] / math.sqrt(2),
        "weights": ops.attention_weights(q, k)[0],
        "parts": ops.attention_weights(q, k)[0][:, None] * v,
        "output": ops.scaled_dot_product_attention(q, k, v)[0],
    }
    assert got.keys() - {"exps"} == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(got[name], value, **TOLERANCE, err_msg=name)
    exps = np.array(got["exps"])
    np.testing.assert_allclose(exps / exps.sum(), expected["weights"], **TOLERANCE)


@given(x=st.floats(-10, 10))
@settings(max_examples=60)
def test_coordinates_are_snapped_as_python_snaps_them(call, x):
    tenths = 10 * x
    if abs(tenths - math.floor(tenths) - 0.5) < 1e-6:
        return  # halves are rounded differently; both are right
    expected = round(min(3.0, max(-3.0, x)), 1) + 0.0
    assert call("three_steps", "snap", x) == expected


@pytest.mark.parametrize(
    ("x", "decimals", "text"),
    [(-2.318, 2, "−2.32"), (-0.001, 2, "0.00"), (0, 1, "0.0"), (1024, 0, "1024")],
)
def test_numbers_are_written_with_a_true_minus(call, x, decimals, text):
    assert call("three_steps", "number", x, decimals) == text
    assert three_steps._number(x, decimals) == text
